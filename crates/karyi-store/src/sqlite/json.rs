//! Values stored as JSON text.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;

/// Reads a value that was stored as JSON.
pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Broken(format!("a stored value: {error}")))
}

/// Returns a value as JSON text.
pub(super) fn text<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Broken(error.to_string()))
}
