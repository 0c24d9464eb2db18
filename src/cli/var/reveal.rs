//! Commands that reveal values: `karyi var get` and `export` print them, on a terminal only, and `exec` runs a
//! program with them in its environment.
//!
//! The program replaces this process. Its output is not masked, since a person runs a program of their own. The
//! policy applies as to a command of a script, except that starting the program is the consent that `use = ask`
//! requires.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::var::{CommandResult, dotenv, existing};
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{print, say};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_pty::guard;

/// Prints one value.
pub(super) fn get(flags: &VaultFlags, name: &str) -> CommandResult {
    let name = vault::name(name)?;
    let vault = existing(flags)?;
    check_terminal()?;
    let record = vault.get(&name)?;
    let line = Zeroizing::new(format!("{}\n", record.value.expose()));
    Ok(print(&line))
}

/// Prints all values.
pub(super) fn export(flags: &VaultFlags) -> CommandResult {
    let vault = existing(flags)?;
    check_terminal()?;
    for name in vault.store().list()? {
        let record = vault.get(&name)?;
        let code = print(&dotenv::line(name.as_str(), record.value.expose()));
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses redirected output, which would store values in a file or in another program.
fn check_terminal() -> Result<(), ToolError> {
    if std::io::stdout().is_terminal() {
        return Ok(());
    }
    let message = "values are printed only on a terminal, and standard output is not one";
    Err(ToolError::new(ErrorCode::PermissionDenied, message)
        .with_hint("pass values to a program with `karyi var exec NAME -- CMD`"))
}

/// Runs a program.
pub(super) fn exec(flags: &VaultFlags, names: &[String], command: &[OsString]) -> CommandResult {
    let Some((program, arguments)) = command.split_first() else {
        let message = "there is no program to run";
        return Err(ToolError::new(ErrorCode::Usage, message).with_hint("name it after --"));
    };
    let vault = existing(flags)?;
    let cwd = std::env::current_dir().map_err(|error| {
        ToolError::from_io(".".as_ref(), &error).with_hint("start it in an existing directory")
    })?;
    // The name as policies use it.
    let called = Path::new(program).file_name().unwrap_or(program);
    let called = called.to_string_lossy();
    let mut command = Command::new(program);
    command.args(arguments);
    for name in names {
        let name = vault::name(name)?;
        let record = vault.get(&name)?;
        let policy = &record.policy;
        policy.check_use(&name, "command", &cwd, Timestamp::now())?;
        if !policy.is_meant_for(&called) {
            say(&format!(
                "warning: {name} is meant for other programs than {called}"
            ));
        }
        command.env(name.as_str(), record.value.expose());
    }
    // On success nothing of this process remains.
    guard::restore_core_limit();
    // The exit statuses are those of a shell.
    let (code, problem) = match command.exec() {
        error if error.kind() == ErrorKind::NotFound => (
            127,
            "it does not exist, or the interpreter in its first line does not".to_owned(),
        ),
        error => (126, error.to_string()),
    };
    // The name is not repeated, since it may be a misplaced value.
    say(&format!("the program after -- cannot be run: {problem}"));
    say("hint: name it by its path; `ls -l` of that says whether it can be run");
    Ok(ExitCode::from(code))
}
