//! Reads one path: the text of a file, a directory, or what else it is.
//!
//! A text is read once from start to end whatever its size, so that its lines are counted, and only
//! what was asked for is kept. Pipes, sockets and devices are named, never opened.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::Path;

use super::kind::{Special, binary_kind};
use super::listing::{self, Listing, Scope};
use super::target::open_for_reading;
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// Which lines of a text are wanted. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRange {
    /// From a line to another one, or to the end.
    From {
        /// The first line.
        first: u64,
        /// The last line.
        last: Option<u64>,
    },
    /// So many lines at the end.
    Last(u64),
}

impl LineRange {
    /// All lines.
    pub const ALL: Self = Self::From {
        first: 1,
        last: None,
    };

    /// Reads `10-40`, `10-`, `7` or `-50`.
    ///
    /// # Errors
    /// `bad_arguments` for anything else.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|line| *line > 0);
        let range = match text.trim().split_once('-') {
            None => number(text).map(|line| Self::From {
                first: line,
                last: Some(line),
            }),
            Some(("", count)) => number(count).map(Self::Last),
            Some((first, "")) => number(first).map(|first| Self::From { first, last: None }),
            Some((first, last)) => number(first)
                .zip(number(last))
                .filter(|(first, last)| first <= last)
                .map(|(first, last)| Self::From {
                    first,
                    last: Some(last),
                }),
        };
        range.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            let message = format!("expected lines like 10-40, 10-, 7 or -50, found {shown:?}");
            ToolError::new(ErrorCode::BadArguments, message)
        })
    }
}

/// What is wanted of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewOptions {
    /// Lines of a text.
    pub lines: LineRange,
    /// Bytes of a text, at most.
    pub max_bytes: u64,
    /// Entries of a directory.
    pub scope: Scope,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            lines: LineRange::ALL,
            max_bytes: limits::READ_FILE_BYTES,
            scope: Scope::NotIgnored,
        }
    }
}

/// What a path turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewed {
    /// A text.
    Text(TextView),
    /// A file that is no text.
    Binary {
        /// Name of its format, or `binary`.
        kind: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// A directory.
    Directory(Listing),
    /// A pipe, socket or device.
    Special(Special),
}

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
    /// Whether bytes that are not UTF-8 were replaced.
    pub is_lossy: bool,
}

/// Reads the path `real`, which messages call `shown`.
///
/// # Errors
/// The path names nothing, may not be read, or reading fails.
pub fn view(shown: &Path, real: &Path, options: &ViewOptions) -> Result<Viewed, ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let found = std::fs::metadata(real).map_err(io)?;
    if found.is_dir() {
        return listing::list(shown, real, options.scope).map(Viewed::Directory);
    }
    if let Some(special) = Special::of(found.file_type()) {
        return Ok(Viewed::Special(special));
    }
    let file = open_for_reading(real).map_err(io)?;
    view_file(file, &found, options).map_err(io)
}

/// Bytes that decide whether a file is text.
const HEAD_BYTES: u64 = 8 << 10;

fn view_file(mut file: File, found: &Metadata, options: &ViewOptions) -> io::Result<Viewed> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if let Some(kind) = binary_kind(&head) {
        return Ok(Viewed::Binary {
            kind,
            bytes: found.len(),
        });
    }
    let range = match options.lines {
        LineRange::From { first, last } => (first, last.unwrap_or(u64::MAX)),
        LineRange::Last(count) => {
            file.rewind()?;
            let total = read_lines(&mut file, (1, 0), 0)?.total_lines;
            (
                total.saturating_sub(count.saturating_sub(1)).max(1),
                u64::MAX,
            )
        }
    };
    file.rewind()?;
    let max_bytes = options.max_bytes.min(limits::MAX_READ_BYTES);
    read_lines(&mut file, range, max_bytes).map(Viewed::Text)
}

/// Reads to the end and keeps what stands in the lines of `range`, up to `max_bytes`.
fn read_lines(file: &mut impl Read, range: (u64, u64), max_bytes: u64) -> io::Result<TextView> {
    let mut lines = Lines::new(range, max_bytes);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(lines.finish()),
            Ok(count) => lines.push(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Counts lines and keeps the wanted ones.
struct Lines {
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
    ends_in_break: bool,
}

impl Lines {
    fn new((first, last): (u64, u64), max_bytes: u64) -> Self {
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
            ends_in_break: true,
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

    fn finish(mut self) -> TextView {
        if self.wanted_bytes > self.kept.len() as u64 {
            self.drop_partial();
        }
        let omitted_bytes = self.wanted_bytes - self.kept.len() as u64;
        let is_lossy = std::str::from_utf8(&self.kept).is_err();
        let text = String::from_utf8_lossy(&self.kept);
        let text = match text.strip_prefix('\u{FEFF}') {
            Some(rest) if self.first == 1 => rest.to_owned(),
            _ => text.into_owned(),
        };
        TextView {
            text,
            first_line: self.first,
            total_lines: self.line - u64::from(self.ends_in_break),
            total_bytes: self.total_bytes,
            omitted_bytes,
            omitted_lines: self.wanted_line - self.kept_line,
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

    fn write(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        (temp, path)
    }

    fn read(bytes: &[u8], lines: &str, max_bytes: u64) -> TextView {
        let (_temp, path) = write(bytes);
        let options = ViewOptions {
            lines: LineRange::parse(lines).unwrap(),
            max_bytes,
            ..ViewOptions::default()
        };
        match view(&path, &path, &options).unwrap() {
            Viewed::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Checks text, first line and total lines, and that nothing is left out.
    fn check(bytes: &str, lines: &str, expected: (&str, u64, u64)) {
        let expected = TextView {
            text: expected.0.into(),
            first_line: expected.1,
            total_lines: expected.2,
            total_bytes: bytes.len() as u64,
            ..TextView::default()
        };
        assert_eq!(
            read(bytes.as_bytes(), lines, 1000),
            expected,
            "{bytes:?} {lines}"
        );
    }

    #[test]
    fn asked_lines_are_shown() {
        check("a\nb\nc\n", "1-", ("a\nb\nc\n", 1, 3));
        check("a\nb\nc", "2-3", ("b\nc", 2, 3));
        check("a\nb\nc\n", "2", ("b\n", 2, 3));
        check("a\nb\nc\n", "-2", ("b\nc\n", 2, 3));
        check("a\nb\nc", "-1", ("c", 3, 3));
        check("a\nb", "-9", ("a\nb", 1, 2));
        check("a\n", "5-9", ("", 5, 1));
        check("", "1-", ("", 1, 0));
        check("", "-3", ("", 1, 0));
        check("\n\n", "2-", ("\n", 2, 2));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let check = |bytes: &str, lines: &str, max, expected: (&str, u64, u64)| {
            let seen = read(bytes.as_bytes(), lines, max);
            assert_eq!(
                (seen.text.as_str(), seen.omitted_bytes, seen.omitted_lines),
                expected,
                "{bytes:?} {lines} {max}"
            );
        };
        check("aa\nbb\ncc\n", "1-", 9, ("aa\nbb\ncc\n", 0, 0));
        check("aa\nbb\ncc\n", "1-", 8, ("aa\nbb\n", 3, 1));
        check("aa\nbb\ncc\n", "1-", 6, ("aa\nbb\n", 3, 1));
        check("aa\nbb\ncc\n", "1-2", 4, ("aa\n", 3, 1));
        check("aa\nbb\ncc\n", "2-3", 1, ("b", 5, 1));
        check("ééé\n", "1-", 3, ("é", 5, 0));
        check("aa\nbb\n", "1-", 0, ("", 6, 2));
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
            let whole = read_lines(&mut text.as_bytes(), range, max).unwrap();
            for size in 1..text.len() {
                let mut lines = Lines::new(range, max);
                text.as_bytes()
                    .chunks(size)
                    .for_each(|chunk| lines.push(chunk));
                assert_eq!(lines.finish(), whole, "{range:?} {max} {size}");
            }
        }
    }

    #[test]
    fn encodings() {
        assert_eq!(read(b"\xEF\xBB\xBFa\n", "1-", 100).text, "a\n");
        let latin = read(b"caf\xE9\n", "1-", 100);
        assert_eq!(
            (latin.text.as_str(), latin.is_lossy),
            ("caf\u{FFFD}\n", true)
        );
        assert_eq!(read(b"a\r\nb\r\n", "2", 100).text, "b\r\n");
    }

    #[test]
    fn other_things_are_named() {
        let (temp, path) = write(b"\x7FELF\x02\0");
        let options = ViewOptions::default();
        assert_eq!(
            view(&path, &path, &options).unwrap(),
            Viewed::Binary {
                kind: "elf",
                bytes: 6
            }
        );
        let fifo = temp.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(
            view(&fifo, &fifo, &options).unwrap(),
            Viewed::Special(Special::Fifo)
        );
        assert!(matches!(
            view(temp.path(), temp.path(), &options).unwrap(),
            Viewed::Directory(_)
        ));
        let missing = temp.path().join("none");
        assert_eq!(
            view(Path::new("none"), &missing, &options)
                .unwrap_err()
                .message,
            "none: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_huge_file_needs_little_memory() {
        let (_temp, path) = write(b"");
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        assert_eq!(
            view(&path, &path, &ViewOptions::default()).unwrap(),
            Viewed::Binary {
                kind: "binary",
                bytes: 1 << 30
            }
        );
    }

    #[test]
    fn bad_ranges_are_refused() {
        for text in ["", "-", "0", "a", "5-3", "1-2-3", "-0", "1..3"] {
            assert_eq!(
                LineRange::parse(text).unwrap_err().code,
                ErrorCode::BadArguments,
                "{text}"
            );
        }
        assert_eq!(
            LineRange::parse(" 10 - 40 ").unwrap(),
            LineRange::From {
                first: 10,
                last: Some(40)
            }
        );
    }
}
