//! Programs that get the terminal for a while: the user's editor and pager, and the shell after Ctrl+Z.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use nix::unistd::getgid;
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::cli::prompt::tty::{has_shell, is_in_front, stop_job};
use karyi_core::limits;

/// A program that gets the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outside {
    /// The user's editor, for the input.
    Editor,
    /// The user's pager, for this text.
    Pager(String),
    /// The shell that started the program, which is stopped.
    Shell,
}

/// Returns the text as it was edited in the user's editor.
///
/// # Errors
/// There is no editor, or it failed; the text stays as it was.
pub(super) async fn edit_text(text: &str) -> anyhow::Result<String> {
    let file = file_with(text)?;
    let (program, variables) = (chosen(&["VISUAL", "EDITOR"], "vi"), "VISUAL or EDITOR");
    run("editor", &program, file.path(), variables).await?;
    let edited = fs::read(file.path()).context("reading the text from the editor")?;
    Ok(String::from_utf8_lossy(&edited).into_owned())
}

/// Shows a text in the user's pager.
///
/// # Errors
/// There is no pager, or it failed.
pub(super) async fn page(text: &str) -> anyhow::Result<()> {
    let file = file_with(text)?;
    let program = chosen(&["PAGER"], "less");
    run("pager", &program, file.path(), "PAGER").await
}

/// Makes a file with a text, which only the user may read.
fn file_with(text: &str) -> anyhow::Result<NamedTempFile> {
    let mut named = tempfile::Builder::new();
    let file = named.prefix("karyi-").suffix(".md").tempfile();
    let file = file.context("creating a temporary file")?;
    fs::write(file.path(), text).context("writing a temporary file")?;
    Ok(file)
}

async fn run(what: &str, name: &OsString, file: &Path, variables: &str) -> anyhow::Result<()> {
    let shown = name.display();
    let status = program(name).arg(file).status().await;
    let status = status.with_context(|| format!("starting the {what} {shown}"))?;
    anyhow::ensure!(
        status.success(),
        "the {what} {shown} ended with {status}; {variables} names another one"
    );
    Ok(())
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
    // With a group of its choice it is started by fork, not by vfork: there a child that Ctrl+Z stops before its exec
    // would hold up its parent for ever.
    command.gid(getgid().as_raw());
    command
}

/// Stops the program until its shell continues it in the foreground.
pub(super) async fn suspend(terminal: &File) {
    if has_shell() {
        let _ = stop_job(Signal::SIGTSTP);
        come_to_front(terminal).await;
    }
}

/// Returns once the program is in the foreground of its terminal; until then its shell may continue it. A change of
/// the terminal from the background would stop the program before it could handle a signal.
pub(super) async fn come_to_front(terminal: &File) {
    while !is_in_front(terminal) {
        // Signals that came with the continuation are handled first.
        tokio::time::sleep(limits::KEY_WAIT).await;
        if !is_in_front(terminal) && has_shell() {
            let _ = stop_job(Signal::SIGTTOU);
        }
    }
}
