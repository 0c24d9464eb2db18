//! News of a supervisor, for the log, for programs and for people.

use jiff::Timestamp;
use karyi_vault::redact::Redactor;
use serde_json::{Map, Value};

/// One piece of news; its texts have been masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Word of the event.
    pub event: &'static str,
    /// Time.
    pub time: Timestamp,
    /// Line for people, or the whole text of a reply or question.
    pub text: String,
    /// Facts for programs.
    pub fields: Map<String, Value>,
    /// True for what the user is told, false for progress.
    pub is_for_user: bool,
}

impl Notice {
    /// Makes news about the progress; `fields` is an object.
    #[must_use]
    pub fn progress(event: &'static str, text: impl Into<String>, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            event,
            time: Timestamp::now(),
            text: text.into(),
            fields,
            is_for_user: false,
        }
    }

    /// Makes something that the user is told.
    #[must_use]
    pub fn to_user(event: &'static str, text: &str, fields: Value) -> Self {
        Self {
            is_for_user: true,
            ..Self::progress(event, text, fields)
        }
    }

    /// Returns it with the values of secrets masked.
    #[must_use]
    pub fn masked(mut self, redactor: &Redactor) -> Self {
        self.text = redactor.redact_again(&self.text).into_owned();
        for value in self.fields.values_mut() {
            redactor.redact_values_again(value);
        }
        self
    }
}
