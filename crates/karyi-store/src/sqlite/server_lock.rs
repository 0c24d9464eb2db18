//! Locks of a database: one server at a time, beside any number of other programs that use its data.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::sqlite::private_files;

/// Right to use a database, released on drop. The first one to use it closes the calls that an earlier program left
/// open; while others use it, such calls may be theirs.
#[derive(Debug)]
pub struct ServerLock {
    /// Lock that only one server holds; programs that are no server do not take it.
    _server: Option<File>,
    /// Lock that all users of the database share.
    users: File,
    is_first: bool,
    path: PathBuf,
}

impl ServerLock {
    /// Acquires the right to serve the database `path`.
    ///
    /// # Errors
    /// Another process serves it, or the lock files cannot be opened.
    pub fn acquire(path: &Path) -> Result<Self, StoreError> {
        let name = path.with_extension("lock");
        let server = open(&name)?;
        match server.try_lock() {
            Ok(()) => Self::new(path, Some(server)),
            Err(TryLockError::WouldBlock) => Err(StoreError::Conflict(format!(
                "another karyi serves this database ({} is locked); name another one with --db FILE",
                name.display()
            ))),
            Err(TryLockError::Error(error)) => Err(broken(&name, &error)),
        }
    }

    /// Acquires the right to use the database `path`, beside a server.
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn share(path: &Path) -> Result<Self, StoreError> {
        Self::new(path, None)
    }

    fn new(path: &Path, server: Option<File>) -> Result<Self, StoreError> {
        let path = path.with_extension("users");
        let users = open(&path)?;
        let is_first = match users.try_lock() {
            Ok(()) => true,
            // Until the first one has closed the calls of earlier programs.
            Err(TryLockError::WouldBlock) => {
                users.lock_shared().map_err(|error| broken(&path, &error))?;
                false
            }
            Err(TryLockError::Error(error)) => return Err(broken(&path, &error)),
        };
        Ok(Self {
            _server: server,
            users,
            is_first,
            path,
        })
    }

    /// Returns true if no other program uses the database; others wait until [`ServerLock::admit_others`].
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Lets other programs use the database.
    ///
    /// # Errors
    /// The lock cannot be changed.
    pub fn admit_others(&mut self) -> Result<(), StoreError> {
        self.is_first = false;
        let shared = self.users.lock_shared();
        shared.map_err(|error| broken(&self.path, &error))
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    private_files::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| broken(path, &error))
}

fn broken(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Broken(format!("locking {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_and_any_number_of_users() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("site.db");
        let mut server = ServerLock::acquire(&path).unwrap();
        assert!(server.is_first());
        server.admit_others().unwrap();
        let user = ServerLock::share(&path).unwrap();
        assert!(!user.is_first() && !ServerLock::share(&path).unwrap().is_first());
        let refused = ServerLock::acquire(&path).unwrap_err();
        assert!(refused.to_string().contains("another karyi serves"));
        drop(server);
        assert!(!ServerLock::acquire(&path).unwrap().is_first());
        drop(user);
        assert!(ServerLock::acquire(&path).unwrap().is_first());
    }
}
