//! One unit of a stream: an event of SSE, or a line of JSON.

use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind};
use crate::server_json;

/// Unit of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Name of an event of SSE; empty without one.
    pub name: String,
    /// Content.
    pub data: String,
}

impl Frame {
    /// Returns the content as JSON. Text in it that is not valid is replaced.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn json(&self) -> Result<Value, ModelError> {
        server_json::parse(&self.data).map_err(|error| {
            let message = format!("the server sent an event that is no JSON: {error}");
            ModelError::new(ModelErrorKind::Protocol, message)
        })
    }
}
