//! What can go wrong in a store.

/// Why a store could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The time of the call was up; nothing was changed.
    #[error("the time for it was up; nothing was changed")]
    Expired,
    /// Another program holds the database.
    #[error("the database is locked by another program")]
    Busy,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// It cannot be written now and waits in memory.
    #[error("it cannot be written now and waits in memory until it can")]
    Late,
    /// What is there already stands against it.
    #[error("{0}")]
    Conflict(String),
    /// The store has been closed.
    #[error("the database has been closed")]
    Closed,
    /// Anything else, in the words of the database; for logs, never for callers.
    #[error("{0}")]
    Broken(String),
}
