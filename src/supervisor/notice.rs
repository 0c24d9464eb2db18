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
    /// Its readers.
    pub audience: Audience,
}

/// Readers of a piece of news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The user, who gave the work.
    User,
    /// Somebody who can mend what hinders the work.
    Operator,
    /// A person who watches.
    Watcher,
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
            audience: Audience::Watcher,
        }
    }

    /// Makes news of something that hinders the work, and that somebody has to mend.
    #[must_use]
    pub fn problem(event: &'static str, text: impl Into<String>, fields: Value) -> Self {
        Self {
            audience: Audience::Operator,
            ..Self::progress(event, text, fields)
        }
    }

    /// Makes something that the user is told.
    #[must_use]
    pub fn to_user(event: &'static str, text: &str, fields: Value) -> Self {
        Self {
            audience: Audience::User,
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
