//! Tokens of the language models that were used on a day, in `tokens.json`.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::folder::json;
use crate::state_directory::StateDirectory;
use crate::state_folder::{ChangeLock, ReadFailure};

/// Name of the file.
const FILE: &str = "tokens.json";

/// Tokens of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaySpending {
    /// Day in UTC.
    day: Date,
    tokens: u64,
}

/// Returns the tokens that were used on the day of `now`, in UTC.
///
/// # Errors
/// The system fails.
pub fn spent(state: &StateDirectory, now: Timestamp) -> Result<u64, ToolError> {
    let lock = state.lock()?;
    Ok(read(state, &lock, now)?.tokens)
}

/// Adds tokens to those of the day, and returns all of that day.
///
/// # Errors
/// The system fails.
pub fn spend(state: &StateDirectory, tokens: u64, now: Timestamp) -> Result<u64, ToolError> {
    let lock = state.lock()?;
    let mut spending = read(state, &lock, now)?;
    spending.tokens = spending.tokens.saturating_add(tokens);
    state.root.write(FILE, &json(&spending)?)?;
    Ok(spending.tokens)
}

fn read(
    state: &StateDirectory,
    _lock: &ChangeLock,
    now: Timestamp,
) -> Result<DaySpending, ToolError> {
    let day = now.to_zoned(TimeZone::UTC).date();
    let nothing = DaySpending { day, tokens: 0 };
    match state.root.read(FILE, limits::MAX_STATE_FILE_BYTES) {
        Ok((bytes, _)) => match serde_json::from_slice::<DaySpending>(&bytes) {
            Ok(spending) if spending.day == day => Ok(spending),
            Ok(_) => Ok(nothing),
            Err(_) => {
                state.move_to_corrupt(&state.root, "state", FILE)?;
                Ok(nothing)
            }
        },
        Err(ReadFailure::Missing) => Ok(nothing),
        Err(failure) => Err(state.root.failure(FILE, failure)),
    }
}
