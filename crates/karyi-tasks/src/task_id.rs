//! Identifiers of tasks, triggers, questions, events and messages.
//!
//! They are names of files, so every text becomes one only through [`TaskId::parse`].

use std::borrow::Borrow;
use std::fmt;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::{ids, limits};
use serde::{Deserialize, Serialize};

use crate::argument::unknown_word;

/// Identifier of 1 to 64 ASCII letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(Box<str>);

impl TaskId {
    /// Reads an identifier.
    ///
    /// # Errors
    /// `bad_arguments` when the text is none.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let fits = (1..=limits::MAX_TASK_ID_CHARS).contains(&text.len());
        match fits && text.bytes().all(is_sign) {
            true => Ok(Self(text.into())),
            false => {
                let expected = "an id of 1 to 64 letters, digits, `_` and `-`";
                Err(unknown_word("task_id", expected, text))
            }
        }
    }

    /// Makes a new identifier.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> Result<Self, ToolError> {
        let bytes = ids::random::<16>();
        let bytes =
            bytes.map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
        Ok(Self(ids::hex(&bytes).into()))
    }

    /// Returns the identifier of what a session's call makes: the same one when the session is repeated.
    #[must_use]
    pub fn derived(session: &str, call: u64) -> Self {
        let text = format!("{session}\n{call}");
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        Self(ids::hex(digest.as_ref().get(..16).unwrap_or_default()).into())
    }

    /// Returns the identifier of a run of this trigger; runs count from 1.
    pub(crate) fn run(&self, number: u64) -> Self {
        Self(format!("{}-{number}", self.0).into())
    }

    /// Returns the number of a run of `trigger`, if this is one.
    pub(crate) fn run_number(&self, trigger: &Self) -> Option<u64> {
        let number = self.0.strip_prefix(&*trigger.0)?.strip_prefix('-')?;
        number.parse().ok()
    }

    /// Returns the name of the file of this identifier.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.json", self.0)
    }

    /// Returns the identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TaskId {
    type Error = ToolError;

    fn try_from(text: String) -> Result<Self, ToolError> {
        Self::parse(&text)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0.into()
    }
}

impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_files_are_no_ids() {
        let long = "x".repeat(65);
        for text in [
            "",
            "../../victim",
            "a/b",
            "a.json",
            ".",
            "a b",
            "é",
            "a\0",
            &long,
        ] {
            assert_eq!(
                TaskId::parse(text).unwrap_err().code,
                ErrorCode::BadArguments,
                "{text:?}"
            );
        }
        for text in ["a", "A-b_9", &long[1..]] {
            assert_eq!(TaskId::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn runs_have_the_number_behind_the_trigger() {
        let trigger = TaskId::derived("session", 1);
        assert_eq!(trigger, TaskId::derived("session", 1));
        assert_ne!(trigger, TaskId::derived("session", 2));
        assert_eq!(trigger.run(7).run_number(&trigger), Some(7));
        assert_eq!(trigger.run_number(&trigger), None);
    }
}
