//! The fields of a result, as a tree of values or as JSON text. They are masked where they are made, here.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_vault::redact::{Redactable, Redacted, Redactor};

/// A representation of a result's fields.
pub trait Fields: Sized {
    /// Converts and masks a tool's output. `later`, if given, can serialize it on demand.
    ///
    /// # Errors
    /// The output cannot be written as JSON.
    fn of(
        output: &impl Serialize,
        later: impl FnOnce() -> Option<Arc<dyn DeferredJson>>,
        redactor: &Redactor,
    ) -> Result<Redacted<Self>, ToolError>;
}

impl Fields for Map<String, Value> {
    fn of(
        output: &impl Serialize,
        _: impl FnOnce() -> Option<Arc<dyn DeferredJson>>,
        redactor: &Redactor,
    ) -> Result<Redacted<Self>, ToolError> {
        let value = redactor.redact_result(output).map_err(unwritten)?;
        Ok(value.map(|value| match value {
            Value::Object(map) => map,
            other => Self::from_iter([("value".to_owned(), other)]),
        }))
    }
}

/// A result that is serialized on demand, to save the memory of its text.
pub trait DeferredJson: Send + Sync {
    /// Returns the approximate length of the text in bytes.
    fn bytes(&self) -> usize;

    /// Appends the JSON object, exactly as the result serializes.
    fn write(&self, text: &mut Vec<u8>);
}

/// The fields of a result as the text of a JSON object. Passing it on is cheaper than building values.
#[derive(Clone)]
pub struct FieldText {
    text: OnceLock<String>,
    /// Serializes the text, when it was not there from the start.
    later: Option<Arc<dyn DeferredJson>>,
}

impl FieldText {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.get_or_init(|| {
            let mut text = Vec::with_capacity(self.bytes());
            self.add_to(&mut text);
            // The serializer writes only UTF-8.
            String::from_utf8(text).unwrap_or_default()
        })
    }

    /// Returns the approximate length of the text in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let later = || self.later.as_ref().map_or(0, |later| later.bytes());
        self.text.get().map_or_else(later, String::len)
    }

    /// Appends the text to a buffer.
    pub fn add_to(&self, text: &mut Vec<u8>) {
        match (self.text.get(), &self.later) {
            (Some(own), _) => text.extend_from_slice(own.as_bytes()),
            (None, Some(later)) => later.write(text),
            (None, None) => {}
        }
    }

    /// Returns the fields as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl Fields for FieldText {
    fn of(
        output: &impl Serialize,
        later: impl FnOnce() -> Option<Arc<dyn DeferredJson>>,
        redactor: &Redactor,
    ) -> Result<Redacted<Self>, ToolError> {
        let fields = match later() {
            Some(later) => Self {
                text: OnceLock::new(),
                later: Some(later),
            },
            None => Self::written(output)?,
        };
        Ok(redactor.seal(fields))
    }
}

impl Redactable for FieldText {
    /// Masks the result of a site's tool, which may echo its input: placeholders in it are the caller's.
    fn mask(&mut self, redactor: &Redactor) {
        if !redactor.is_idle() {
            let mut value = self.to_value();
            redactor.redact_json_again(&mut value);
            *self = value.to_string().into();
        }
    }
}

impl From<String> for FieldText {
    fn from(text: String) -> Self {
        Self {
            text: text.into(),
            later: None,
        }
    }
}

impl fmt::Debug for FieldText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldText").field(&self.as_str()).finish()
    }
}

impl PartialEq for FieldText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for FieldText {}

impl FieldText {
    /// Writes a tool's output.
    ///
    /// # Errors
    /// The output cannot be written as JSON.
    pub fn written(output: &impl Serialize) -> Result<Self, ToolError> {
        let mut text = Vec::with_capacity(limits::FIELDS_BYTES);
        serde_json::to_writer(&mut text, output).map_err(unwritten)?;
        let text = String::from_utf8(text).map_err(|error| {
            ToolError::new(ErrorCode::Internal, format!("a result is no text: {error}"))
        })?;
        Ok(match text.starts_with('{') {
            true => text.into(),
            false => format!("{{\"value\":{text}}}").into(),
        })
    }
}

impl<'de> Deserialize<'de> for FieldText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        Self::written(&fields).map_err(serde::de::Error::custom)
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
            let redactor = Redactor::new(&Default::default());
            let map: Redacted<Map<String, Value>> =
                Fields::of(&output, || None, &redactor).unwrap();
            let map = map.into_inner();
            let written = FieldText::written(&output).unwrap();
            assert_eq!(written.to_value(), Value::Object(map.clone()));
            assert_eq!(written.as_str(), Value::Object(map).to_string());
        }
    }

    #[test]
    fn only_an_object_is_read() {
        let read = |text: &str| serde_json::from_str::<FieldText>(text).ok();
        assert_eq!(
            read("{ \"a\" : 1 }"),
            Some(FieldText::from("{\"a\":1}".to_owned()))
        );
        assert_eq!(read("[1]"), None);
    }
}
