//! Errors of a store.

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::ids::NoRandomBytes;

/// Failure of a store operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The deadline of the call passed; nothing was changed.
    #[error("the deadline passed; nothing was changed")]
    Expired,
    /// Another program holds the database.
    #[error("the database is locked by another program")]
    Busy,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The record cannot be written now and waits in memory.
    #[error("it cannot be written now and waits in memory until it can")]
    Late,
    /// The operation contradicts the stored data.
    #[error("{0}")]
    Conflict(String),
    /// The store has been closed.
    #[error("the database has been closed")]
    Closed,
    /// Any other error, in the words of the database; for logs, never for callers.
    #[error("{0}")]
    Broken(String),
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Expired => Self::new(
                ErrorCode::Timeout,
                "the time for the call was up; nothing was changed",
            ),
            StoreError::Conflict(message) => {
                Self::new(ErrorCode::NotFound, message).with_hint("check tenant and site")
            }
            StoreError::Busy | StoreError::Full | StoreError::Late | StoreError::Closed => {
                Self::new(
                    ErrorCode::Unavailable,
                    "the data of the site cannot be reached now",
                )
            }
            // The text of the database may name files and statements.
            StoreError::Broken(_) => Self::new(
                ErrorCode::Internal,
                "the data of the site could not be read or written",
            ),
        }
    }
}

impl From<NoRandomBytes> for StoreError {
    fn from(error: NoRandomBytes) -> Self {
        Self::Broken(error.to_string())
    }
}
