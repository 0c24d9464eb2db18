//! Where a text names a shell variable that stood for a secret: `__karyi_` and 32 digits, in `${}` or without.

use std::ops::Range;

use crate::vault::session::{LEAST_VARIABLE_DIGITS, Secrets, VARIABLE_DIGITS, VARIABLE_PREFIX};

const OPEN: &str = "${";
/// Bytes of the longest of them.
const MOST_BYTES: usize = OPEN.len() + VARIABLE_PREFIX.len() + VARIABLE_DIGITS + 1;

/// Returns the first one of a text, with the placeholder that it stood for.
pub(super) fn find(text: &str, secrets: &Secrets) -> Option<(Range<usize>, String)> {
    let prefix = memchr::memmem::Finder::new(VARIABLE_PREFIX);
    let mut from = 0;
    // One may begin with the last sign of what is none.
    let mut names = std::iter::from_fn(|| {
        let at = from + prefix.find(text.as_bytes().get(from..)?)?;
        from = at + 1;
        Some(at)
    });
    names.find_map(|at| {
        let (before, name) = text.split_at_checked(at)?;
        let digits = name.get(VARIABLE_PREFIX.len()..)?;
        let digits = digits.get(..digits_at_start(digits.as_bytes()))?;
        let placeholder = secrets.variable_placeholder(digits)?;
        let end = at + VARIABLE_PREFIX.len() + digits.len();
        let is_open = before.ends_with(OPEN);
        let range = match text.as_bytes().get(end) {
            Some(b'}') if is_open => at - OPEN.len()..end + 1,
            // A shell has cut it there.
            _ if is_open && digits.len() < VARIABLE_DIGITS => at - OPEN.len()..end,
            _ => at..end,
        };
        Some((range, placeholder))
    })
}

fn digits_at_start(text: &[u8]) -> usize {
    let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.iter().take(VARIABLE_DIGITS);
    digits.take_while(is_digit).count()
}

/// Moves a place that may be inside of one before it. Of what is none no more is held back than the digits that tell so.
pub(super) fn before(text: &str, place: usize, secrets: &Secrets) -> usize {
    let bytes = text.as_bytes();
    let first = place.saturating_sub(MOST_BYTES);
    let is_inside = |start: &usize| {
        let begun = bytes.get(*start..).unwrap_or_default();
        length(begun, secrets).is_none_or(|length| start + length > place)
    };
    let starts = (first..place).filter(|at| matches!(bytes.get(*at), Some(b'$' | b'_')));
    starts.into_iter().find(is_inside).unwrap_or(place)
}

/// Returns how many bytes of the one that may start here are there; nothing when its end is not.
fn length(text: &[u8], secrets: &Secrets) -> Option<usize> {
    let (open, name) = match text.first() {
        Some(b'$') => (OPEN.len(), text.get(OPEN.len()..).unwrap_or_default()),
        _ => (0, text),
    };
    let starts = |text: &[u8], word: &str| {
        let shared = text.len().min(word.len());
        text.get(..shared) == word.as_bytes().get(..shared)
    };
    if open > 0 && !starts(text, OPEN) || !starts(name, VARIABLE_PREFIX) {
        return Some(0);
    }
    let digits = name.get(VARIABLE_PREFIX.len()..)?;
    let count = digits_at_start(digits);
    let is_of_none = |count: &usize| {
        let digits = digits
            .get(..*count)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        digits.is_some_and(|digits| secrets.variable_placeholder(digits).is_none())
    };
    // Cut behind the digit that tells it from all others, it looks like none of them.
    if let Some(least) = (LEAST_VARIABLE_DIGITS..=count).find(is_of_none) {
        return Some(open + VARIABLE_PREFIX.len() + least);
    }
    let length = open + VARIABLE_PREFIX.len() + count;
    let is_whole = count == VARIABLE_DIGITS && open == 0;
    match digits.get(count) {
        _ if is_whole => Some(length),
        None => None,
        Some(b'}') if open > 0 => Some(length + 1),
        Some(_) => Some(length),
    }
}
