//! Messages of people that wait for the Teller.

use jiff::Timestamp;
use karyi_core::error::ToolError;

use crate::argument::check_text;
use crate::inbox_item::InboxItem;
use crate::state_directory::StateDirectory;
use crate::task_id::TaskId;

/// Adds a message.
///
/// # Errors
/// `bad_arguments` for a blank or too long text, or the system fails.
pub fn add(state: &StateDirectory, text: &str, now: Timestamp) -> Result<TaskId, ToolError> {
    check_text("text", text)?;
    let item = InboxItem {
        id: TaskId::random()?,
        text: text.to_owned(),
        created_at: now,
    };
    state.inbox.write_new(&item)?;
    Ok(item.id)
}

/// Returns the number of messages that no session of the Teller has dealt with yet.
///
/// # Errors
/// The system fails.
pub fn count(state: &StateDirectory) -> Result<usize, ToolError> {
    Ok(state.inbox.records()?.len())
}
