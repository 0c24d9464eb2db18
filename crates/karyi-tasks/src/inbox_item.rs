//! Message of a person that waits for the Teller.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::argument::check_text;
use crate::folder::Record;
use crate::task_id::TaskId;

/// Message of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InboxItem {
    /// Identifier.
    pub id: TaskId,
    /// Text.
    pub text: String,
    /// Time.
    pub created_at: Timestamp,
}

impl Record for InboxItem {
    fn id(&self) -> &TaskId {
        &self.id
    }

    fn check(&self, _folder: &str) -> Result<(), String> {
        check_text("text", &self.text).map_err(|error| error.message)
    }
}
