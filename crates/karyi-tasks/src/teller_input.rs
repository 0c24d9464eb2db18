//! Input of a session of the Teller: messages and events, kept until the session ends.
//!
//! `teller_session.json` names the items of the session that has begun. One that was cut begins again with the same items,
//! so that its calls come in the same order and what it had delegated is known; what is new waits for the next one.

use std::collections::BTreeSet;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::folder::json;
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
    /// Returns time and identifier of each item, and true for a message.
    fn items(&self) -> impl Iterator<Item = (Timestamp, &TaskId, bool)> {
        let inbox = self.inbox.iter();
        let inbox = inbox.map(|item| (item.created_at, &item.id, true));
        let events = self.events.iter();
        inbox.chain(events.map(|event| (event.created_at, &event.id, false)))
    }

    /// Returns the name of the session: the oldest item, so that a session that was cut has the same name again.
    #[must_use]
    pub fn session(&self) -> Option<&TaskId> {
        self.items().min().map(|(_, id, _)| id)
    }

    /// Returns the time of the newest item.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        self.items().map(|(time, ..)| time).max()
    }
}

/// Name of the file about the session that has begun.
const FILE: &str = "teller_session.json";

/// Session that has begun.
#[derive(Serialize, Deserialize)]
struct BegunSession {
    /// Identifiers of its items.
    items: BTreeSet<TaskId>,
    /// Place in the history.
    place: u64,
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
    let mut input = TellerInput { inbox, events };
    if let Some(begun) = begun(state)? {
        let is_of = |id: &TaskId| begun.items.contains(id);
        if input.items().any(|(_, id, _)| is_of(id)) {
            input.inbox.retain(|item| is_of(&item.id));
            input.events.retain(|event| is_of(&event.id));
        }
    }
    Ok(input)
}

/// Returns the place in the history at which a session that was cut began: what was said later may not have been shown.
///
/// # Errors
/// The system fails.
pub fn cut_session(state: &StateDirectory) -> Result<Option<u64>, ToolError> {
    Ok(begun(state)?.map(|begun| begun.place))
}

fn begun(state: &StateDirectory) -> Result<Option<BegunSession>, ToolError> {
    state.read_json(FILE, |_| Ok(()))
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
    let items: BTreeSet<TaskId> = input.items().map(|(_, id, _)| id.clone()).collect();
    // One that begins again has the place at which it first began.
    let cut = begun(state)?.filter(|cut| !cut.items.is_disjoint(&items));
    let place = cut.map_or_else(|| history::end(state, &lock), |cut| Ok(cut.place))?;
    let begun = BegunSession { items, place };
    state.root.write(FILE, &json(&begun)?)?;
    history::add_once(state, &lock, &entries)
}

/// Ends a session: what it was given is removed.
///
/// # Errors
/// The system fails.
pub fn end(state: &StateDirectory, input: &TellerInput) -> Result<(), ToolError> {
    let mut items: Vec<_> = input.items().collect();
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
