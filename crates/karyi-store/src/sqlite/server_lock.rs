//! One server per database: what one process has begun no other may call interrupted.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::StoreError;
use crate::sqlite::private_files;

/// The right to serve a database, given back when dropped.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Takes the right to serve the database `path`.
    ///
    /// # Errors
    /// Another process has it.
    pub fn acquire(path: &Path) -> Result<Self, StoreError> {
        let path = path.with_extension("lock");
        let broken = |error: &dyn std::fmt::Display| {
            StoreError::Broken(format!("locking {}: {error}", path.display()))
        };
        let file = private_files::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| broken(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Conflict(format!(
                "another karyi serves this database ({} is locked); name another one with --db FILE",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(broken(&error)),
        }
    }
}
