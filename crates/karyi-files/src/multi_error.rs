//! Combines the errors of several files into one, so that all can be fixed at once.

use karyi_core::error::ToolError;

/// Most files listed in full.
const MAX_LISTED: usize = 10;

/// Collects all values, or all errors combined.
///
/// # Errors
/// The combined errors.
pub(super) fn collect_all<T>(
    results: impl IntoIterator<Item = Result<T, ToolError>>,
) -> Result<Vec<T>, ToolError> {
    let (mut done, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) => errors.push(error),
        }
    }
    combine(errors).map_or(Ok(done), Err)
}

/// Combines errors into one with the code of the first and all messages.
pub(super) fn combine(mut errors: Vec<ToolError>) -> Option<ToolError> {
    // A file that is named twice can fail twice.
    errors.dedup_by(|later, earlier| later.message == earlier.message);
    let count = errors.len();
    let mut errors = errors.into_iter();
    let mut first = errors.next()?;
    if count == 1 {
        return Some(first);
    }
    let mut hint = format!("1. {}", first.hint.trim_end());
    first.message = format!("{count} files fail: 1. {}", first.message);
    for (number, error) in (2..).zip(errors.by_ref().take(MAX_LISTED - 1)) {
        let (code, message) = (error.code.as_str(), &error.message);
        first.message += &format!("; {number}. {message} ({code})");
        hint += &format!("\n{number}. {}", error.hint.trim_end());
        first.is_hint_quoted |= error.is_hint_quoted;
    }
    if count > MAX_LISTED {
        first.message += &format!("; and {} more", count - MAX_LISTED);
    }
    Some(first.with_hint(hint))
}
