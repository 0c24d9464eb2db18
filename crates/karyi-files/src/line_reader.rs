//! Counts the lines of a text of any size and keeps the requested ones.
//!
//! Sizes are in bytes of UTF-8, whatever the encoding of the file. The first pass reads the file as if it
//! were UTF-8 and records where the requested lines are; only if they turn out to be something else are they
//! decoded in a second pass.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use karyi_core::head_tail;

/// Bytes read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Requested lines of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextView {
    /// Text of the lines, without the byte order mark.
    pub text: String,
    /// Number of the first line, from 1.
    pub first_line: u64,
    /// Lines of the whole file.
    pub total_lines: u64,
    /// Bytes of the whole file.
    pub total_bytes: u64,
    /// Requested bytes, in UTF-8, that were omitted because there are too many.
    pub omitted_bytes: u64,
    /// Requested lines that were omitted entirely.
    pub omitted_lines: u64,
    /// Encoding of the file when it is known and not UTF-8.
    pub encoding: Option<&'static str>,
    /// True if the encoding is only a guess.
    pub is_doubtful: bool,
    /// True if undecodable bytes were replaced.
    pub is_lossy: bool,
}

/// Fails when the run was cancelled.
fn check(cancelled: &AtomicBool) -> io::Result<()> {
    match cancelled.load(Ordering::Relaxed) {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// Returns where the last lines of a file start and end, reading backwards. Anything appended meanwhile is
/// excluded.
///
/// # Errors
/// Reading fails; `Interrupted` when the run was cancelled.
pub(super) fn last_lines(
    file: &mut File,
    count: u64,
    cancelled: &AtomicBool,
) -> io::Result<Range<u64>> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut end = size;
    let mut buffer = Vec::new();
    let mut left = count;
    let mut is_last = true;
    while end > 0 {
        check(cancelled)?;
        let start = end.saturating_sub(BUFFER_BYTES as u64);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        file.by_ref().take(end - start).read_to_end(&mut buffer)?;
        // A trailing line break ends the last line and starts none.
        if is_last && buffer.last() == Some(&b'\n') {
            buffer.pop();
        }
        is_last = false;
        for at in memchr::memrchr_iter(b'\n', &buffer) {
            left -= 1;
            if left == 0 {
                return Ok(start + at as u64 + 1..size);
            }
        }
        end = start;
    }
    Ok(0..size)
}

/// Location of the requested lines in their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Region {
    /// Offset of the first line.
    pub(super) start: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Offset of the first non-ASCII character in them.
    pub(super) beyond_ascii: Option<u64>,
}

/// Character set of bytes that arrive in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Charset {
    #[default]
    Ascii,
    /// UTF-8 so far, with the bytes of an unfinished last character.
    Utf8 {
        partial: [u8; 4],
        count: usize,
    },
    Other,
}

impl Charset {
    fn push(&mut self, bytes: &[u8]) {
        let (partial, count) = match *self {
            Self::Ascii if bytes.is_ascii() => return,
            Self::Ascii => ([0; 4], 0),
            Self::Utf8 { partial, count } => (partial, count),
            Self::Other => return,
        };
        let (mut first, mut rest) = (partial.get(..count).unwrap_or_default().to_vec(), bytes);
        // Completes the unfinished character separately, so that the piece need not be copied.
        while !first.is_empty() && std::str::from_utf8(&first).is_err() {
            match rest.split_first() {
                Some((byte, after)) if first.len() < 4 => {
                    first.push(*byte);
                    rest = after;
                }
                Some(_) | None => break,
            }
        }
        let is_begun = rest.is_empty();
        *self = match (Self::of(&first), Self::of(rest)) {
            (begun @ Self::Utf8 { .. }, _) if is_begun => begun,
            (Self::Utf8 { count: 0, .. }, rest) => rest,
            _ => Self::Other,
        };
    }

    /// Returns the character set of a piece that starts at a character.
    fn of(bytes: &[u8]) -> Self {
        let (mut partial, mut count) = ([0; 4], 0);
        if let Err(error) = std::str::from_utf8(bytes) {
            let rest = bytes.get(error.valid_up_to()..).unwrap_or_default();
            if error.error_len().is_some() {
                return Self::Other;
            }
            count = rest.len();
            partial
                .iter_mut()
                .zip(rest)
                .for_each(|(to, byte)| *to = *byte);
        }
        Self::Utf8 { partial, count }
    }
}

/// Counts lines and keeps the requested ones.
pub(super) struct LineReader {
    first: u64,
    last: u64,
    max_bytes: u64,
    /// Line of the next byte.
    line: u64,
    collected: Vec<u8>,
    /// Line of the last kept byte.
    collected_line: u64,
    requested: Region,
    charset: Charset,
    /// Line of the last requested byte.
    requested_line: u64,
    total_bytes: u64,
    /// Bytes of the byte order mark, which is not text.
    mark_bytes: u64,
    ends_in_break: bool,
}

impl LineReader {
    /// Starts a text of which at most `max_bytes` of a range of lines are requested.
    pub(super) fn new((first, last): (u64, u64), max_bytes: u64) -> Self {
        Self {
            first,
            last,
            max_bytes,
            line: 1,
            collected: Vec::new(),
            collected_line: first.saturating_sub(1),
            requested: Region::default(),
            charset: Charset::Ascii,
            requested_line: first.saturating_sub(1),
            total_bytes: 0,
            mark_bytes: 0,
            ends_in_break: true,
        }
    }

    /// Starts at the text of a file, after its byte order mark.
    pub(super) fn of(file: &mut File, range: (u64, u64), max_bytes: u64) -> io::Result<Self> {
        let mut lines = Self::new(range, max_bytes);
        let mut head = Vec::new();
        file.rewind()?;
        file.by_ref()
            .take(MARK.len() as u64)
            .read_to_end(&mut head)?;
        match head == MARK {
            true => lines.mark_bytes = MARK.len() as u64,
            false => file.rewind()?,
        }
        lines.total_bytes = lines.mark_bytes;
        Ok(lines)
    }

    /// Continues after the bytes so far and requests all that follows.
    pub(super) fn request_rest(self, max_bytes: u64) -> Self {
        Self {
            line: self.line,
            total_bytes: self.total_bytes,
            mark_bytes: self.mark_bytes,
            ends_in_break: self.ends_in_break,
            ..Self::new((self.line, u64::MAX), max_bytes)
        }
    }

    /// Reads to the end of a file.
    ///
    /// # Errors
    /// Reading fails; `Interrupted` when the run was cancelled.
    pub(super) fn read(&mut self, file: &mut impl Read, cancelled: &AtomicBool) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            check(cancelled)?;
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.push(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let end_of_all = self.total_bytes + bytes.len() as u64;
        self.total_bytes = end_of_all;
        self.ends_in_break = bytes.last() == Some(&b'\n');
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.line > self.last {
                self.line += memchr::memchr_iter(b'\n', rest).count() as u64;
                return;
            }
            let end = memchr::memchr(b'\n', rest);
            let (line, after) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
            if self.line >= self.first {
                self.add_requested(line, end_of_all - rest.len() as u64);
            }
            self.line += u64::from(end.is_some());
            rest = after;
        }
    }

    /// Adds a requested piece of a line at this offset.
    fn add_requested(&mut self, bytes: &[u8], at: u64) {
        let was_ascii = self.charset == Charset::Ascii;
        self.charset.push(bytes);
        if was_ascii && self.charset != Charset::Ascii {
            self.requested.beyond_ascii = Some(at);
        }
        if self.requested.bytes == 0 {
            self.requested.start = at;
        }
        self.requested.bytes += bytes.len() as u64;
        self.requested_line = self.line;
        let free = self.max_bytes.saturating_sub(self.collected.len() as u64);
        let is_open = self.collected.len() as u64 + bytes.len() as u64 == self.requested.bytes;
        let count = bytes.len().min(usize::try_from(free).unwrap_or(usize::MAX));
        if is_open && count > 0 {
            self.collected
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
            self.collected_line = self.line;
        }
    }

    /// Returns the location of the requested lines.
    pub(super) fn requested(&self) -> Region {
        self.requested
    }

    /// Tells whether the requested lines are UTF-8.
    pub(super) fn is_utf8(&self) -> bool {
        matches!(
            self.charset,
            Charset::Ascii | Charset::Utf8 { count: 0, .. }
        )
    }

    /// Tells whether everything except a byte order mark is requested.
    pub(super) fn is_whole(&self) -> bool {
        self.requested.bytes + self.mark_bytes == self.total_bytes
    }

    /// Returns the kept lines and the counts of a text in UTF-8.
    pub(super) fn finish(mut self) -> TextView {
        if self.requested.bytes > self.collected.len() as u64 {
            self.drop_partial();
        }
        let omitted_bytes = self.requested.bytes - self.collected.len() as u64;
        TextView {
            text: into_text(self.collected),
            first_line: self.first,
            total_lines: self.line - u64::from(self.ends_in_break),
            total_bytes: self.total_bytes,
            omitted_bytes,
            omitted_lines: self.requested_line - self.collected_line,
            encoding: None,
            is_doubtful: false,
            is_lossy: false,
        }
    }

    /// Cuts the kept text after its last whole line, or a single long line between characters.
    fn drop_partial(&mut self) {
        match memchr::memrchr(b'\n', &self.collected) {
            Some(at) if at + 1 < self.collected.len() => {
                self.collected.truncate(at + 1);
                self.collected_line -= 1;
            }
            Some(_) => {}
            None => {
                let partial = partial_character(&self.collected);
                self.collected.truncate(self.collected.len() - partial);
                let end = head_tail::before_marker(&self.collected, self.collected.len());
                self.collected.truncate(end);
                if self.collected.is_empty() {
                    self.collected_line = self.first.saturating_sub(1);
                }
            }
        }
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the length of an incomplete character at the end.
fn partial_character(bytes: &[u8]) -> usize {
    let end = bytes.len().saturating_sub(3);
    let tail = bytes.get(end..).unwrap_or_default();
    let whole = tail.iter().rposition(|byte| byte & 0xC0 != 0x80);
    let start = whole.map_or(&[][..], |at| tail.get(at..).unwrap_or_default());
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() => start.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entirely_omitted_lines_are_counted() {
        for (max, omitted) in [(0, 3), (1, 3), (2, 2)] {
            let mut lines = LineReader::new((1, u64::MAX), max);
            lines.push("\u{E9}a\n".repeat(3).as_bytes());
            assert_eq!(lines.finish().omitted_lines, omitted, "{max}");
        }
    }

    #[test]
    fn utf_8_is_recognised_in_any_pieces() {
        for (bytes, expected) in [
            ("a\u{E9}\u{4E2D}\u{1F600}b".as_bytes(), true),
            (b"abc", true),
            (b"a\xC3", false),
            (b"a\xC3\xC3\xA9", false),
            (b"\xF0\x9F\x98x", false),
            (b"\xF0\x9F\x98\x80\x80", false),
            (b"\xA9a", false),
        ] {
            for size in 1..=bytes.len() {
                let mut charset = Charset::Ascii;
                bytes.chunks(size).for_each(|piece| charset.push(piece));
                let is_utf8 = matches!(charset, Charset::Ascii | Charset::Utf8 { count: 0, .. });
                assert_eq!(is_utf8, expected, "{bytes:?} {size}");
            }
        }
    }

    #[test]
    fn any_chunking_gives_the_same_view() {
        let text = "one\n\nthree é\nfour";
        for (range, max) in [
            ((1, u64::MAX), 100),
            ((2, 3), 100),
            ((1, u64::MAX), 7),
            ((3, 4), 9),
        ] {
            let mut lines = LineReader::new(range, max);
            lines
                .read(&mut text.as_bytes(), &AtomicBool::new(false))
                .unwrap();
            let whole = lines.finish();
            for size in 1..text.len() {
                let mut lines = LineReader::new(range, max);
                text.as_bytes()
                    .chunks(size)
                    .for_each(|chunk| lines.push(chunk));
                assert_eq!(lines.finish(), whole, "{range:?} {max} {size}");
            }
        }
    }
}
