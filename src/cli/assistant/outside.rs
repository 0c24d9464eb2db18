//! Other programs on the terminal: the user's editor for a long input, and the shell after Ctrl+Z.

use std::fs;
use std::process::Command;

use anyhow::Context as _;
use nix::sys::signal::Signal;

use crate::cli::prompt::tty::{has_shell, stop_job};

/// Returns the text as it was edited in the user's editor.
///
/// # Errors
/// There is no editor, or it failed; the text stays as it was.
pub(super) fn edit_text(text: &str) -> anyhow::Result<String> {
    let file = tempfile::Builder::new()
        .prefix("karyi-input-")
        .suffix(".md")
        .tempfile()
        .context("creating a file for the editor")?;
    fs::write(file.path(), text).context("writing the text for the editor")?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(std::env::var_os)
        .find(|editor| !editor.is_empty());
    let editor = editor.unwrap_or_else(|| "vi".into());
    // The variable may hold arguments, which a shell separates.
    let status = Command::new("sh")
        .arg("-c")
        .arg("exec $0 \"$1\"")
        .arg(&editor)
        .arg(file.path())
        .status()
        .with_context(|| format!("starting the editor {}", editor.display()))?;
    anyhow::ensure!(
        status.success(),
        "the editor {} ended with {status}; VISUAL or EDITOR names another one",
        editor.display()
    );
    let edited = fs::read(file.path()).context("reading the text from the editor")?;
    Ok(String::from_utf8_lossy(&edited).into_owned())
}

/// Stops the program until its shell continues it.
pub(super) fn suspend() {
    if has_shell() {
        let _ = stop_job(Signal::SIGTSTP);
    }
}
