//! Tokens of the language models that were used on a day, in `tokens.json`.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use karyi_core::error::ToolError;
use serde::{Deserialize, Serialize};

use crate::folder::json;
use crate::state_directory::StateDirectory;

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

/// Days that are kept: a clock that is set forward and back finds the tokens of its day again.
const KEPT_DAYS: usize = 3;

/// Returns the tokens that were used on the day of `now`, in UTC.
///
/// # Errors
/// The system fails.
pub fn spent(state: &StateDirectory, now: Timestamp) -> Result<u64, ToolError> {
    let _lock = state.lock()?;
    let today = day_of(now);
    let days = read(state)?;
    let spent = days.iter().find(|spending| spending.day == today);
    Ok(spent.map_or(0, |spending| spending.tokens))
}

/// Adds tokens to those of the day, and returns all of that day.
///
/// # Errors
/// The system fails.
pub fn spend(state: &StateDirectory, tokens: u64, now: Timestamp) -> Result<u64, ToolError> {
    let _lock = state.lock()?;
    let day = day_of(now);
    let mut days = read(state)?;
    let before = days.iter().position(|spending| spending.day == day);
    let before = before.map_or(0, |at| days.remove(at).tokens);
    let tokens = before.saturating_add(tokens);
    days.push(DaySpending { day, tokens });
    days.drain(..days.len().saturating_sub(KEPT_DAYS));
    state.root.write(FILE, &json(&days)?)?;
    Ok(tokens)
}

fn read(state: &StateDirectory) -> Result<Vec<DaySpending>, ToolError> {
    Ok(state.read_json(FILE, |_| Ok(()))?.unwrap_or_default())
}

/// Returns the day of a time, in UTC.
#[must_use]
pub fn day_of(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}
