//! Finds and reads `config.toml`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::cli::config::error::{Fault, SettingsError, shown};
use crate::cli::state_dir::variable;
use karyi_core::limits;

/// Name of the file.
const NAME: &str = "config.toml";

/// Returns the file's path: in `$KARYI_HOME/config`, or in `$KARYI_HOME` when only that one exists; without that
/// variable in `karyi` below `$XDG_CONFIG_HOME` or `~/.config`.
pub(super) fn place() -> Option<PathBuf> {
    let directory = |name| variable(name).map(PathBuf::from);
    if let Some(home) = directory("KARYI_HOME") {
        let (new, old) = (home.join("config").join(NAME), home.join(NAME));
        let exists = |file: &Path| file.symlink_metadata().is_ok();
        return Some(if !exists(&new) && exists(&old) {
            old
        } else {
            new
        });
    }
    let told = directory("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = told.or_else(|| directory("HOME").map(|home| home.join(".config")))?;
    Some(base.join("karyi").join(NAME))
}

/// Reads the file; `None` when there is none.
///
/// # Errors
/// It is no file, cannot be read, or is no UTF-8 text.
pub(in crate::cli) fn read(file: &Path) -> Result<Option<String>, SettingsError> {
    let bytes = match bytes(file) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => match fs::read_link(file) {
            Err(_) => return Ok(None),
            Ok(target) => {
                let message = format!(
                    "expected a file, found a link to {}, which does not exist",
                    shown(&target)
                );
                return Err(SettingsError::of_file(file, message));
            }
        },
        Err(error) => {
            let found = match error.kind() {
                ErrorKind::IsADirectory => "a directory".to_owned(),
                ErrorKind::InvalidInput => "a pipe, socket or device".to_owned(),
                ErrorKind::FileTooLarge => {
                    format!("more than {} bytes", limits::MAX_SETTINGS_BYTES)
                }
                _ => format!("one that cannot be read: {error}"),
            };
            let message = format!("expected a file with settings, found {found}");
            return Err(SettingsError::of_file(file, message));
        }
    };
    text(file, bytes).map(Some)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Reads a regular file. Opening does not wait for the writer of a pipe.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let flags = nix::libc::O_NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        // A socket.
        Some(nix::libc::ENXIO) => ErrorKind::InvalidInput.into(),
        _ => error,
    })?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        let found = match kind.is_dir() {
            true => ErrorKind::IsADirectory,
            false => ErrorKind::InvalidInput,
        };
        return Err(found.into());
    }
    let most = limits::MAX_SETTINGS_BYTES;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

fn text(file: &Path, bytes: Vec<u8>) -> Result<String, SettingsError> {
    let fault = |offset, message: &str| Fault {
        offset,
        message: message.to_owned(),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default());
        let found = fault(valid, "expected UTF-8, found another encoding");
        SettingsError::at(file, &before, &found)
    })?;
    match text.starts_with('\u{feff}') {
        true => {
            let message =
                "expected a setting, found a byte order mark: save the file as UTF-8 without it";
            Err(SettingsError::at(file, &text, &fault(0, message)))
        }
        false => Ok(text),
    }
}
