//! Reads one path: the text of a file, a directory, or a description of anything else.
//!
//! A text is read to its end, whatever its size, so that its lines can be counted; only the requested lines
//! are kept. Sizes are in bytes of UTF-8, whatever the encoding of the file. Pipes, sockets and devices are
//! refused and never opened.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::encoding::{Encoding, GUESSED_BYTES};
use super::image;
use super::kind::{SpecialFile, binary_kind};
use super::line_reader::{self, LineReader, Region, TextView};
use super::listing::{self, EntryFilter, Listing, Scope};
use super::opener::Opener;
use super::recode::Utf8Reader;
use super::root::Root;
use super::similar_paths;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Requested lines of a text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRange {
    /// From a line to another one, or to the end.
    From {
        /// First line.
        first: u64,
        /// Last line.
        last: Option<u64>,
    },
    /// This many lines at the end.
    Last(u64),
}

impl LineRange {
    /// All lines.
    pub const ALL: Self = Self::From {
        first: 1,
        last: None,
    };

    /// Parses `10-40`, `10-`, `7` or `-50`.
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

/// Options of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewOptions {
    /// Lines of a text.
    pub lines: LineRange,
    /// Most bytes of a text, in UTF-8.
    pub max_bytes: u64,
    /// Selection of directory entries.
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

/// View of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathView {
    /// A text.
    Text(TextView),
    /// Binary file.
    Binary {
        /// Name of its format, or `binary`.
        kind: &'static str,
        /// Size in bytes.
        bytes: u64,
        /// Width and height of an image.
        size: Option<(u32, u32)>,
    },
    /// A directory.
    Directory(Listing),
}

/// Reads the path `real`, which messages call `shown`, until `cancelled` is set. Under a root, a path that
/// changes meanwhile cannot lead outside.
///
/// # Errors
/// The path does not exist, is a special file, or cannot be read.
pub fn view(
    root: &Root,
    shown: &Path,
    real: &Path,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> Result<PathView, ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let opener = Opener::new(root).map_err(io)?;
    let found = opener
        .metadata(real)
        .map_err(|error| similar_paths::explain(&opener, shown, real, &error))?;
    if found.is_dir() {
        let requested = EntryFilter {
            scope: options.scope,
            private_paths: Arc::clone(root.private_paths()),
        };
        return listing::list(&opener, shown, real, &requested, options.depth)
            .map(PathView::Directory);
    }
    if let Some(special) = SpecialFile::of(found.file_type()) {
        return Err(special.refused(shown));
    }
    let file = opener.file(real).map_err(io)?;
    // The path may have been replaced since the first check.
    let found = file.metadata().map_err(io)?;
    if let Some(special) = SpecialFile::of(found.file_type()) {
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

/// Size of the prefix that decides whether a file is text.
const HEAD_BYTES: u64 = 8 << 10;

fn view_file(
    mut file: File,
    found: &Metadata,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<PathView> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if let Some(encoding) = wide_encoding(&head) {
        let mut text = view_wide(&mut file, encoding, options, cancelled)?;
        text.total_bytes = found.len().max(file.stream_position()?);
        return Ok(PathView::Text(text));
    }
    if let Some(kind) = binary_kind(&head) {
        return Ok(PathView::Binary {
            kind,
            // Files of pseudo file systems have a size of 0.
            bytes: found.len().max(head.len() as u64),
            size: image::size(kind, &head, &mut file),
        });
    }
    view_text(&mut file, options, cancelled).map(PathView::Text)
}

/// Returns the encoding of a text in UTF-16.
fn wide_encoding(head: &[u8]) -> Option<Encoding> {
    // The prefix may end inside a character.
    let even = head.len() & !1;
    [even, even.saturating_sub(2)].iter().find_map(|end| {
        let (encoding, _) = Encoding::read(head.get(..*end)?).ok()?;
        encoding.is_wide().then_some(encoding)
    })
}

fn view_wide(
    file: &mut File,
    encoding: Encoding,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let mut pass = |first: u64, last: u64, max_bytes: u64| {
        file.rewind()?;
        let mut lines = LineReader::new((first, last), max_bytes);
        let mut text = Utf8Reader::new(&mut *file, encoding.decoder());
        lines.read(&mut text, cancelled)?;
        Ok(finish_decoded(lines, encoding, text.has_errors()))
    };
    match options.lines {
        LineRange::From { first, last } => {
            pass(first, last.unwrap_or(u64::MAX), shown_bytes(options))
        }
        LineRange::Last(count) => {
            let total = pass(1, 0, 0)?.total_lines;
            let (first, last) = last_of(total, count);
            pass(first, last, shown_bytes(options))
        }
    }
}

/// Returns the first and last of `count` lines at the end of `total` lines.
fn last_of(total: u64, count: u64) -> (u64, u64) {
    (total.saturating_sub(count) + 1, total)
}

/// Finishes decoded text. It is lossy if the shown lines contain a replacement character.
fn finish_decoded(lines: LineReader, encoding: Encoding, has_errors: bool) -> TextView {
    let text = lines.finish();
    TextView {
        encoding: encoding.name(),
        is_doubtful: encoding.is_doubtful(),
        is_lossy: has_errors && text.text.contains(char::REPLACEMENT_CHARACTER),
        ..text
    }
}

fn view_text(
    file: &mut File,
    options: &ViewOptions,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let most = shown_bytes(options);
    let range = match options.lines {
        LineRange::From { first, last } => (first, last.unwrap_or(u64::MAX)),
        LineRange::Last(count) if !is_sized(file) => {
            let mut all = LineReader::of(file, (1, 0), 0)?;
            all.read(file, cancelled)?;
            last_of(all.finish().total_lines, count)
        }
        LineRange::Last(count) => {
            let requested = line_reader::last_lines(file, count, cancelled)?;
            return view_last(file, &requested, most, cancelled);
        }
    };
    let mut lines = LineReader::of(file, range, most)?;
    lines.read(file, cancelled)?;
    finish(lines, file, most, cancelled)
}

/// Shows the range `requested`, which was the end of the file when it was located. If the file grew since, no
/// more lines are shown than requested.
fn view_last(
    file: &mut File,
    requested: &Range<u64>,
    most: u64,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    // Only counts the lines before it, so that nothing is read twice.
    let mut before = LineReader::of(file, (1, 0), 0)?;
    let left = requested.start.saturating_sub(file.stream_position()?);
    before.read(&mut file.by_ref().take(left), cancelled)?;
    let mut rest = before.request_rest(most);
    let left = requested.end.saturating_sub(file.stream_position()?);
    rest.read(&mut file.by_ref().take(left), cancelled)?;
    finish(rest, file, most, cancelled)
}

/// Finishes a text in the encoding of the whole file, as edits and searches use it; for a large file the
/// requested lines decide. If it is not UTF-8 they are read again.
fn finish(
    lines: LineReader,
    file: &mut File,
    most: u64,
    cancelled: &AtomicBool,
) -> io::Result<TextView> {
    let requested = lines.requested();
    let Some(beyond_ascii) = requested.beyond_ascii else {
        return Ok(lines.finish());
    };
    let is_large = file.metadata()?.len() > limits::SEARCH_WHOLE_BYTES;
    let encoding = match (is_large, lines.is_utf8()) {
        (true, true) => return Ok(lines.finish()),
        (false, true) if lines.is_whole() => return Ok(lines.finish()),
        (true, false) => encoding_of(sample(file, requested, beyond_ascii)?),
        (false, _) => encoding_of(read_at(file, 0, limits::SEARCH_WHOLE_BYTES)?),
    };
    let encoding = match encoding {
        Some(encoding) if encoding.name().is_some() && !encoding.is_wide() => encoding,
        Some(_) | None if lines.is_utf8() => return Ok(lines.finish()),
        Some(_) | None => Encoding::UTF8,
    };
    let of_file = lines.finish();
    file.seek(SeekFrom::Start(requested.start))?;
    let mut decoded = LineReader::new((1, u64::MAX), most);
    let mut text = Utf8Reader::within(file.take(requested.bytes), encoding.decoder());
    decoded.read(&mut text, cancelled)?;
    Ok(TextView {
        first_line: of_file.first_line,
        total_lines: of_file.total_lines,
        total_bytes: of_file.total_bytes,
        ..finish_decoded(decoded, encoding, text.has_errors())
    })
}

fn encoding_of(bytes: Vec<u8>) -> Option<Encoding> {
    let (encoding, _) = Encoding::read(&bytes).ok()?;
    Some(encoding)
}

/// Reads a sample that starts at the first requested non-ASCII character.
fn sample(file: &mut File, requested: Region, beyond_ascii: u64) -> io::Result<Vec<u8>> {
    let left = requested.start + requested.bytes - beyond_ascii;
    let most = left.min(GUESSED_BYTES as u64);
    let mut sample = read_at(file, beyond_ascii, most)?;
    if most < left {
        // The sample may end inside a character. A byte below `0` is not part of a multibyte character in any
        // encoding.
        let end = sample.iter().rposition(|byte| *byte < b'0');
        let end = end.filter(|end| sample.get(..*end).is_some_and(|part| !part.is_ascii()));
        sample.truncate(end.unwrap_or(sample.len()));
    }
    Ok(sample)
}

fn read_at(file: &mut File, start: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

/// Tells whether the system knows the size of a file; in `/proc` it is 0.
fn is_sized(file: &mut File) -> bool {
    let end = file.seek(SeekFrom::End(0));
    end.is_ok_and(|end| end > 0)
}

fn shown_bytes(options: &ViewOptions) -> u64 {
    options.max_bytes.min(limits::MAX_READ_BYTES)
}

#[cfg(test)]
mod tests;
