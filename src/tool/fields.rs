//! The fields of a result in the form they are wanted in.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// A form of the fields of a result.
pub trait Fields: Sized {
    /// Makes it of a tool's output.
    ///
    /// # Errors
    /// The output cannot be written as JSON.
    fn of(output: &impl Serialize) -> Result<Self, ToolError>;
}

impl Fields for Map<String, Value> {
    fn of(output: &impl Serialize) -> Result<Self, ToolError> {
        Ok(match serde_json::to_value(output).map_err(unwritten)? {
            Value::Object(map) => map,
            other => Self::from_iter([("value".to_owned(), other)]),
        })
    }
}

/// The fields of a result as the text of a JSON object: for who only passes them on, this is much
/// less work than a tree of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldText(String);

impl FieldText {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the fields as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Fields for FieldText {
    fn of(output: &impl Serialize) -> Result<Self, ToolError> {
        let mut text = Vec::with_capacity(limits::FIELDS_BYTES);
        serde_json::to_writer(&mut text, output).map_err(unwritten)?;
        let text = String::from_utf8(text).map_err(|error| {
            ToolError::new(ErrorCode::Internal, format!("a result is no text: {error}"))
        })?;
        Ok(match text.starts_with('{') {
            true => Self(text),
            false => Self(format!("{{\"value\":{text}}}")),
        })
    }
}

impl<'de> Deserialize<'de> for FieldText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        Self::of(&fields).map_err(serde::de::Error::custom)
    }
}

fn unwritten(error: serde_json::Error) -> ToolError {
    let message = format!("a result could not be written: {error}");
    ToolError::new(ErrorCode::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_say_the_same() {
        for output in [json!({"b": 1, "a": [null, "x\n"]}), json!(7), json!("{")] {
            let map: Map<String, Value> = Fields::of(&output).unwrap();
            let written = FieldText::of(&output).unwrap();
            assert_eq!(written.to_value(), Value::Object(map.clone()));
            assert_eq!(written.as_str(), Value::Object(map).to_string());
        }
    }

    #[test]
    fn only_an_object_is_read() {
        let read = |text: &str| serde_json::from_str::<FieldText>(text).ok();
        assert_eq!(read("{ \"a\" : 1 }"), Some(FieldText("{\"a\":1}".into())));
        assert_eq!(read("[1]"), None);
    }
}
