//! Writes `config.toml`: wholly or not at all.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

use crate::cli::config::error::shown;
use karyi_vault::store::private_file::{self, Guard};

/// Replaces the file, or the file that it is a link to. Mode and owner stay; a new file and its directories are
/// private.
///
/// # Errors
/// The system's; the file is as it was.
pub(in crate::cli) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    replaced(file, text).with_context(|| format!("writing {}", shown(file)))
}

/// Locks the file for a change, until the result is dropped; another change waits. The lock is a file beside it.
///
/// # Errors
/// Another process keeps it locked, or the system's.
pub(super) fn lock(file: &Path) -> anyhow::Result<Guard> {
    make_directory(&parent(file)).with_context(|| format!("writing {}", shown(file)))?;
    private_file::lock_to_read(file).map_err(|error| anyhow::Error::msg(error.message))
}

fn replaced(file: &Path, text: &str) -> io::Result<()> {
    let (target, before) = match fs::canonicalize(file) {
        Ok(target) => {
            let before = fs::metadata(&target)?;
            (target, Some(before))
        }
        Err(_) => (file.to_owned(), None),
    };
    let directory = parent(&target);
    let mut temporary = temporary(&directory)?;
    temporary.write_all(text.as_bytes())?;
    if let Some(before) = before {
        // Only root can give a file away.
        let _ = fchown(temporary.as_file(), Some(before.uid()), Some(before.gid()));
        temporary.as_file().set_permissions(before.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    if let Ok(directory) = File::open(&directory) {
        // Some file systems cannot; the file is complete in any case.
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Creates a private file in a directory, which is created when it is missing.
///
/// # Errors
/// The system's.
pub(super) fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    make_directory(directory)?;
    tempfile::Builder::new()
        .prefix(".config-")
        .suffix(".toml")
        .tempfile_in(directory)
}

/// Creates a private directory, and those above it.
fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Returns the directory of a file.
pub(super) fn parent(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_mode_and_its_link() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a/b/config.toml");
        write(&file, "1").unwrap();
        assert_eq!(
            (mode(&file), mode(&temp.path().join("a/b"))),
            (0o600, 0o700)
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = temp.path().join("link.toml");
        symlink("a/b/config.toml", &link).unwrap();
        write(&link, "2").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "2");
        assert_eq!(mode(&file), 0o640);
        let names = fs::read_dir(temp.path().join("a/b")).unwrap();
        assert_eq!(names.count(), 1);
        let error = write(&file.join("x"), "3").unwrap_err();
        assert!(error.to_string().starts_with("writing "), "{error}");
    }
}
