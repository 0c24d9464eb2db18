//! The fields of a result, as a tree of values or as JSON text. They are masked where they are made, here.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_vault::redact::{Redactable, Redacted, Redactor};

/// A representation of a result's fields.
pub trait Fields: Sized {
    /// Converts and masks a tool's output.
    ///
    /// # Errors
    /// The output cannot be written as JSON.
    fn of(output: &impl Serialize, redactor: &Redactor) -> Result<Redacted<Self>, ToolError>;
}

impl Fields for Map<String, Value> {
    fn of(output: &impl Serialize, redactor: &Redactor) -> Result<Redacted<Self>, ToolError> {
        let value = redactor.redact_result(output).map_err(unwritten)?;
        Ok(value.map(|value| match value {
            Value::Object(map) => map,
            other => Self::from_iter([("value".to_owned(), other)]),
        }))
    }
}

/// The fields of a result as the text of a JSON object. Passing it on is cheaper than building values.
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
    fn of(output: &impl Serialize, redactor: &Redactor) -> Result<Redacted<Self>, ToolError> {
        Ok(redactor.seal(Self::written(output)?))
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
        Self(text)
    }
}

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
            let map: Redacted<Map<String, Value>> = Fields::of(&output, &redactor).unwrap();
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
