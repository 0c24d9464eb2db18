//! The log of a supervisor: one JSON object a line, with time and event.

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use serde_json::{Map, Value};

use crate::state_directory::StateDirectory;

/// Name of the file that grows.
const FILE: &str = "log.jsonl";

/// Adds a line; texts in it have been masked by the caller.
///
/// # Errors
/// The system fails.
pub fn log(
    state: &StateDirectory,
    now: Timestamp,
    event: &str,
    fields: Map<String, Value>,
) -> Result<(), ToolError> {
    let mut line = Map::new();
    line.insert("timestamp".into(), now.to_string().into());
    line.insert("event".into(), event.into());
    line.extend(fields);
    let mut bytes = serde_json::to_vec(&line)
        .map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    bytes.push(b'\n');
    let _lock = state.lock()?;
    if state
        .root
        .time_of(FILE)
        .is_some_and(|time| time.size >= limits::MAX_TASK_LOG_BYTES)
    {
        rotate(state)?;
    }
    state.root.append_lines(FILE, &bytes, false)
}

/// Returns the last failure of a model, with its time, if nothing a model did came after it.
///
/// # Errors
/// The system fails.
pub fn model_failure(state: &StateDirectory) -> Result<Option<String>, ToolError> {
    let tail = state.root.read_tail(FILE, limits::TASK_LOG_TAIL_BYTES)?;
    for line in tail.rsplit(|byte| *byte == b'\n') {
        let line: Map<String, Value> = serde_json::from_slice(line).unwrap_or_default();
        let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        match (text("event"), text("status")) {
            ("model_failed", _) => {
                return Ok(Some(format!("{} {}", text("timestamp"), text("message"))));
            }
            ("teller_ended", _) | ("task_ended", "done" | "needs_input") => break,
            _ => {}
        }
    }
    Ok(None)
}

/// Place in the log up to which its lines were read.
#[derive(Debug, Default)]
pub struct LogReader {
    place: u64,
}

impl LogReader {
    /// Returns the whole lines since the last call; those of a log that began anew meanwhile from its start on.
    ///
    /// # Errors
    /// The system fails.
    pub fn lines(&mut self, state: &StateDirectory) -> Result<Vec<String>, ToolError> {
        let size = state.root.time_of(FILE).map_or(0, |time| time.size);
        if size < self.place {
            self.place = 0;
        }
        if size == self.place {
            return Ok(Vec::new());
        }
        let bytes = state.root.read_range(FILE, self.place, u64::MAX)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let bytes = bytes.get(..whole).unwrap_or_default();
        self.place += bytes.len() as u64;
        let text = String::from_utf8_lossy(bytes);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Renames `log.jsonl` to `log.1.jsonl`, that one to `log.2.jsonl`, and so on; the last one is removed.
fn rotate(state: &StateDirectory) -> Result<(), ToolError> {
    let older = |number: usize| match number {
        0 => FILE.to_owned(),
        _ => format!("log.{number}.jsonl"),
    };
    let last = limits::MAX_TASK_LOG_FILES - 1;
    state.root.remove(&older(last))?;
    for number in (0..last).rev() {
        state
            .root
            .move_to(&older(number), &state.root, &older(number + 1))?;
    }
    Ok(())
}
