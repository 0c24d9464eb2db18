//! Extracts the marks of the shell from the terminal's output.
//!
//! After each command the shell prints `ESC ] 133;D;NONCE;SEQUENCE;STATUS;FLAGS;CWD;NONCE BEL`. The position of the
//! mark is the exact end of the command's output. Only the mark with the session's nonce and the number of the running
//! command counts; every other sequence that looks like one, forged or replayed, stays output.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use karyi_core::limits;

use crate::shell::delivery;

const ESCAPE: u8 = 0x1b;
/// First bytes of every mark.
const START: &[u8] = b"\x1b]";

/// Report of the shell at the end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Exit status of the command.
    pub(crate) status: i32,
    /// True if the shell would end at the next failure (`set -e`).
    pub(crate) is_errexit: bool,
    /// True if the shell refuses to redirect anything to a file (`set -r`).
    pub(crate) is_restricted: bool,
    /// True if a value was missing, so that the command was not run.
    pub(crate) lacks_values: bool,
    /// The shell's working directory, as the shell spells it.
    pub(crate) cwd: PathBuf,
}

/// Finds the one expected mark in a stream cut anywhere.
#[derive(Debug)]
pub(crate) struct MarkExtractor {
    nonce: String,
    closing: Vec<u8>,
    /// The beginning of the expected mark, with its number.
    prefix: Vec<u8>,
    expected: Option<u64>,
    /// Bytes that may be the beginning of the mark.
    partial: Vec<u8>,
}

/// Result of matching bytes with the expected mark.
enum MarkMatch {
    Mark(Mark, usize),
    Partial,
    Other,
}

impl MarkExtractor {
    /// Creates an extractor for one session.
    pub(crate) fn new(nonce: &str) -> Self {
        Self {
            nonce: nonce.to_owned(),
            closing: format!(";{nonce}\x07").into_bytes(),
            prefix: Vec::new(),
            expected: None,
            partial: Vec::new(),
        }
    }

    /// Sets the number of the next mark; without one everything is output.
    pub(crate) fn await_mark(&mut self, sequence: Option<u64>) {
        if self.expected == sequence {
            return;
        }
        self.expected = sequence;
        self.prefix = match sequence {
            Some(number) => format!("\x1b]133;D;{};{number};", self.nonce).into_bytes(),
            None => Vec::new(),
        };
    }

    /// Sends the output in `bytes` to `output`, up to the expected mark; returns the number of bytes used, and the
    /// mark.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        output: &mut dyn FnMut(&[u8]),
    ) -> (usize, Option<Mark>) {
        let mut used = 0;
        if !self.partial.is_empty() {
            match self.push_partial(bytes, output) {
                (taken, Some(mark)) => return (taken, Some(mark)),
                (taken, None) => used = taken,
            }
        }
        let rest = bytes.get(used..).unwrap_or_default();
        let (taken, mark) = self.push_fresh(rest, output);
        (used + taken, mark)
    }

    /// Continues a partial mark; afterwards none is buffered unless all of `bytes` were needed.
    fn push_partial(
        &mut self,
        bytes: &[u8],
        output: &mut dyn FnMut(&[u8]),
    ) -> (usize, Option<Mark>) {
        let before = self.partial.len();
        let taken = bytes
            .len()
            .min(limits::MAX_MARK_BYTES.saturating_sub(before));
        self.partial.extend(bytes.iter().take(taken));
        match self.match_mark(&self.partial) {
            MarkMatch::Mark(mark, length) => {
                self.partial.clear();
                (length.saturating_sub(before), Some(mark))
            }
            MarkMatch::Partial => (taken, None),
            MarkMatch::Other => {
                self.partial.truncate(before);
                output(&self.partial);
                self.partial.clear();
                (0, None)
            }
        }
    }

    /// Returns the position of the expected mark, ignoring all other bytes.
    pub(crate) fn find_mark(&self, bytes: &[u8]) -> Option<Range<usize>> {
        self.expected?;
        let mut starts = memchr::memmem::find_iter(bytes, &self.prefix);
        starts.find_map(|start| {
            let rest = bytes.get(start..)?;
            match self.match_mark(rest) {
                MarkMatch::Mark(_, length) => Some(start..start + length),
                MarkMatch::Partial | MarkMatch::Other => None,
            }
        })
    }

    fn push_fresh(&mut self, bytes: &[u8], output: &mut dyn FnMut(&[u8])) -> (usize, Option<Mark>) {
        let mut from = 0;
        while self.expected.is_some() {
            let rest = bytes.get(from..).unwrap_or_default();
            let Some(found) = find_start(rest) else {
                break;
            };
            let start = from + found;
            let (before, after) = bytes.split_at(start);
            match self.match_mark(after) {
                MarkMatch::Mark(mark, length) => {
                    emit(before, output);
                    return (start + length, Some(mark));
                }
                MarkMatch::Partial => {
                    emit(before, output);
                    self.partial.extend_from_slice(after);
                    return (bytes.len(), None);
                }
                MarkMatch::Other => from = start + 1,
            }
        }
        emit(bytes, output);
        (bytes.len(), None)
    }

    fn match_mark(&self, bytes: &[u8]) -> MarkMatch {
        if self.expected.is_none() {
            return MarkMatch::Other;
        }
        let Some(body) = bytes.strip_prefix(self.prefix.as_slice()) else {
            let is_start = self.prefix.starts_with(bytes);
            return if is_start {
                MarkMatch::Partial
            } else {
                MarkMatch::Other
            };
        };
        let Some(end) = memchr::memmem::find(body, &self.closing) else {
            let is_open = bytes.len() < limits::MAX_MARK_BYTES;
            return if is_open {
                MarkMatch::Partial
            } else {
                MarkMatch::Other
            };
        };
        let (fields, _) = body.split_at(end);
        let length = self.prefix.len() + end + self.closing.len();
        parse(fields).map_or(MarkMatch::Other, |mark| MarkMatch::Mark(mark, length))
    }
}

/// Returns the position of a possible mark. Colours begin with ESC, too, and are frequent.
fn find_start(bytes: &[u8]) -> Option<usize> {
    let at_end = || bytes.ends_with(&[ESCAPE]).then(|| bytes.len() - 1);
    memchr::memmem::find(bytes, START).or_else(at_end)
}

fn emit(bytes: &[u8], output: &mut dyn FnMut(&[u8])) {
    if !bytes.is_empty() {
        output(bytes);
    }
}

/// Reads `STATUS;FLAGS;CWD`.
fn parse(fields: &[u8]) -> Option<Mark> {
    let mut parts = fields.splitn(3, |byte| *byte == b';');
    let status = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    // ksh counts signals from 256.
    let status = if status > 256 { status - 128 } else { status };
    let flags = parts.next()?;
    let cwd = PathBuf::from(OsString::from_vec(parts.next()?.to_vec()));
    Some(Mark {
        status,
        is_errexit: flags.contains(&b'e'),
        is_restricted: flags.contains(&b'r'),
        lacks_values: delivery::lacks_values(flags),
        cwd,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "\x1b]133;D;n0;7;3;himBH;/a b;n0\x07";

    /// Pushes pieces while mark 7 of nonce `n0` is expected; marks are shown as `<status cwd>`.
    fn cut(pieces: &[&[u8]]) -> String {
        let mut mark_extractor = MarkExtractor::new("n0");
        mark_extractor.await_mark(Some(7));
        let mut shown = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (used, mark) =
                    mark_extractor.push(rest, &mut |bytes| shown.extend_from_slice(bytes));
                rest = &rest[used..];
                if let Some(mark) = mark {
                    shown.extend(format!("<{} {}>", mark.status, mark.cwd.display()).bytes());
                    mark_extractor.await_mark(None);
                }
            }
        }
        String::from_utf8(shown).unwrap()
    }

    /// Checks the whole, every split point and single bytes.
    fn check(input: &str, expected: &str) {
        let bytes = input.as_bytes();
        assert_eq!(cut(&[bytes]), expected, "{input:?}");
        for at in 1..bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(cut(&[first, second]), expected, "{input:?} split at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(cut(&single), expected, "{input:?} byte by byte");
    }

    #[test]
    fn the_expected_mark_is_extracted() {
        check(MARK, "<3 /a b>");
        check(&format!("out\n{MARK}late"), "out\n<3 /a b>late");
        check("\x1b]133;D;n0;7;0;;;n0\x07", "<0 >");
        check("\x1b]133;D;n0;7;258;;/;n0\x07", "<130 />");
        check("\x1b]133;D;n0;7;0;e;/a;n1\x07;n0\x07x", "<0 /a;n1\x07>x");
        check(&format!("\x1b[1m\x1b{MARK}"), "\x1b[1m\x1b<3 /a b>");
        check(&format!("\x1b]133;D;n0;{MARK}"), "\x1b]133;D;n0;<3 /a b>");
    }

    #[test]
    fn forged_and_replayed_marks_stay_output() {
        for text in [
            "\x1b]133;D;0\x07 ",
            "\x1b]133;D;nonce;7;0;;/;nonce\x07 ",
            "\x1b]133;D;n0;6;0;;/;n0\x07 ",
            "\x1b]133;D;n0;77;0;;/;n0\x07 ",
            "\x1b]133;D;n0;7;x;;/;n0\x07 ",
        ] {
            check(text, text);
        }
        check(&format!("{MARK}{MARK}"), &format!("<3 /a b>{MARK}"));
    }

    #[test]
    fn an_endless_mark_is_output() {
        let text = format!(
            "\x1b]133;D;n0;7;0;;{}",
            "x".repeat(2 * limits::MAX_MARK_BYTES)
        );
        assert_eq!(cut(&[text.as_bytes()]), text);
        let single: Vec<&[u8]> = text.as_bytes().chunks(999).collect();
        assert_eq!(cut(&single), text);
    }

    #[test]
    fn option_flags_are_parsed() {
        let check = |flags: &str, expected: (bool, bool)| {
            let mark = parse(format!("0;{flags};/er").as_bytes()).unwrap();
            assert_eq!((mark.is_errexit, mark.is_restricted), expected, "{flags}");
        };
        check("ehimBs", (true, false));
        check("himrBs", (false, true));
        check("himBs", (false, false));
    }
}
