//! Lines of the journal's list of changes: reads them from the end and detects damage.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use super::Entry;
use karyi_core::limits;

/// Damage of the list of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The list is empty although changes were recorded.
    Emptied,
    /// Number of unreadable lines.
    Lines(usize),
}

impl Damage {
    /// Returns the damage, if any.
    pub(super) fn of(is_emptied: bool, broken: usize) -> Option<Self> {
        match (is_emptied, broken) {
            (true, _) => Some(Self::Emptied),
            (false, 0) => None,
            (false, lines) => Some(Self::Lines(lines)),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emptied => f.write_str("it is empty although changes were recorded in it"),
            Self::Lines(1) => f.write_str("1 of its lines cannot be read"),
            Self::Lines(lines) => write!(f, "{lines} of its lines cannot be read"),
        }
    }
}

/// Visits the lines of a file from the last to the first until the visitor breaks. Reads backwards in blocks
/// that start with `block` bytes and double in size.
pub(super) fn visit_from_end(
    file: &mut (impl Read + Seek),
    mut block: u64,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut start = file.seek(SeekFrom::End(0))?;
    // The bytes between `start` and the line visited last.
    let mut pending = Vec::new();
    loop {
        while let Some(at) = memchr::memrchr(b'\n', &pending) {
            if visit(pending.get(at + 1..).unwrap_or_default()).is_break() {
                return Ok(());
            }
            pending.truncate(at);
        }
        if start == 0 {
            let _ = visit(&pending);
            return Ok(());
        }
        let length = block.min(start);
        start -= length;
        file.seek(SeekFrom::Start(start))?;
        let mut read = Vec::new();
        file.by_ref().take(length).read_to_end(&mut read)?;
        read.append(&mut pending);
        pending = read;
        // Bounds the copying for a long line.
        block = block.saturating_mul(2);
    }
}

/// Parsed lines.
#[derive(Default)]
pub(super) struct EntryLines {
    /// The entries, in order.
    pub(super) entries: Vec<Entry>,
    /// Unreadable lines.
    pub(super) broken: usize,
    /// Unreadable lines after the last entry.
    broken_at_end: usize,
}

impl EntryLines {
    /// Parses lines and skips blank ones.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut lines = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(entry) => {
                    lines.entries.push(entry);
                    lines.broken_at_end = 0;
                }
                Err(_) => {
                    lines.broken += 1;
                    lines.broken_at_end += 1;
                }
            }
        }
        lines
    }
}

/// End of the list.
pub(super) struct ListTail {
    /// Number of the last entry.
    pub(super) last: u64,
    /// True if the last line is unfinished.
    pub(super) is_cut: bool,
    is_empty: bool,
    lines: EntryLines,
}

impl ListTail {
    /// Reads back from the end until it finds an entry.
    pub(super) fn read(file: &mut File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut reach = limits::JOURNAL_TAIL_BYTES;
        loop {
            file.seek(SeekFrom::Start(length.saturating_sub(reach)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let is_whole = reach >= length;
            // The block may start inside a line.
            let first = memchr::memchr(b'\n', &bytes).filter(|_| !is_whole);
            let lines = EntryLines::read(bytes.get(first.unwrap_or(0)..).unwrap_or_default());
            if is_whole || !lines.entries.is_empty() {
                let numbers = lines.entries.iter().map(|entry| entry.number);
                return Ok(Self {
                    last: numbers.max().unwrap_or(0),
                    is_cut: !bytes.is_empty() && !bytes.ends_with(b"\n"),
                    is_empty: bytes.is_empty(),
                    lines,
                });
            }
            reach = reach.saturating_mul(8);
        }
    }

    /// Returns the number of a transaction's entry.
    pub(super) fn number_of(&self, id: &str) -> Option<u64> {
        let found = self.lines.entries.iter().find(|entry| entry.id == id);
        found.map(|entry| entry.number)
    }

    /// Returns the damage after the last entry; earlier damage was reported before.
    pub(super) fn damage(&self, had_entries: bool) -> Option<Damage> {
        Damage::of(self.is_empty && had_entries, self.lines.broken_at_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_visited_backwards_with_any_block_size() {
        let long = "x".repeat(50);
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "\na\n\nbb\nccc",
            &format!("a\n{long}\nb\n{long}\n"),
        ] {
            let expected: Vec<&[u8]> = text.as_bytes().rsplit(|byte| *byte == b'\n').collect();
            for block in 1..=text.len() as u64 + 1 {
                for count in 1..=expected.len() {
                    let mut seen: Vec<Vec<u8>> = Vec::new();
                    let visit = |line: &[u8]| {
                        seen.push(line.to_vec());
                        match seen.len() == count {
                            true => ControlFlow::Break(()),
                            false => ControlFlow::Continue(()),
                        }
                    };
                    visit_from_end(&mut io::Cursor::new(text), block, visit).unwrap();
                    assert_eq!(seen, expected[..count], "{text:?} {block}");
                }
            }
        }
    }
}
