//! Hints in the output of a job: the codes that cursor keys must send, and whether the last line is unfinished, as
//! after a question.

use std::sync::atomic::{AtomicBool, Ordering};

use karyi_core::limits;

/// First bytes of a sequence that sets private modes.
const START: &[u8] = b"\x1b[?";
/// The mode in which cursor keys are sent as ESC O instead of ESC [.
const CURSOR_KEYS: &[u8] = b"1";

/// Echo of Ctrl+C, Ctrl+Z and Ctrl+\.
const SIGNAL_KEYS: [&[u8]; 3] = [b"^C", b"^Z", b"^\\"];

/// Hints from the output so far, shared by callers and the session's thread.
#[derive(Debug, Default)]
pub(crate) struct OutputHints {
    has_application_keys: AtomicBool,
    is_line_open: AtomicBool,
}

/// Extracts hints from a stream cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct HintReader {
    /// An unfinished sequence at the end of the last piece.
    partial: Vec<u8>,
}

impl OutputHints {
    /// Returns true if the job has set the application mode of cursor keys.
    pub(crate) fn has_application_keys(&self) -> bool {
        self.has_application_keys.load(Ordering::Relaxed)
    }

    /// Returns true if the output ends within a line.
    pub(crate) fn is_line_open(&self) -> bool {
        self.is_line_open.load(Ordering::Relaxed)
    }

    /// Resets the hints after a job.
    pub(crate) fn reset(&self) {
        self.has_application_keys.store(false, Ordering::Relaxed);
        self.is_line_open.store(false, Ordering::Relaxed);
    }
}

impl HintReader {
    /// Reads a piece of output.
    pub(crate) fn push(&mut self, bytes: &[u8], hints: &OutputHints) {
        if bytes.is_empty() {
            return;
        }
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() && bytes.len() < limits::OPEN_LINE_BYTES {
            self.push_whole(&[&partial, bytes].concat(), hints);
            return;
        }
        if !partial.is_empty() {
            let start = bytes.iter().take(limits::MAX_MODE_SEQUENCE_BYTES);
            set_modes(
                &partial.iter().chain(start).copied().collect::<Vec<u8>>(),
                hints,
            );
        }
        self.push_whole(bytes, hints);
    }

    fn push_whole(&mut self, bytes: &[u8], hints: &OutputHints) {
        set_modes(bytes, hints);
        self.hold(bytes);
        if let Some(is_open) = is_line_open(bytes) {
            hints.is_line_open.store(is_open, Ordering::Relaxed);
        }
    }

    /// Buffers the beginning of a sequence that continues in the next piece.
    fn hold(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(limits::MAX_MODE_SEQUENCE_BYTES);
        let end = bytes.get(from..).unwrap_or_default();
        let Some(start) = memchr::memrchr(0x1b, end) else {
            return;
        };
        let rest = end.get(start..).unwrap_or_default();
        let is_start = rest.starts_with(START) || START.starts_with(rest);
        if is_start && parse(rest.get(START.len()..).unwrap_or_default()).is_none() {
            self.partial.extend_from_slice(rest);
        }
    }
}

/// Applies every sequence that sets private modes.
fn set_modes(bytes: &[u8], hints: &OutputHints) {
    for start in memchr::memmem::find_iter(bytes, START) {
        let rest = bytes.get(start + START.len()..).unwrap_or_default();
        if let Some((mut modes, is_set)) = parse(rest)
            && modes.any(|mode| mode == CURSOR_KEYS)
        {
            hints.has_application_keys.store(is_set, Ordering::Relaxed);
        }
    }
}

/// Reads `MODE;MODE…h` or `…l`.
fn parse(rest: &[u8]) -> Option<(impl Iterator<Item = &[u8]>, bool)> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let length = rest
        .iter()
        .take(limits::MAX_MODE_SEQUENCE_BYTES)
        .position(|byte| !is_part(byte))?;
    let (modes, end) = rest.split_at(length);
    let is_set = end.first() == Some(&b'h');
    let is_modes = is_set || end.first() == Some(&b'l');
    let modes = if is_modes { modes } else { &[] };
    Some((modes.split(|byte| *byte == b';'), is_set))
}

/// Returns whether a piece of output ends within a line; `None` when it prints nothing.
fn is_line_open(bytes: &[u8]) -> Option<bool> {
    let from = bytes.len().saturating_sub(limits::OPEN_LINE_BYTES);
    let end = bytes.get(from..).unwrap_or_default();
    let line = memchr::memrchr(b'\n', end).map(|at| at + 1);
    let rest = end.get(line.unwrap_or(0)..).unwrap_or_default();
    match prints(rest) {
        // The echo of a signal key is no question.
        true if SIGNAL_KEYS.iter().any(|key| rest.ends_with(key)) => Some(false),
        true => Some(true),
        false => line.map(|_| false),
    }
}

/// Returns true if a text has anything but control sequences.
fn prints(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            0x1b => skip_sequence(&mut bytes),
            0x20.. => return true,
            _ => {}
        }
    }
    false
}

/// Skips the rest of an escape sequence.
fn skip_sequence<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    match bytes.next() {
        Some(b'[') => {
            bytes.find(|byte| (0x40..0x7f).contains(*byte));
        }
        Some(b']') => {
            bytes.find(|byte| matches!(byte, 0x07 | 0x1b));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], keys: bool, line: bool) {
        let hints = OutputHints::default();
        let mut reader = HintReader::default();
        for piece in pieces {
            reader.push(piece.as_bytes(), &hints);
        }
        let found = (hints.has_application_keys(), hints.is_line_open());
        assert_eq!(found, (keys, line), "{pieces:?}");
        hints.reset();
        assert!(!hints.has_application_keys() && !hints.is_line_open());
    }

    #[test]
    fn cursor_keys_are_followed() {
        check(&["\x1b[?1h\x1b="], true, false);
        check(&["\x1b[?1h", "\x1b[?1l"], false, false);
        check(&["\x1b[?1049;1h"], true, false);
        check(&["\x1b[?1049h\x1b[?12h\x1b[1h\x1b[?1m"], false, false);
        for at in 1..5 {
            let (first, second) = "\x1b[?1h".split_at(at);
            check(&[first, second], true, false);
            check(&["\x1b[?1h", "\x1b[?1l", first, second], true, false);
        }
        check(&["\x1b", "[", "?", "1", "h"], true, false);
        let long = format!("\x1b[?{}1h", "9;".repeat(99));
        check(&[&long], false, false);
    }

    #[test]
    fn an_unfinished_line_is_detected() {
        check(&["name? "], false, true);
        check(&["name? ", "\n"], false, false);
        check(&["name?", "\x1b[0m"], false, true);
        check(&["done\n\x1b[0m\x1b]0;title\x07"], false, false);
        check(&["\r\n\x1b[32mgo on\x1b[0m "], false, true);
        check(&["", ""], false, false);
        check(&[&"x".repeat(9999)], false, true);
    }

    #[test]
    fn the_echo_of_a_signal_key_is_no_question() {
        for shown in ["^C", "^Z", "^\\", "a\nb ^C"] {
            check(&[shown], false, false);
        }
        check(&["^Cmore? "], false, true);
        check(&["^C\n? "], false, true);
    }
}
