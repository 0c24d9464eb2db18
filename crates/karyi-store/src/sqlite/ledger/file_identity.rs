//! Detects that the open ledger file was moved or removed: records written to it would be lost.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;

/// Path and inode of the opened file.
pub(super) struct FileIdentity {
    path: PathBuf,
    file: (u64, u64),
}

impl FileIdentity {
    /// Identifies the file of a connection; `None` when it has none.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let path = PathBuf::from(connection.path()?);
        let file = file(&path)?;
        Some(Self { path, file })
    }

    /// Checks that the file is still in place.
    ///
    /// # Errors
    /// It was moved or removed.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match file(&self.path) == Some(self.file) {
            true => Ok(()),
            false => Err(StoreError::Broken(
                "the file of the ledger was moved or removed; start the server again".into(),
            )),
        }
    }
}

fn file(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
