//! The conversation between user and Teller: one message a line, never shortened.
//!
//! A file that has grown large is renamed to `history-N.jsonl`, and a new one begins.

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::argument::{check_text, misfit, whole};
use crate::state_directory::StateDirectory;
use crate::state_folder::{ChangeLock, Move};
use crate::task_id::TaskId;

/// Name of the file that grows.
const FILE: &str = "history.jsonl";

/// Speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The user.
    User,
    /// The Teller.
    #[serde(alias = "agent")]
    Assistant,
}

/// Message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Speaker.
    pub role: Speaker,
    /// Text.
    pub text: String,
    /// Time.
    pub created_at: Timestamp,
}

/// Line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HistoryEntry {
    id: TaskId,
    #[serde(flatten)]
    message: Message,
}

impl HistoryEntry {
    pub(crate) fn new(id: TaskId, role: Speaker, text: &str, created_at: Timestamp) -> Self {
        let message = Message {
            role,
            text: text.to_owned(),
            created_at,
        };
        Self { id, message }
    }
}

/// Adds a message of the Teller or the user.
///
/// # Errors
/// The system fails.
pub fn add(
    state: &StateDirectory,
    role: Speaker,
    text: &str,
    now: Timestamp,
) -> Result<(), ToolError> {
    let entry = HistoryEntry::new(TaskId::random()?, role, text, now);
    add_once(state, &state.lock()?, &[entry])
}

/// Adds an answer of the Teller.
///
/// # Errors
/// `bad_arguments` for a blank or too long text, or the system fails.
pub fn reply(state: &StateDirectory, text: &str, now: Timestamp) -> Result<(), ToolError> {
    check_text("text", text)?;
    add(state, Speaker::Assistant, text, now)
}

/// Adds the messages that are not in the history yet.
pub(crate) fn add_once(
    state: &StateDirectory,
    _lock: &ChangeLock,
    entries: &[HistoryEntry],
) -> Result<(), ToolError> {
    // An unfinished line is cut off by the next one: what it holds is not in the history.
    let end = state.root.end_of_lines(FILE)?;
    let tail = state
        .root
        .read_before(FILE, end, limits::HISTORY_TAIL_BYTES)?;
    let mut lines = Vec::new();
    for entry in entries {
        // A text that looks like this has its quotes escaped.
        let mark = format!("\"id\":\"{}\"", entry.id);
        if memmem::find(&tail, mark.as_bytes()).is_none() {
            let line = serde_json::to_vec(entry);
            let line =
                line.map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
            lines.extend(line);
            lines.push(b'\n');
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let size = state.root.time_of(FILE).map_or(0, |time| time.size);
    if size >= limits::MAX_HISTORY_FILE_BYTES {
        let mut number = 1;
        while state.root.move_to(FILE, &state.root, &older(number))? == Move::Occupied {
            number += 1;
        }
    }
    state.root.append_lines(FILE, &lines, true)
}

fn older(number: u64) -> String {
    format!("history-{number}.jsonl")
}

/// Returns the names of the files with their lengths, the oldest one first; that of the newest ends with its last whole
/// line.
fn files(state: &StateDirectory) -> Result<Vec<(String, u64)>, ToolError> {
    let mut names = Vec::new();
    while state.root.has(&older(names.len() as u64 + 1))? {
        names.push(older(names.len() as u64 + 1));
    }
    names.push(FILE.to_owned());
    let files = names.into_iter().map(|name| {
        let length = match name == FILE {
            true => state.root.end_of_lines(&name)?,
            false => state.root.time_of(&name).map_or(0, |time| time.size),
        };
        Ok((name, length))
    });
    files.collect()
}

/// Returns the place behind the last message, in bytes from the first one on.
pub(crate) fn end(state: &StateDirectory, _lock: &ChangeLock) -> Result<u64, ToolError> {
    Ok(files(state)?.iter().map(|(_, length)| length).sum())
}

/// Returns the messages from a place on with their identifiers, and the place behind them. A place behind the end, such
/// as that of a history that was removed, is the end.
///
/// # Errors
/// The system fails.
pub fn since(
    state: &StateDirectory,
    place: u64,
) -> Result<(Vec<(TaskId, Message)>, u64), ToolError> {
    // No file is renamed meanwhile.
    let _lock = state.lock()?;
    let (mut said, mut start) = (Vec::new(), 0);
    for (name, length) in files(state)? {
        let from = place.saturating_sub(start);
        if from < length {
            let bytes = state.root.read_range(&name, from, length)?;
            for line in bytes.split(|byte| *byte == b'\n') {
                let entry = serde_json::from_slice::<HistoryEntry>(line);
                said.extend(entry.map(|entry| (entry.id, entry.message)));
            }
        }
        start += length;
    }
    Ok((said, start))
}

/// Passes messages to `found`, the last one first, until it returns false. No more is read than that needs.
fn each_from_end(
    state: &StateDirectory,
    found: &mut dyn FnMut(Message) -> bool,
) -> Result<(), ToolError> {
    // No file is renamed or cut meanwhile.
    let _lock = state.lock()?;
    for (name, mut end) in files(state)?.into_iter().rev() {
        let mut most = limits::HISTORY_BLOCK_BYTES;
        while end > 0 {
            let bytes = state.root.read_before(&name, end, most)?;
            for line in bytes.rsplit(|byte| *byte == b'\n') {
                if let Ok(entry) = serde_json::from_slice::<HistoryEntry>(line)
                    && !found(entry.message)
                {
                    return Ok(());
                }
            }
            // All that is left was read.
            if most >= end {
                break;
            }
            // A block without a whole line is a part of a longer one.
            if bytes.is_empty() {
                most = most.saturating_mul(2);
            }
            end -= bytes.len() as u64;
        }
    }
    Ok(())
}

/// Returns the last `count` messages before the last `offset`, in the order in which they were said.
///
/// # Errors
/// `bad_arguments` naming the argument, or the system fails.
pub fn recent(state: &StateDirectory, count: i64, offset: i64) -> Result<Vec<Message>, ToolError> {
    let count = whole("count", count, 1, limits::MAX_HISTORY_MESSAGES)?;
    let unfit = |_| misfit("offset", "a whole number from 0 on", offset);
    let mut skipped = usize::try_from(offset).map_err(unfit)?;
    let mut messages = Vec::new();
    each_from_end(state, &mut |message| {
        match skipped.checked_sub(1) {
            Some(left) => skipped = left,
            None => messages.push(message),
        }
        messages.len() < count
    })?;
    messages.reverse();
    Ok(messages)
}

/// Messages of a time, and the number of older ones that are too many for one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRange {
    /// Messages in the order in which they were said.
    pub messages: Vec<Message>,
    /// Number of messages of that time before them.
    pub omitted: usize,
}

/// Returns the messages from `after` to `before`, both included.
///
/// # Errors
/// `bad_arguments` when `after` is later than `before`, or the system fails.
pub fn between(
    state: &StateDirectory,
    after: Timestamp,
    before: Timestamp,
) -> Result<HistoryRange, ToolError> {
    if after > before {
        return Err(misfit("after", &format!("a time up to {before}"), after));
    }
    let mut range = HistoryRange {
        messages: Vec::new(),
        omitted: 0,
    };
    // Clocks jump, so an older message may have a later time.
    each_from_end(state, &mut |message| {
        if (after..=before).contains(&message.created_at) {
            match range.messages.len() < limits::MAX_HISTORY_MESSAGES {
                true => range.messages.push(message),
                false => range.omitted += 1,
            }
        }
        true
    })?;
    range.messages.reverse();
    Ok(range)
}
