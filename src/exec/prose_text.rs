//! The prose of a message: the text outside its blocks, given out as soon as it is known to be prose.

use std::collections::VecDeque;
use std::ops::Range;

use karyi_syntax::Parser;

/// Bytes of a message that are not decided, and the stretches of prose in them.
#[derive(Debug, Default)]
pub(super) struct ProseText {
    bytes: VecDeque<u8>,
    /// Offset of the first byte.
    start: u64,
    stretches: VecDeque<Range<u64>>,
}

impl ProseText {
    /// Takes further bytes of the message, which the parser has got.
    pub(super) fn feed(&mut self, bytes: &[u8], parser: &mut Parser) -> u64 {
        self.bytes.extend(bytes);
        let prose = parser.take_prose();
        self.stretches.extend(prose.stretches);
        prose.next
    }

    /// Returns the prose that starts before an offset, unless there is none.
    pub(super) fn before(&mut self, offset: u64) -> Option<String> {
        let mut text = Vec::new();
        while let Some(stretch) = self.stretches.pop_front_if(|s| s.start < offset) {
            self.forget(stretch.start);
            let count = self.count_to(stretch.end);
            text.extend(self.bytes.drain(..count));
            self.start += count as u64;
        }
        (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// Drops the bytes before an offset.
    pub(super) fn forget(&mut self, offset: u64) {
        let count = self.count_to(offset);
        self.bytes.drain(..count);
        self.start += count as u64;
    }

    fn count_to(&self, offset: u64) -> usize {
        let count = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        count.min(self.bytes.len())
    }
}
