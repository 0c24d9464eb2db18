//! Checks of arguments that several operations share; each error names the argument.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Makes the error of an argument that does not fit.
pub(crate) fn misfit(field: &str, expected: &str, found: impl Display) -> ToolError {
    let message = format!("`{field}`: expected {expected}, found {found}");
    ToolError::new(ErrorCode::BadArguments, message)
}

/// Makes the error of a word that is none of those expected.
#[must_use]
pub fn unknown_word(field: &str, expected: &str, found: &str) -> ToolError {
    let found = shortened(found, limits::MAX_TASK_SUMMARY_CHARS);
    misfit(field, expected, format!("{found:?}"))
}

/// Checks a text that a person or a model wrote: neither blank nor too long.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), ToolError> {
    if text.trim().is_empty() {
        return Err(misfit(field, "a text", "nothing but blanks"));
    }
    if text.len() > limits::MAX_TASK_TEXT_BYTES {
        let expected = format!("at most {} bytes", limits::MAX_TASK_TEXT_BYTES);
        return Err(misfit(field, &expected, text.len()));
    }
    Ok(())
}

/// Checks a whole number and returns it.
pub(crate) fn whole(
    field: &str,
    value: i64,
    least: usize,
    most: usize,
) -> Result<usize, ToolError> {
    let found = usize::try_from(value).ok();
    let found = found.filter(|number| (least..=most).contains(number));
    let expected = || format!("a whole number from {least} to {most}");
    found.ok_or_else(|| misfit(field, &expected(), value))
}

/// Checks a number of seconds and returns it.
pub(crate) fn seconds(
    field: &str,
    value: impl TryInto<u64> + Display + Copy,
    least: u64,
    most: Duration,
) -> Result<u64, ToolError> {
    let found = value.try_into().ok();
    let found = found.filter(|seconds| (least..=most.as_secs()).contains(seconds));
    found.ok_or_else(|| {
        let expected = format!("whole seconds from {least} to {}", most.as_secs());
        misfit(field, &expected, value)
    })
}

/// Reads a time with its zone.
///
/// # Errors
/// `bad_arguments` naming the argument.
pub fn read_time(field: &str, text: &str) -> Result<Timestamp, ToolError> {
    text.parse().map_err(|_| {
        let expected =
            "a time with its zone, such as 2026-01-31T09:00:00Z or 2026-01-31T09:00:00+08:00";
        unknown_word(field, expected, text)
    })
}

/// Returns at most `most` characters of a text; `…` marks a cut and counts.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// Returns at most `most` bytes of a text, cut between characters.
pub(crate) fn cut_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
