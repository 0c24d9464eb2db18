//! Input of a session of the Teller: messages and events, kept until the session ends.
//!
//! `teller_session.json` names the items of the session that has begun. One that was cut begins again with the same items,
//! so that its calls come in the same order and what it had delegated is known; what is new waits for the next one.

use std::collections::BTreeSet;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::folder::json;
use crate::history::{self, HistoryEntry, Speaker};
use crate::inbox_item::InboxItem;
use crate::question;
use crate::state_directory::StateDirectory;
use crate::state_folder::ReadFailure;
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

/// Name of the file about the session that has begun.
const FILE: &str = "teller_session.json";

/// Session that has begun.
#[derive(Serialize, Deserialize)]
struct BegunSession {
    /// Identifiers of its items.
    items: BTreeSet<TaskId>,
}

/// Returns what waits for the Teller: the items of the session that was cut, else everything.
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
    let Some(begun) = begun(state)? else {
        return Ok(TellerInput { inbox, events });
    };
    let is_of = |id: &TaskId| begun.items.contains(id);
    let is_left =
        inbox.iter().any(|item| is_of(&item.id)) || events.iter().any(|event| is_of(&event.id));
    if is_left {
        inbox.retain(|item| is_of(&item.id));
        events.retain(|event| is_of(&event.id));
    }
    Ok(TellerInput { inbox, events })
}

/// Returns the time of the newest item of a session that was cut: what was said later may not have been shown.
///
/// # Errors
/// The system fails.
pub fn cut_session(state: &StateDirectory) -> Result<Option<Timestamp>, ToolError> {
    match begun(state)? {
        Some(_) => Ok(waiting(state)?.newest()),
        None => Ok(None),
    }
}

fn begun(state: &StateDirectory) -> Result<Option<BegunSession>, ToolError> {
    match state.root.read(FILE, limits::MAX_STATE_FILE_BYTES) {
        Ok((bytes, _)) => match serde_json::from_slice(&bytes) {
            Ok(begun) => Ok(Some(begun)),
            Err(_) => {
                state.move_to_corrupt(&state.root, "state", FILE)?;
                Ok(None)
            }
        },
        Err(ReadFailure::Missing) => Ok(None),
        Err(failure) => Err(state.root.failure(FILE, failure)),
    }
}

/// Begins a session: its items are noted, and the messages become part of the history, once.
///
/// # Errors
/// The system fails.
pub fn begin(state: &StateDirectory, input: &TellerInput) -> Result<(), ToolError> {
    let entry = |item: &InboxItem| {
        HistoryEntry::new(item.id.clone(), Speaker::User, &item.text, item.created_at)
    };
    let entries: Vec<HistoryEntry> = input.inbox.iter().map(entry).collect();
    let lock = state.lock()?;
    let inbox = input.inbox.iter().map(|item| item.id.clone());
    let items = inbox.chain(input.events.iter().map(|event| event.id.clone()));
    let begun = BegunSession {
        items: items.collect(),
    };
    state.root.write(FILE, &json(&begun)?)?;
    history::add_once(state, &lock, &entries)
}

/// Ends a session: what it was given is removed.
///
/// # Errors
/// The system fails.
pub fn end(state: &StateDirectory, input: &TellerInput) -> Result<(), ToolError> {
    let inbox = input.inbox.iter();
    let inbox = inbox.map(|item| (item.created_at, &item.id, true));
    let events = input.events.iter();
    let events = events.map(|event| (event.created_at, &event.id, false));
    let mut items: Vec<_> = inbox.chain(events).collect();
    items.sort();
    // The oldest item, which names the session, goes last.
    for (_, id, is_message) in items.into_iter().rev() {
        match is_message {
            true => state.inbox.remove(id)?,
            false => state.events.remove(id)?,
        };
    }
    state.root.remove(FILE)?;
    Ok(())
}
