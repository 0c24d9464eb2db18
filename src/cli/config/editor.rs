//! `karyi config edit`: a copy of the file in the user's editor, checked before it replaces the file.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cli::config::error::shown;
use crate::cli::config::settings::Settings;
use crate::cli::config::{file, place};
use crate::cli::{USAGE, say};

/// Decision about a text with a mistake.
enum Decision {
    Again,
    Keep,
    Write,
}

/// Edits the file.
///
/// # Errors
/// There is no editor, or a file cannot be read or written; the file is as it was.
pub(super) fn edit(path: &Path) -> anyhow::Result<ExitCode> {
    let before = place::read(path)?.unwrap_or_default();
    let directory = file::parent(path);
    let copy = file::temporary(&directory).context("creating a copy to edit")?;
    fs::write(copy.path(), &before).context("writing the copy to edit")?;
    loop {
        run_editor(copy.path())?;
        let after = place::read(copy.path())?.unwrap_or_default();
        if after == before {
            say("nothing was changed");
            return Ok(ExitCode::SUCCESS);
        }
        if let Err(error) = Settings::parse(path.to_owned(), &after) {
            say(&error.to_string());
            match decision() {
                Decision::Again => continue,
                Decision::Keep => {
                    say(&format!("{} is as it was", shown(path)));
                    return Ok(ExitCode::from(USAGE));
                }
                Decision::Write => {}
            }
        }
        let _lock = file::lock(path)?;
        if place::read(path)?.unwrap_or_default() != before {
            let (_, kept) = copy.keep()?;
            bail!(
                "{} was changed meanwhile and is left as it is: your text is in {}",
                shown(path),
                shown(&kept)
            );
        }
        file::write(path, &after)?;
        return Ok(ExitCode::SUCCESS);
    }
}

/// Runs the editor, whose variable is a command of the shell, and waits for its end.
fn run_editor(copy: &Path) -> anyhow::Result<()> {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let Some(variable) = ["VISUAL", "EDITOR"].into_iter().find(set) else {
        bail!("expected an editor in VISUAL or EDITOR, found none: EDITOR=nano karyi config edit");
    };
    let script = format!("eval \"${variable} \\\"\\$1\\\"\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg("sh").arg(copy);
    let status = command.status().context("running the editor")?;
    match status.success() {
        true => Ok(()),
        false => bail!("the editor of {variable} failed ({status}); the file is as it was"),
    }
}

/// Asks what to do with a text that has a mistake. Without a terminal the file stays as it was.
fn decision() -> Decision {
    if !io::stdin().is_terminal() {
        return Decision::Keep;
    }
    loop {
        say("[e]dit again, [k]eep the file as it was, or [w]rite it with the mistake?");
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        match (read, line.trim()) {
            (Err(_) | Ok(0), _) | (Ok(_), "k" | "keep") => return Decision::Keep,
            (Ok(_), "e" | "edit" | "") => return Decision::Again,
            (Ok(_), "w" | "write") => return Decision::Write,
            (Ok(_), _) => {}
        }
    }
}
