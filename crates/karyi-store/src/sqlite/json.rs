//! Values stored as JSON text.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;

/// Parses a stored value.
pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Broken(format!("a stored value: {error}")))
}

/// Serialises a value.
pub(super) fn text<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Broken(error.to_string()))
}
