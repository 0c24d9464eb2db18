//! The lines of the list of changes, and what is broken among them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::Entry;
use crate::limits;

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

/// What lines hold.
#[derive(Default)]
pub(super) struct Lines {
    /// The entries, in order.
    pub(super) entries: Vec<Entry>,
    /// Lines that are none.
    pub(super) broken: usize,
    /// Those of them that stand after the last entry.
    broken_at_end: usize,
}

impl Lines {
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
pub(super) struct Tail {
    /// The number of the last entry.
    pub(super) last: u64,
    /// Whether its last line has no end.
    pub(super) is_cut: bool,
    is_empty: bool,
    lines: Lines,
}

impl Tail {
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
            let lines = Lines::read(bytes.get(first.unwrap_or(0)..).unwrap_or_default());
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
