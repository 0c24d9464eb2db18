//! Reads small files of a project, and none outside of it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileText {
    /// Path without links.
    pub(super) real: PathBuf,
    /// The first bytes of it, as UTF-8.
    pub(super) text: String,
    /// Bytes that were not read.
    pub(super) left_out: u64,
}

/// Reads the first bytes of a file; nothing when it does not exist.
///
/// # Errors
/// It lies outside of the directory, is no file, or cannot be read: the reason.
pub(super) fn read(
    path: &Path,
    inside: Option<&Path>,
    most: u64,
) -> Result<Option<FileText>, String> {
    let fault = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(fault(&error)),
    };
    if inside.is_some_and(|inside| !real.starts_with(inside)) {
        return Err(fault(&format!(
            "leads out of the project, to {}",
            real.display()
        )));
    }
    // Opening does not wait for the writer of a pipe.
    let file = File::options()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(&real);
    let file = file.map_err(|error| fault(&error))?;
    let found = file.metadata().map_err(|error| fault(&error))?;
    if !found.is_file() {
        return Err(fault(&"is no file"));
    }
    let mut bytes = Vec::new();
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| fault(&error))?;
    let left_out = found.len().saturating_sub(bytes.len() as u64);
    Ok(Some(FileText {
        real,
        text: text(bytes, left_out > 0),
        left_out,
    }))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns the text of bytes; a character that the end cut is left out.
fn text(mut bytes: Vec<u8>, is_cut: bool) -> String {
    if is_cut && let Err(error) = std::str::from_utf8(&bytes) {
        let (valid, rest) = (error.valid_up_to(), bytes.len() - error.valid_up_to());
        if error.error_len().is_none() && rest < 4 {
            bytes.truncate(valid);
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Returns the names in a directory, sorted; none when it cannot be read.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
