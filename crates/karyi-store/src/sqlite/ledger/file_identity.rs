//! Where the file of the ledger is. One that was moved or removed while it is open takes records that
//! nobody may find.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;

/// The file that was opened, by its path and by what it is.
pub(super) struct FileIdentity {
    path: PathBuf,
    file: (u64, u64),
}

impl FileIdentity {
    /// Notes the file of a connection; nothing when it has none.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let path = PathBuf::from(connection.path()?);
        let file = file(&path)?;
        Some(Self { path, file })
    }

    /// Looks whether it is still there.
    ///
    /// # Errors
    /// It is not.
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
