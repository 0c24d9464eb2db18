//! Reads one path: the text of a file, a directory, or what else it is.
//!
//! A text is read from start to end whatever its size, so that its lines are counted, and only what
//! was asked for is kept. Pipes, sockets and devices are refused, never opened.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::encoding::Encoding;
use super::image;
use super::kind::{Special, binary_kind};
use super::lines::{self, Known, Lines, TextView};
use super::listing::{self, Listing, Scope, Wanted};
use super::missing;
use super::recode::Recoded;
use super::root::Root;
use super::target::Way;
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
    /// Which entries of a directory.
    pub scope: Scope,
    /// Levels of a directory.
    pub depth: usize,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            lines: LineRange::ALL,
            max_bytes: limits::READ_FILE_BYTES,
            scope: Scope::NotIgnored,
            depth: limits::LISTING_DEPTH,
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
        /// Width and height of a picture.
        size: Option<(u32, u32)>,
    },
    /// A directory.
    Directory(Listing),
}

/// Reads the path `real`, which messages call `shown`, until `cancelled` is set; under a root, nothing
/// that a path which changes meanwhile leads to outside of it.
///
/// # Errors
/// The path names nothing or no file, may not be read, or reading fails.
pub fn view(
    root: &Root,
    shown: &Path,
    real: &Path,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> Result<Viewed, ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let way = Way::new(root).map_err(io)?;
    let found = way
        .look(real)
        .map_err(|error| missing::explain(&way, shown, real, &error))?;
    if found.is_dir() {
        let wanted = Wanted {
            scope: options.scope,
            own: Arc::clone(root.own()),
        };
        return listing::list(&way, shown, real, &wanted, options.depth).map(Viewed::Directory);
    }
    if let Some(special) = Special::of(found.file_type()) {
        return Err(special.refused(shown));
    }
    let file = way.file(real).map_err(io)?;
    // What it is now counts: another file may have taken the place of the first one.
    let found = file.metadata().map_err(io)?;
    if let Some(special) = Special::of(found.file_type()) {
        return Err(special.refused(shown));
    }
    match view_file(file, &found, options, cancelled) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(ToolError::new(
            ErrorCode::Cancelled,
            "the run was interrupted while the file was read",
        )),
        viewed => viewed.map_err(io),
    }
}

/// Bytes that decide whether a file is text.
const HEAD_BYTES: u64 = 8 << 10;

fn view_file(
    mut file: File,
    found: &Metadata,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<Viewed> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if let Some((name, decoder)) = wide_encoding(&head) {
        let mut text = view_wide(&mut file, decoder, options, cancelled)?;
        text.encoding = Some(name);
        text.total_bytes = found.len().max(file.stream_position()?);
        return Ok(Viewed::Text(text));
    }
    if let Some(kind) = binary_kind(&head) {
        return Ok(Viewed::Binary {
            kind,
            // The system says 0 of files it makes up while they are read.
            bytes: found.len().max(head.len() as u64),
            size: image::size(kind, &head, &mut file),
        });
    }
    view_text(&mut file, options, cancelled).map(Viewed::Text)
}

/// Returns the encoding of a text of which every character takes two bytes or more.
fn wide_encoding(head: &[u8]) -> Option<(&'static str, &'static encoding_rs::Encoding)> {
    // The last character may have been cut.
    let even = head.len() & !1;
    let name = [even, even.saturating_sub(2)].iter().find_map(|end| {
        let (encoding, _) = Encoding::read(head.get(..*end)?).ok()?;
        encoding.name()
    })?;
    match name {
        "utf-16le" => Some((name, encoding_rs::UTF_16LE)),
        "utf-16be" => Some((name, encoding_rs::UTF_16BE)),
        _ => None,
    }
}

fn view_wide(
    file: &mut File,
    encoding: &'static encoding_rs::Encoding,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let mut pass = |first: u64, last: u64, max_bytes: u64| {
        file.rewind()?;
        let mut lines = Lines::new((first, last), max_bytes);
        lines.read(&mut Recoded::new(&mut *file, encoding), cancelled)?;
        Ok(lines.finish())
    };
    match options.lines {
        LineRange::From { first, last } => {
            pass(first, last.unwrap_or(u64::MAX), shown_bytes(options))
        }
        LineRange::Last(count) => {
            let total: io::Result<TextView> = pass(1, 0, 0);
            let before = total?.total_lines.saturating_sub(count);
            pass(before + 1, u64::MAX, shown_bytes(options))
        }
    }
}

fn view_text(
    file: &mut File,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let range = match options.lines {
        LineRange::From { first, last } => (first, last.unwrap_or(u64::MAX)),
        LineRange::Last(count) => {
            if !is_sized(file) {
                return view_last_forward(file, count, options, cancelled);
            }
            let start = lines::start_of_last(file, count, cancelled)?;
            // What stands before is only counted, so that nothing is read twice.
            let mut before = Lines::of(file, (1, 0), 0)?;
            let left = start.saturating_sub(file.stream_position()?);
            before.read(&mut file.by_ref().take(left), cancelled)?;
            let mut rest = before.keep_rest(shown_bytes(options));
            rest.read(file, cancelled)?;
            return finish(rest, file);
        }
    };
    let mut lines = Lines::of(file, range, shown_bytes(options))?;
    lines.read(file, cancelled)?;
    finish(lines, file)
}

/// Ends a text in the encoding that the whole file has, as an edit and a search take it. Of a large file only the
/// shown lines tell it.
fn finish(lines: Lines, file: &mut File) -> io::Result<TextView> {
    let most = limits::SEARCH_WHOLE_BYTES;
    if lines.is_plain_or_whole() || file.metadata()?.len() > most {
        return Ok(lines.finish());
    }
    let mut whole = Vec::new();
    file.rewind()?;
    file.take(most).read_to_end(&mut whole)?;
    let known = match Encoding::read(&whole) {
        Ok((encoding, _)) => Known::Encoding(encoding),
        Err(_) => Known::NoText,
    };
    Ok(lines.finish_as(known))
}

/// Whether the system tells the size of a file; of those in `/proc` it says 0.
fn is_sized(file: &mut File) -> bool {
    let end = file.seek(SeekFrom::End(0));
    end.is_ok_and(|end| end > 0)
}

/// Shows the last lines of a file whose end is not known: they are counted first.
fn view_last_forward(
    file: &mut File,
    count: u64,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let mut pass = |range, max_bytes| {
        let mut lines = Lines::of(file, range, max_bytes)?;
        lines.read(file, cancelled)?;
        io::Result::Ok(lines.finish())
    };
    let before = pass((1, 0), 0)?.total_lines.saturating_sub(count);
    pass((before + 1, u64::MAX), shown_bytes(options))
}

fn shown_bytes(options: &ViewOptions) -> u64 {
    options.max_bytes.min(limits::MAX_READ_BYTES)
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

    fn look(path: &Path, options: &ViewOptions) -> Result<Viewed, ToolError> {
        view(
            &Root::unconfined(),
            path,
            path,
            options,
            &AtomicBool::new(false),
        )
    }

    fn read(bytes: &[u8], lines: &str, max_bytes: u64) -> TextView {
        let (_temp, path) = write(bytes);
        let options = ViewOptions {
            lines: LineRange::parse(lines).unwrap(),
            max_bytes,
            ..ViewOptions::default()
        };
        match look(&path, &options).unwrap() {
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
        // A byte order mark is no text.
        check("\u{FEFF}aa\nbb\n", "1-", 1, ("a", 5, 1));
        check("\u{FEFF}aa\nbb\n", "1-", 0, ("", 6, 2));
        check("\u{FEFF}aa\nbb\n", "-2", 3, ("aa\n", 3, 1));
    }

    #[test]
    fn some_lines_have_the_encoding_of_the_whole() {
        let text = "\u{914D}\u{7F6E}\n".to_owned()
            + &"\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\n"
                .repeat(9);
        let (bytes, ..) = encoding_rs::GB18030.encode(&text);
        let (_, whole) = Encoding::read(&bytes).unwrap();
        assert_eq!(whole, text);
        for lines in ["1", "2", "-1", "1-"] {
            let seen = read(&bytes, lines, 1000);
            assert_eq!(seen.encoding, Some("gb18030"), "{lines}");
            let at = seen.first_line as usize - 1;
            let shown: Vec<&str> = seen.text.lines().collect();
            let expected: Vec<&str> = text.lines().skip(at).take(shown.len()).collect();
            assert_eq!(shown, expected, "{lines}");
        }
        // Latin letters alone could be anything; the rest of the file says that it is no text at all.
        let broken = [&b"caf\xE9\n"[..], &b"\xC3\xA9\xC3\xA9\xC3\xA9 \xFF\n"[..]].concat();
        assert!(Encoding::read(&broken).is_err());
        let seen = read(&broken, "1", 1000);
        assert_eq!((seen.is_lossy, seen.encoding), (true, None));
    }

    #[test]
    fn encodings() {
        let check = |bytes: &[u8], lines: &str, text: &str, total: u64, name: Option<&str>| {
            let seen = read(bytes, lines, 100);
            let found = (seen.text.as_str(), seen.total_lines, seen.encoding);
            assert_eq!(found, (text, total, name), "{bytes:?} {lines}");
            assert_eq!(seen.total_bytes, bytes.len() as u64);
        };
        check(b"\xEF\xBB\xBFa\n", "1-", "a\n", 1, None);
        check(b"\xEF\xBB\xBF", "1-", "", 0, None);
        check(b"\xEF\xBB\xBF", "-1", "", 0, None);
        check(b"\xEF\xBB\xBFa\nb", "-1", "b", 2, None);
        check(b"\xEF\xBB\xBF\xEF\xBB\xBFa", "-1", "\u{FEFF}a", 1, None);
        check(b"a\r\nb\r\n", "2", "b\r\n", 2, None);
        check(
            b"tr\xE8s bien, caf\xE9\n",
            "1-",
            "tr\u{e8}s bien, caf\u{e9}\n",
            1,
            Some("latin-1"),
        );
        let wide = b"\xFF\xFEa\0\n\0\x2D\x4E\n\0c\0";
        check(wide, "1-", "a\n\u{4E2D}\nc", 3, Some("utf-16le"));
        check(wide, "2", "\u{4E2D}\n", 3, Some("utf-16le"));
        check(wide, "-2", "\u{4E2D}\nc", 3, Some("utf-16le"));
        let big: Vec<u8> = wide.chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
        check(&big, "-1", "c", 3, Some("utf-16be"));
        let (chinese, ..) = encoding_rs::GB18030.encode("这是一个简单的测试文件。\n第二行\n");
        check(
            &chinese,
            "1",
            "这是一个简单的测试文件。\n",
            2,
            Some("gb18030"),
        );
        let broken = read(b"\xC3\xA9\xC3\xA9\xC3\xA9 \xFF\n", "1-", 100);
        let expected = ("\u{e9}\u{e9}\u{e9} \u{FFFD}\n", true, None);
        assert_eq!(
            (broken.text.as_str(), broken.is_lossy, broken.encoding),
            expected
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_a_size_are_read_forward() {
        for path in ["/proc/cpuinfo", "/proc/self/status", "/proc/version"] {
            let whole = std::fs::read_to_string(path).unwrap().lines().count() as u64;
            let options = ViewOptions {
                lines: LineRange::Last(1),
                ..ViewOptions::default()
            };
            let Viewed::Text(text) = look(Path::new(path), &options).unwrap() else {
                panic!("{path} is a text");
            };
            assert_eq!(
                (text.first_line, text.total_lines),
                (whole, whole),
                "{path}"
            );
            assert_eq!(text.text.lines().count(), 1, "{path}");
            assert!(text.total_bytes >= text.text.len() as u64, "{path}");
        }
        let found = look(Path::new("/proc/self/cmdline"), &ViewOptions::default()).unwrap();
        let expected = std::fs::read("/proc/self/cmdline").unwrap().len() as u64;
        let is_right = matches!(found, Viewed::Binary { bytes, .. } if bytes == expected);
        assert!(is_right, "{found:?}");
    }

    #[test]
    fn other_things_are_named() {
        let (temp, path) = write(b"\x7FELF\x02\0");
        let options = ViewOptions::default();
        let binary = |kind, bytes, size| Viewed::Binary { kind, bytes, size };
        assert_eq!(look(&path, &options).unwrap(), binary("elf", 6, None));
        let picture = temp.path().join("picture");
        std::fs::write(
            &picture,
            b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x20",
        )
        .unwrap();
        let expected = binary("png", 24, Some((16, 32)));
        assert_eq!(look(&picture, &options).unwrap(), expected);
        let directory = look(temp.path(), &options).unwrap();
        assert!(matches!(directory, Viewed::Directory(_)), "{directory:?}");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let (temp, _) = write(b"x");
        let top = temp.path();
        nix::unistd::mkfifo(&top.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
        std::os::unix::fs::symlink("loop", top.join("loop")).unwrap();
        let check = |path: &str, code: ErrorCode, hint: &str| {
            let error = look(&top.join(path), &ViewOptions::default()).unwrap_err();
            assert_eq!(error.code, code, "{path}");
            assert!(error.hint.contains(hint), "{path}: {}", error.hint);
        };
        check("fifo", ErrorCode::NotAFile, "<command>");
        check("socket", ErrorCode::NotAFile, "<command>");
        check("/dev/zero", ErrorCode::NotAFile, "<command>");
        check("loop", ErrorCode::SymlinkLoop, "ls -l");
        let near = format!("did you mean {}?", top.join("file").display());
        check("flie", ErrorCode::NotFound, &near);
        check("file/x", ErrorCode::NotADirectory, "");
        check(&"x".repeat(300), ErrorCode::NameTooLong, "");
    }

    #[test]
    fn a_cancelled_read_ends() {
        let (_temp, path) = write(b"a\nb\n");
        for lines in ["1-", "-1"] {
            let options = ViewOptions {
                lines: LineRange::parse(lines).unwrap(),
                ..ViewOptions::default()
            };
            let error = view(
                &Root::unconfined(),
                &path,
                &path,
                &options,
                &AtomicBool::new(true),
            )
            .unwrap_err();
            assert_eq!(error.code, ErrorCode::Cancelled, "{lines}");
        }
    }

    #[test]
    fn the_last_lines_of_a_long_text_are_found() {
        let line = |number: usize| format!("{number} {}\n", "x".repeat(number % 300));
        let text: String = (1..=2000).map(line).collect();
        for count in [1, 2, 3, 500, 1500, 1999, 2000, 2001] {
            let seen = read(text.as_bytes(), &format!("-{count}"), 1 << 30);
            let first = 2001 - count.min(2000);
            let expected: String = (first..=2000).map(line).collect();
            let found = (seen.first_line, seen.total_lines, seen.total_bytes);
            assert_eq!(found, (first as u64, 2000, text.len() as u64), "{count}");
            assert_eq!((seen.text, seen.omitted_bytes), (expected, 0), "{count}");
        }
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
