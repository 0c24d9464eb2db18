//! The log of the program: what `--log FILE` collects of every command.
//!
//! Each line has the time (UTC) and the process. The file is the user's own: nobody else may read a new one. Messages
//! come here as they go to standard error, where no value of a secret goes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use karyi_core::ids;

static FILE: OnceLock<Arc<File>> = OnceLock::new();

/// Opens the file; lines are added at its end.
///
/// # Errors
/// It cannot be opened for writing.
pub(super) fn open(path: &Path) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("opening the log {}", path.display()))?;
    let _ = FILE.set(Arc::new(file));
    write(&format!("karyi {} started", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// Returns the file.
pub(super) fn file() -> Option<Arc<File>> {
    FILE.get().cloned()
}

/// Adds a message; a failure cannot be reported.
pub(super) fn write(message: &str) {
    let Some(mut file) = FILE.get().map(Arc::as_ref) else {
        return;
    };
    let start = format!("{} {}", ids::now(), std::process::id());
    let lines = message.lines().map(|line| format!("{start} {line}\n"));
    let _ = file.write_all(lines.collect::<String>().as_bytes());
}
