//! Buffer that retains the start and the end of a text of any length and counts what it omits between them.
//!
//! A result holds a few kilobytes of output that may be a gigabyte. The start shows what began, the end how it ended,
//! and the counts of the gap are exact. The text must be redacted before it is added, since cutting first could leave
//! half a secret. A marker of a secret is never cut in two.

use crate::limits;

/// Number of bytes to keep at each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// Bytes kept from the start.
    pub head_bytes: usize,
    /// Bytes kept from the end.
    pub tail_bytes: usize,
}

impl Cap {
    /// Splits one total evenly between start and end.
    #[must_use]
    pub fn total(bytes: usize) -> Self {
        let head_bytes = bytes / 2;
        Self {
            head_bytes,
            tail_bytes: bytes - head_bytes,
        }
    }
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            head_bytes: limits::OUTPUT_HEAD_BYTES,
            tail_bytes: limits::OUTPUT_TAIL_BYTES,
        }
    }
}

/// Shortened text: both ends joined, and the size of the gap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortenedText {
    /// Retained text, with a line that describes the gap, if there is one.
    pub text: String,
    /// Bytes left out.
    pub omitted_bytes: u64,
    /// Line breaks left out.
    pub omitted_lines: u64,
}

impl ShortenedText {
    /// Shortens the text further; the gap grows.
    pub fn shorten(&mut self, cap: Cap) {
        let mut buffer = HeadTail::new(cap);
        let marker = gap(self.omitted_bytes, self.omitted_lines);
        let parts = self
            .text
            .split_once(&marker)
            .filter(|_| self.omitted_bytes > 0);
        match parts {
            None => buffer.push(&self.text),
            Some((head, tail)) => {
                buffer.push(head);
                let old = std::mem::take(&mut buffer.tail);
                buffer.omit(&old);
                buffer.omitted_bytes += self.omitted_bytes;
                buffer.omitted_lines += self.omitted_lines;
                buffer.push(tail);
            }
        }
        *self = buffer.into_view();
    }
}

/// Returns the line that describes a gap.
fn gap(bytes: u64, lines: u64) -> String {
    format!("[... {bytes} bytes, {lines} lines omitted ...]\n")
}

/// Buffer that retains both ends of a text.
#[derive(Debug)]
pub struct HeadTail {
    cap: Cap,
    head: Vec<u8>,
    /// Up to twice the tail's size, so that dropping its front is cheap on average; with what may
    /// belong to a marker at its start.
    tail: Vec<u8>,
    omitted_bytes: u64,
    omitted_lines: u64,
}

impl HeadTail {
    /// Makes an empty buffer.
    #[must_use]
    pub fn new(cap: Cap) -> Self {
        Self {
            cap,
            head: Vec::new(),
            tail: Vec::new(),
            omitted_bytes: 0,
            omitted_lines: 0,
        }
    }

    /// Returns true when text can be added without anything being left out.
    #[must_use]
    pub fn has_room_for(&self, text: &str) -> bool {
        let kept = self.head.len() + self.tail.len();
        // The head may lack a few bytes that no whole character fits into.
        let room = (self.cap.head_bytes + self.cap.tail_bytes).saturating_sub(4);
        self.omitted_bytes == 0 && kept + text.len() <= room
    }

    /// Returns the retained text with both ends joined; the whole text while nothing was omitted.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = [self.head.as_slice(), self.tail.as_slice()].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Adds text at the end.
    pub fn push(&mut self, text: &str) {
        let free = self.cap.head_bytes.saturating_sub(self.head.len());
        let for_head = if self.tail.is_empty() && self.omitted_bytes == 0 {
            floor_char_boundary(text, free)
        } else {
            0
        };
        let (first, rest) = text.split_at(for_head);
        self.head.extend_from_slice(first.as_bytes());
        self.push_tail(rest.as_bytes());
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let keep = self.cap.tail_bytes.saturating_add(limits::MAX_MARKER_BYTES);
        if bytes.len() >= keep {
            let (dropped, kept) = bytes.split_at(bytes.len() - keep);
            let old = std::mem::take(&mut self.tail);
            self.omit(&old);
            self.omit(dropped);
            self.tail.extend_from_slice(kept);
            return;
        }
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > keep.saturating_mul(2) {
            self.drop_front(self.tail.len() - keep);
        }
    }

    fn drop_front(&mut self, bytes: usize) {
        let kept = self.tail.split_off(bytes);
        let dropped = std::mem::replace(&mut self.tail, kept);
        self.omit(&dropped);
    }

    /// Places the gap between characters and never inside a marker.
    fn cut(&mut self) {
        let excess = self.tail.len().saturating_sub(self.cap.tail_bytes);
        if excess == 0 && self.omitted_bytes == 0 {
            return;
        }
        // Until something was left out a marker may have begun in the head.
        let mut before = 0;
        if self.omitted_bytes == 0 {
            let from = self.head.len().saturating_sub(limits::MAX_MARKER_BYTES);
            let end = self.head.get(from..).unwrap_or_default();
            before = end.len();
            self.tail.splice(0..0, end.iter().copied());
        }
        let mut start = after_marker(&self.tail, before + excess);
        let rest = self.tail.get(start..).unwrap_or_default();
        start += rest.iter().take_while(|b| **b & 0xC0 == 0x80).count();
        self.tail.drain(..before);
        self.drop_front(start - before);
        let end = before_marker(&self.head, self.head.len());
        let dropped = self.head.split_off(end);
        self.omit(&dropped);
    }

    fn omit(&mut self, bytes: &[u8]) {
        self.omitted_bytes += bytes.len() as u64;
        self.omitted_lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Returns the retained text and the size of the gap.
    #[must_use]
    pub fn into_view(mut self) -> ShortenedText {
        self.cut();
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted_bytes > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&gap(self.omitted_bytes, self.omitted_lines));
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        ShortenedText {
            text,
            omitted_bytes: self.omitted_bytes,
            omitted_lines: self.omitted_lines,
        }
    }
}

/// Returns an offset at which a text can be cut without dividing a marker of a secret: `at`, or the start of a
/// possible marker there.
#[must_use]
pub fn before_marker(text: &[u8], at: usize) -> usize {
    let head = text.get(..at).unwrap_or(text);
    let from = head.len().saturating_sub(limits::MAX_MARKER_BYTES);
    let is_open = |start: &usize| {
        let begun = head.get(*start..).unwrap_or_default();
        MARKERS.iter().any(|marker| marker.is_begun_by(begun))
    };
    let Some(start) = (from..head.len()).find(is_open) else {
        return head.len();
    };
    // Those before it belong to it.
    let before = head.get(..start).unwrap_or_default().iter().rev();
    start - before.take_while(|byte| **byte == b'$').count()
}

/// Returns an offset at which a text can start without dividing a marker of a secret: `at`, or the end of the marker
/// there.
fn after_marker(text: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(limits::MAX_MARKER_BYTES);
    let end = |start: usize| {
        let rest = text.get(start..)?;
        let length = MARKERS.iter().find_map(|marker| marker.length(rest))?;
        Some(start + length).filter(|end| *end > at)
    };
    let spans = (from..at).find_map(end);
    // A `$` before the text's own placeholder says that it is none.
    let is_escaped = at > 0 && text.get(at - 1) == Some(&b'$');
    let rest = text.get(at..).unwrap_or_default().iter();
    let dollars = rest.take_while(|byte| **byte == b'$').count();
    let own = (is_escaped && dollars > 0).then(|| end(at + dollars - 1));
    let own = own.flatten();
    spans.or(own).unwrap_or(at)
}

/// Marker of a secret in redacted text, or an escaped placeholder.
struct Marker {
    start: &'static [u8],
    closer: u8,
}

const MARKERS: [Marker; 3] = [
    Marker {
        start: b"$KARYI{",
        closer: b'}',
    },
    Marker {
        start: b"$KARYI<",
        closer: b'>',
    },
    Marker {
        start: b"[KARYI:",
        closer: b']',
    },
];

impl Marker {
    /// Returns true when a text is an incomplete start of this marker.
    fn is_begun_by(&self, text: &[u8]) -> bool {
        match text.strip_prefix(self.start) {
            Some(inside) => inside.iter().all(is_inside),
            None => self.start.starts_with(text),
        }
    }

    /// Returns the length of the marker that a text starts with.
    fn length(&self, text: &[u8]) -> Option<usize> {
        let inside = text.strip_prefix(self.start)?;
        let inside = inside.get(..inside.len().min(limits::MAX_MARKER_BYTES))?;
        let length = inside.iter().position(|byte| !is_inside(byte))?;
        (inside.get(length) == Some(&self.closer)).then_some(self.start.len() + length + 1)
    }
}

/// Returns true when a byte may be part of a marker after its start.
fn is_inside(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_:|-".contains(byte)
}

/// Returns the longest prefix length of `text`, at most `max`, that ends between two characters.
fn floor_char_boundary(text: &str, max: usize) -> usize {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cap: (usize, usize), pieces: &[&str], expected: (&str, u64, u64)) {
        let mut buffer = HeadTail::new(Cap {
            head_bytes: cap.0,
            tail_bytes: cap.1,
        });
        for piece in pieces {
            buffer.push(piece);
        }
        let view = buffer.into_view();
        let (text, omitted_bytes, omitted_lines) = expected;
        let expected = ShortenedText {
            text: text.into(),
            omitted_bytes,
            omitted_lines,
        };
        assert_eq!(view, expected, "{cap:?} {pieces:?}");
    }

    #[test]
    fn short_text_is_whole() {
        check((4, 4), &[], ("", 0, 0));
        check((4, 4), &["ab", "cd", "efgh"], ("abcdefgh", 0, 0));
    }

    #[test]
    fn the_gap_is_counted_exactly() {
        check(
            (2, 2),
            &["ab1\n2\n3yz"],
            ("ab\n[... 5 bytes, 2 lines omitted ...]\nyz", 5, 2),
        );
        check(
            (2, 2),
            &["ab", "1", "\n2", "\n", "3y", "z"],
            ("ab\n[... 5 bytes, 2 lines omitted ...]\nyz", 5, 2),
        );
    }

    #[test]
    fn a_shortened_text_shrinks_again() {
        let cap = |bytes| Cap {
            head_bytes: bytes,
            tail_bytes: bytes,
        };
        let mut buffer = HeadTail::new(cap(6));
        buffer.push("1\n2\n3\n4\n5\n6\n7\n8\n");
        let mut view = buffer.into_view();
        view.shorten(cap(4));
        let text = "1\n2\n[... 8 bytes, 4 lines omitted ...]\n7\n8\n";
        assert_eq!(
            (view.text.as_str(), view.omitted_bytes, view.omitted_lines),
            (text, 8, 4)
        );
        view.shorten(cap(0));
        assert_eq!(view.text, "[... 16 bytes, 8 lines omitted ...]\n");
    }

    #[test]
    fn characters_are_never_cut() {
        check(
            (2, 2),
            &["a中bc文"],
            ("a\n[... 8 bytes, 0 lines omitted ...]\n", 8, 0),
        );
    }

    #[test]
    fn markers_are_never_cut() {
        for marker in [
            "$KARYI{NAME}",
            "[KARYI:NAME:base64]",
            "$$KARYI{NAME|file}",
            "$$KARYI<X>",
        ] {
            let text = format!("ab{marker}cd");
            for head in 0..text.len() {
                for tail in 0..text.len() - head {
                    let mut buffer = HeadTail::new(Cap {
                        head_bytes: head,
                        tail_bytes: tail,
                    });
                    buffer.push(&text);
                    let view = buffer.into_view();
                    let gap = format!("[... {} bytes, 0 lines omitted ...]\n", view.omitted_bytes);
                    let (start, end) = view.text.split_once(&gap).unwrap();
                    let start = start.trim_end_matches('\n');
                    let kept = start.len() + end.len();
                    assert_eq!(
                        kept as u64 + view.omitted_bytes,
                        text.len() as u64,
                        "{view:?}"
                    );
                    let rest = [start, end].map(|part| part.replace(marker, ""));
                    assert!(
                        "ab".starts_with(rest[0].as_str()) || rest[0] == "abc",
                        "{view:?}"
                    );
                    assert!(
                        "cd".ends_with(rest[1].as_str()) || rest[1] == "bcd",
                        "{view:?}"
                    );
                    assert!(start.len() <= head && end.len() <= tail, "{view:?}");
                }
            }
        }
    }

    #[test]
    fn any_chunking_gives_the_same_view() {
        let marked = "x[KARYI:NAME:base64] $KARYI{T}$$KARYI{U} a$".repeat(9);
        let whole = view_in_chunks(&marked, marked.len());
        for size in 1..40 {
            assert_eq!(view_in_chunks(&marked, size), whole, "chunks of {size}");
        }
        let text = "line one\nzwei ü\n三\nlast line of it\n".repeat(20);
        let whole = view_in_chunks(&text, text.chars().count());
        for size in 1..40 {
            assert_eq!(view_in_chunks(&text, size), whole, "chunks of {size}");
        }
    }

    fn view_in_chunks(text: &str, size: usize) -> ShortenedText {
        let chars: Vec<char> = text.chars().collect();
        let mut buffer = HeadTail::new(Cap::total(63));
        for chunk in chars.chunks(size.max(1)) {
            buffer.push(&chunk.iter().collect::<String>());
        }
        buffer.into_view()
    }
}
