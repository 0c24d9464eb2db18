//! The lines of the list of changes, from its end on, and what is broken among them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use super::Entry;
use karyi_core::limits;

/// What of the list of changes cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// There were changes, and the list is empty.
    Emptied,
    /// So many of its lines are broken.
    Lines(usize),
}

impl Damage {
    /// Says what is broken.
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
            Self::Emptied => f.write_str("it is empty, and changes were recorded in it before"),
            Self::Lines(1) => f.write_str("1 of its lines cannot be read"),
            Self::Lines(lines) => write!(f, "{lines} of its lines cannot be read"),
        }
    }
}

/// Shows the lines of a file, the last one first, until the visitor has seen enough; of what lies before them
/// no more is read than `block` bytes, or as much as was read by then.
pub(super) fn visit_from_end(
    file: &mut (impl Read + Seek),
    mut block: u64,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut start = file.seek(SeekFrom::End(0))?;
    // What lies between `start` and the line that was shown last.
    let mut held = Vec::new();
    loop {
        while let Some(at) = memchr::memrchr(b'\n', &held) {
            if visit(held.get(at + 1..).unwrap_or_default()).is_break() {
                return Ok(());
            }
            held.truncate(at);
        }
        if start == 0 {
            let _ = visit(&held);
            return Ok(());
        }
        let length = block.min(start);
        start -= length;
        file.seek(SeekFrom::Start(start))?;
        let mut read = Vec::new();
        file.by_ref().take(length).read_to_end(&mut read)?;
        read.append(&mut held);
        held = read;
        // So that a long line is not put together from many parts.
        block = block.saturating_mul(2);
    }
}

/// What lines hold.
#[derive(Default)]
pub(super) struct EntryLines {
    /// The entries, in order.
    pub(super) entries: Vec<Entry>,
    /// Lines that are none.
    pub(super) broken: usize,
    /// Those of them that stand after the last entry.
    broken_at_end: usize,
}

impl EntryLines {
    /// Reads lines; blank ones mean nothing.
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

/// The end of the list.
pub(super) struct ListTail {
    /// The number of the last entry.
    pub(super) last: u64,
    /// Whether its last line has no end.
    pub(super) is_cut: bool,
    is_empty: bool,
    lines: EntryLines,
}

impl ListTail {
    /// Reads as much of the end as it takes to find an entry.
    pub(super) fn read(file: &mut File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut reach = limits::JOURNAL_TAIL_BYTES;
        loop {
            file.seek(SeekFrom::Start(length.saturating_sub(reach)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let is_whole = reach >= length;
            // The first line may have been cut by reading from here on.
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

    /// Returns the number of the entry of a transaction.
    pub(super) fn number_of(&self, id: &str) -> Option<u64> {
        let found = self.lines.entries.iter().find(|entry| entry.id == id);
        found.map(|entry| entry.number)
    }

    /// Says what is broken after the last entry: what stands before was said when that was added.
    pub(super) fn damage(&self, had_entries: bool) -> Option<Damage> {
        Damage::of(self.is_empty && had_entries, self.lines.broken_at_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_the_end_whatever_is_read_at_once() {
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
