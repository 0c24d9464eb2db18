//! What a session of the Teller is given: messages and events, which stay until the session ended.

use jiff::Timestamp;
use karyi_core::error::ToolError;

use crate::event::Event;
use crate::history::{self, HistoryEntry, Speaker};
use crate::inbox_item::InboxItem;
use crate::question;
use crate::state_directory::StateDirectory;
use crate::task_id::TaskId;

/// Input of one session of the Teller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TellerInput {
    /// Messages in the order of their times.
    pub inbox: Vec<InboxItem>,
    /// Events in the order of their times.
    pub events: Vec<Event>,
}

impl TellerInput {
    /// Returns the name of the session: the oldest item, so that a session that was cut has the same name again.
    #[must_use]
    pub fn session(&self) -> Option<&TaskId> {
        let items = self.inbox.iter().map(|item| (item.created_at, &item.id));
        let events = self
            .events
            .iter()
            .map(|event| (event.created_at, &event.id));
        items.chain(events).min().map(|(_, id)| id)
    }

    /// Returns the time of the newest item.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        let items = self.inbox.iter().map(|item| item.created_at);
        items
            .chain(self.events.iter().map(|event| event.created_at))
            .max()
    }
}

/// Returns what waits for the Teller.
///
/// # Errors
/// The system fails.
pub fn waiting(state: &StateDirectory) -> Result<TellerInput, ToolError> {
    // An answer counts once its question is removed, and a result once its task has left `running`: until then a
    // repetition may write the event again.
    question::pending(state)?;
    let inbox = state.inbox.records()?;
    let mut inbox: Vec<InboxItem> = inbox.values().map(|item| InboxItem::clone(item)).collect();
    inbox.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    let mut events = Vec::new();
    for event in state.events.records()?.values() {
        if !state.planner.running.has(&event.id)? && !state.worker.running.has(&event.id)? {
            events.push(Event::clone(event));
        }
    }
    events.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    Ok(TellerInput { inbox, events })
}

/// Begins a session: the messages become part of the history, once.
///
/// # Errors
/// The system fails.
pub fn begin(state: &StateDirectory, input: &TellerInput) -> Result<(), ToolError> {
    let entry = |item: &InboxItem| {
        HistoryEntry::new(item.id.clone(), Speaker::User, &item.text, item.created_at)
    };
    let entries: Vec<HistoryEntry> = input.inbox.iter().map(entry).collect();
    history::add_once(state, &state.lock()?, &entries)
}

/// Ends a session: what it was given is removed.
///
/// # Errors
/// The system fails.
pub fn end(state: &StateDirectory, input: &TellerInput) -> Result<(), ToolError> {
    for event in &input.events {
        state.events.remove(&event.id)?;
    }
    // The oldest item, which names the session, goes last.
    for item in input.inbox.iter().rev() {
        state.inbox.remove(&item.id)?;
    }
    Ok(())
}
