//! Issues of loading stored values.

use std::fmt;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// Kind of issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadIssueKind {
    /// The values could not be read and are not masked.
    Unread,
    /// The values are in a store that the session does not use and are not masked.
    Elsewhere,
    /// The values cannot be used and are masked.
    Unusable,
}

/// Stored values that a session cannot use.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadIssue {
    /// Kind of issue.
    pub kind: LoadIssueKind,
    /// Cause.
    pub error: ToolError,
    /// Names of the values; empty for all values of the store.
    pub names: Vec<SecretName>,
}

/// Most names in one message.
const MOST_LISTED: usize = 10;

/// Joins names for a message, up to a limit.
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

/// Returns the issue of a session that dropped former values.
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
