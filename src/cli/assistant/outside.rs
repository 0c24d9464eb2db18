//! Programs that get the terminal for a while: the user's editor for a long input, and the shell after Ctrl+Z.

use std::ffi::OsString;
use std::fs;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use tokio::process::Command;

use crate::cli::prompt::tty::{has_shell, stop_job};

/// A program that gets the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    /// The user's editor, for the input.
    Editor,
}

/// Returns the text as it was edited in the user's editor.
///
/// # Errors
/// There is no editor, or it failed; the text stays as it was.
pub(super) async fn edit_text(text: &str) -> anyhow::Result<String> {
    let file = tempfile::Builder::new()
        .prefix("karyi-input-")
        .suffix(".md")
        .tempfile()
        .context("creating a file for the editor")?;
    fs::write(file.path(), text).context("writing the text for the editor")?;
    let editor = chosen(&["VISUAL", "EDITOR"], "vi");
    let status = program(&editor)
        .arg(file.path())
        .status()
        .await
        .with_context(|| format!("starting the editor {}", editor.display()))?;
    anyhow::ensure!(
        status.success(),
        "the editor {} ended with {status}; VISUAL or EDITOR names another one",
        editor.display()
    );
    let edited = fs::read(file.path()).context("reading the text from the editor")?;
    Ok(String::from_utf8_lossy(&edited).into_owned())
}

/// Returns the program that a variable names, else the usual one.
fn chosen(variables: &[&str], usual: &str) -> OsString {
    let mut named = variables.iter().filter_map(std::env::var_os);
    named
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| usual.into())
}

/// Returns a command for a program with its arguments, which a shell separates. It ends when nobody waits for it.
fn program(name: &OsString) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec $0 \"$@\""]).arg(name);
    command.kill_on_drop(true);
    command
}

/// Stops the program until its shell continues it.
pub(super) fn suspend() {
    if has_shell() {
        let _ = stop_job(Signal::SIGTSTP);
    }
}
