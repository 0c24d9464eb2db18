//! Opens databases: settings and migrations.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::StoreError;
use crate::sqlite::private_files;
use karyi_core::limits;

/// Opens a database for writing, creates it if needed and migrates its schema; `steps` are all migrations in
/// order.
///
/// # Errors
/// It is not a database, cannot be written, or was created by a newer version.
pub(super) fn open_to_write(path: &Path, steps: &[&str]) -> Result<Connection, StoreError> {
    private_files::make_file(path);
    let mut connection = Connection::open(path).map_err(|error| named(path, &error.into()))?;
    settings(&connection).map_err(|error| named(path, &error.into()))?;
    migrate(&mut connection, steps).map_err(|error| named(path, &error))?;
    Ok(connection)
}

/// Opens an existing database for reading.
///
/// # Errors
/// It does not exist or is not a database.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| named(path, &error.into()))?;
    connection.busy_timeout(limits::DATABASE_BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(limits::CACHED_STATEMENTS);
    Ok(connection)
}

fn settings(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(limits::DATABASE_BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(limits::CACHED_STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if done > steps.len() {
        return Err(StoreError::Broken(format!(
            "the database has version {done} and this program knows {}; use a newer karyi",
            steps.len()
        )));
    }
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", steps.len())?;
    Ok(transaction.commit()?)
}

fn named(path: &Path, error: &StoreError) -> StoreError {
    StoreError::Broken(format!("opening the database {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_database_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let steps = ["CREATE TABLE a(x)", "CREATE TABLE b(x)"];
        drop(open_to_write(&path, &steps[..1]).unwrap());
        let connection = open_to_write(&path, &steps).unwrap();
        connection.execute("INSERT INTO b VALUES (1)", ()).unwrap();
        drop(connection);
        let error = open_to_write(&path, &steps[..1]).unwrap_err();
        assert!(error.to_string().contains("has version 2"), "{error}");
    }

    #[test]
    fn databases_and_their_side_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        private_files::make_directory(&inner).unwrap();
        let path = inner.join("a.db");
        let connection = open_to_write(&path, &["CREATE TABLE a(x)"]).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let files = ["a.db", "a.db-wal", "a.db-shm"].map(|name| mode(&inner.join(name)));
        assert_eq!((mode(&inner), files), (0o700, [0o600; 3]));
        drop(connection);
        // Whoever widened the permissions did so on purpose.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let _connection = open_to_write(&path, &["CREATE TABLE a(x)"]).unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        std::fs::write(&path, "not a database, only text of some length").unwrap();
        let error = open_to_write(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("file is not a database"), "{error}");
    }
}
