//! Code fences: how they open and end.

use super::drafts::Match;

/// Bytes of a fence's info string that are stored: all relevant ones are shorter.
pub(super) const MAX_INFO: usize = 16;

/// Longest line that is examined as the end of a fence.
const MAX_FENCE_LINE: usize = 256;

/// An open code fence.
#[derive(Debug)]
pub(super) struct Fence {
    /// Byte of which its line is made.
    pub(super) mark: u8,
    /// Number of these bytes.
    pub(super) length: usize,
    /// What counts in it.
    pub(super) kind: FenceKind,
}

/// What counts in a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceKind {
    /// Nothing in it runs.
    Closed,
    /// The fence around the blocks of a message.
    Open,
    /// Such a fence around an envelope, if its first byte says so.
    Json,
}

/// The line of a possible opening fence.
#[derive(Debug)]
pub(super) struct FenceLine {
    /// Byte of which its line is made.
    pub(super) mark: u8,
    /// Number of these bytes.
    pub(super) length: usize,
    /// True when nothing stands before it.
    pub(super) is_first: bool,
    /// Start of the text after these bytes.
    pub(super) info: Vec<u8>,
}

impl Fence {
    /// Tells whether a line break stands here, and after it the line that ends the fence.
    pub(super) fn ends_at(&self, rest: &[u8], is_last: bool) -> Match {
        let Some(line) = rest.strip_prefix(b"\n") else {
            return Match::No;
        };
        let near = line.get(..MAX_FENCE_LINE).unwrap_or(line);
        let is_blank = |b: &&u8| matches!(b, b' ' | b'\t');
        let mut after = near.iter().skip_while(is_blank).peekable();
        let mut length = 0;
        while after.next_if(|b| **b == self.mark).is_some() {
            length += 1;
        }
        match after.find(|b| !is_blank(b)) {
            Some(b'\n' | b'\r') if length >= self.length => Match::Yes(0),
            None if is_last && length >= self.length => Match::Yes(0),
            None if !is_last && near.len() < MAX_FENCE_LINE => Match::Cut,
            Some(_) | None => Match::No,
        }
    }
}

impl FenceLine {
    /// Decides what the fence is, now that its line is complete.
    pub(super) fn into_fence(self, may_be_envelope: bool) -> Fence {
        let info = self.info.trim_ascii().to_ascii_lowercase();
        let is_wrapper = self.is_first && self.mark == b'`' && self.length == 3;
        let kind = match info.as_slice() {
            b"" | b"xml" | b"toolsxml" | b"tools" if is_wrapper => FenceKind::Open,
            b"json" if is_wrapper && may_be_envelope => FenceKind::Json,
            _ => FenceKind::Closed,
        };
        Fence {
            mark: self.mark,
            length: self.length,
            kind,
        }
    }
}
