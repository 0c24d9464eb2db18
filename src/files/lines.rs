//! Counts the lines of a text of any size and keeps the wanted ones.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use super::encoding::Encoding;
use crate::capped;

/// Bytes read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Some lines of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextView {
    /// The lines as they stand in the file, but for the byte order mark.
    pub text: String,
    /// Number of the first of them, from 1.
    pub first_line: u64,
    /// Lines of the whole file.
    pub total_lines: u64,
    /// Bytes of the whole file.
    pub total_bytes: u64,
    /// Bytes of the wanted lines that are not shown because there are too many.
    pub omitted_bytes: u64,
    /// Wanted lines of which nothing is shown.
    pub omitted_lines: u64,
    /// The encoding of the file when it is not UTF-8 and is known.
    pub encoding: Option<&'static str>,
    /// Whether bytes that no known encoding explains were replaced.
    pub is_lossy: bool,
}

/// Fails when the run was cancelled.
fn check(cancelled: &AtomicBool) -> io::Result<()> {
    match cancelled.load(Ordering::Relaxed) {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// Returns where the last lines of a file start, reading it backwards.
///
/// # Errors
/// Reading fails; `Interrupted` when the run was cancelled.
pub(super) fn start_of_last(
    file: &mut File,
    count: u64,
    cancelled: &AtomicBool,
) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut buffer = Vec::new();
    let mut left = count;
    let mut is_last = true;
    while end > 0 {
        check(cancelled)?;
        let start = end.saturating_sub(BUFFER_BYTES as u64);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        file.by_ref().take(end - start).read_to_end(&mut buffer)?;
        // A break at the very end ends the last line and starts none.
        if is_last && buffer.last() == Some(&b'\n') {
            buffer.pop();
        }
        is_last = false;
        for at in memchr::memrchr_iter(b'\n', &buffer) {
            left -= 1;
            if left == 0 {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

/// What is known of the encoding of a whole text of which some lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: the shown lines have to tell it.
    Nothing,
    /// It is this one.
    Encoding(Encoding),
    /// It is none that gives the same bytes again.
    NoText,
}

/// Returns the text of some bytes and the name of their encoding when it is not UTF-8; no text when
/// the encoding is unknown.
fn decode(bytes: &[u8], known: Known) -> (Option<Cow<'_, str>>, Option<&'static str>) {
    let of_whole = match known {
        Known::Encoding(encoding) => encoding.read_as(bytes).map(|text| (encoding, text)),
        Known::Nothing | Known::NoText => None,
    };
    if let Some((encoding, text)) = of_whole {
        return (Some(text), encoding.name());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Some(Cow::Borrowed(text)), None);
    }
    match Encoding::read(bytes) {
        Ok((encoding, text)) if known != Known::NoText => (Some(text), encoding.name()),
        Ok(_) | Err(_) => (None, None),
    }
}

/// Counts lines and keeps the wanted ones.
pub(super) struct Lines {
    first: u64,
    last: u64,
    max_bytes: u64,
    /// The line the next byte belongs to.
    line: u64,
    kept: Vec<u8>,
    /// Line of the last byte kept.
    kept_line: u64,
    wanted_bytes: u64,
    /// Line of the last wanted byte.
    wanted_line: u64,
    total_bytes: u64,
    /// Those of them that are a byte order mark, which is no text.
    mark_bytes: u64,
    ends_in_break: bool,
}

impl Lines {
    /// Starts a text of which the lines of a range are wanted, and so many bytes of them.
    pub(super) fn new((first, last): (u64, u64), max_bytes: u64) -> Self {
        Self {
            first,
            last,
            max_bytes,
            line: 1,
            kept: Vec::new(),
            kept_line: first.saturating_sub(1),
            wanted_bytes: 0,
            wanted_line: first.saturating_sub(1),
            total_bytes: 0,
            mark_bytes: 0,
            ends_in_break: true,
        }
    }

    /// Starts with the text of a file, behind its byte order mark.
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

    /// Goes on with what stands after the bytes so far, all of which is wanted.
    pub(super) fn keep_rest(self, max_bytes: u64) -> Self {
        Self {
            line: self.line,
            total_bytes: self.total_bytes,
            mark_bytes: self.mark_bytes,
            ends_in_break: self.ends_in_break,
            ..Self::new((self.line, u64::MAX), max_bytes)
        }
    }

    /// Takes everything to the end of a file.
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
        self.total_bytes += bytes.len() as u64;
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
                self.keep(line);
            }
            self.line += u64::from(end.is_some());
            rest = after;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.wanted_bytes += bytes.len() as u64;
        self.wanted_line = self.line;
        let free = self.max_bytes.saturating_sub(self.kept.len() as u64);
        let is_open = self.kept.len() as u64 + bytes.len() as u64 == self.wanted_bytes;
        let count = bytes.len().min(usize::try_from(free).unwrap_or(usize::MAX));
        if is_open && count > 0 {
            self.kept
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
            self.kept_line = self.line;
        }
    }

    /// Whether what was kept says nothing of the encoding, or all there is to know.
    pub(super) fn is_plain_or_whole(&self) -> bool {
        self.kept.is_ascii() || self.kept.len() as u64 + self.mark_bytes == self.total_bytes
    }

    /// Returns what was kept and counted.
    pub(super) fn finish(self) -> TextView {
        self.finish_as(Known::Nothing)
    }

    /// Does so with what is known of the encoding of the whole text.
    pub(super) fn finish_as(mut self, known: Known) -> TextView {
        if self.wanted_bytes > self.kept.len() as u64 {
            self.drop_partial();
        }
        let omitted_bytes = self.wanted_bytes - self.kept.len() as u64;
        let (text, encoding) = decode(&self.kept, known);
        let is_lossy = text.is_none();
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&self.kept));
        TextView {
            text: text.into_owned(),
            first_line: self.first,
            total_lines: self.line - u64::from(self.ends_in_break),
            total_bytes: self.total_bytes,
            omitted_bytes,
            omitted_lines: self.wanted_line - self.kept_line,
            encoding,
            is_lossy,
        }
    }

    /// Cuts what is shown after its last whole line; a single long line is cut between characters.
    fn drop_partial(&mut self) {
        match memchr::memrchr(b'\n', &self.kept) {
            Some(at) if at + 1 < self.kept.len() => {
                self.kept.truncate(at + 1);
                self.kept_line -= 1;
            }
            Some(_) => {}
            None => {
                let partial = partial_character(&self.kept);
                self.kept.truncate(self.kept.len() - partial);
                let end = capped::before_marker(&self.kept, self.kept.len());
                self.kept.truncate(end);
                if self.kept.is_empty() {
                    self.kept_line = self.first.saturating_sub(1);
                }
            }
        }
    }
}

/// Returns how many bytes at the end are the start of a character that is not whole.
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
    fn a_line_of_which_nothing_is_shown_is_left_out() {
        for (max, omitted) in [(0, 3), (1, 3), (2, 2)] {
            let mut lines = Lines::new((1, u64::MAX), max);
            lines.push("\u{E9}a\n".repeat(3).as_bytes());
            assert_eq!(lines.finish().omitted_lines, omitted, "{max}");
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
            let mut lines = Lines::new(range, max);
            lines
                .read(&mut text.as_bytes(), &AtomicBool::new(false))
                .unwrap();
            let whole = lines.finish();
            for size in 1..text.len() {
                let mut lines = Lines::new(range, max);
                text.as_bytes()
                    .chunks(size)
                    .for_each(|chunk| lines.push(chunk));
                assert_eq!(lines.finish(), whole, "{range:?} {max} {size}");
            }
        }
    }
}
