//! Allows one server per database: calls of a running process must not be reported as interrupted.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::StoreError;
use crate::sqlite::private_files;

/// Exclusive right to serve a database, released on drop.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Acquires the lock of the database `path`.
    ///
    /// # Errors
    /// Another process holds it.
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
