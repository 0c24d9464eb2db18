//! What a session has not of the values it should know.

use std::fmt;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// How stored values are not at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadIssueKind {
    /// They could not be read, and redaction does not know them.
    Unread,
    /// They are in a store that the session does not use, and redaction does not know them.
    Elsewhere,
    /// They cannot be used, and redaction knows them.
    Unusable,
}

/// Stored values that a session cannot use.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadIssue {
    /// What is true of them.
    pub kind: LoadIssueKind,
    /// Why.
    pub error: ToolError,
    /// Which they are; none when they are all those of the store.
    pub names: Vec<SecretName>,
}

/// Most names in one message.
const MOST_LISTED: usize = 10;

/// Returns names as a message has them.
#[must_use]
pub fn listed(names: &[impl fmt::Display]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MOST_LISTED)
        .map(ToString::to_string)
        .collect();
    let mut text = shown.join(", ");
    if names.len() > shown.len() {
        text.push_str(&format!(" and {} more", names.len() - shown.len()));
    }
    text
}

/// Returns what a session lacks that had to forget values that were replaced or removed.
pub(super) fn forgotten_values() -> LoadIssue {
    let message = format!(
        "more values were replaced or removed than this session can remember ({} bytes of at most {}), and the \
         oldest are not masked any more",
        limits::MAX_FORMER_BYTES,
        limits::MAX_FORMER_SECRETS
    );
    LoadIssue {
        kind: LoadIssueKind::Unread,
        error: ToolError::new(ErrorCode::BadValue, message).with_hint("start a new session"),
        names: Vec::new(),
    }
}
