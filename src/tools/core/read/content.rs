//! Content of one file or directory in a `<read>` result, with advice.

use super::{File, FileContent, more_than_none};
use karyi_files::line_reader::TextView;
use karyi_files::listing::Listing;
use karyi_files::recode::CONVERT;
use karyi_files::view::LineRange;

/// Returns the content of a text; `names_lines` is true when lines were requested.
pub(super) fn text_content(
    text: &TextView,
    names_lines: bool,
    requested: LineRange,
) -> FileContent {
    let is_empty = names_lines && text.total_lines == 0;
    FileContent {
        advice: match is_empty {
            true => Some("the file is empty".into()),
            false => past_end(text, requested).or_else(|| encoding_warning(text)),
        },
        kind: Some("text"),
        bytes: Some(text.total_bytes),
        first_line: Some(text.first_line),
        total_lines: Some(text.total_lines),
        omitted_bytes: more_than_none(text.omitted_bytes),
        omitted_lines: more_than_none(text.omitted_lines),
        encoding: text.encoding,
        is_lossy: text.is_lossy,
        ..FileContent::default()
    }
}

/// Returns the number of lines when the requested ones are past the end.
fn past_end(text: &TextView, requested: LineRange) -> Option<String> {
    let LineRange::From { first, .. } = requested else {
        return None;
    };
    match text.total_lines {
        _ if first == 1 => None,
        lines if first <= lines => None,
        1 => Some(format!(
            "the file has 1 line, and line {first} was asked for"
        )),
        lines => Some(format!(
            "the file has {lines} lines, and line {first} was asked for"
        )),
    }
}

/// Returns a warning when the encoding of a text is uncertain.
fn encoding_warning(text: &TextView) -> Option<String> {
    match (text.is_lossy, text.encoding) {
        (true, _) => Some(format!(
            "invalid bytes were replaced by U+FFFD; if the file is in another encoding, {CONVERT}"
        )),
        (false, Some(name)) if text.is_doubtful => Some(format!(
            "{name} is a guess; if the text makes no sense, {CONVERT}"
        )),
        (false, _) => None,
    }
}

/// Returns a warning about attributes that have no meaning for a directory.
pub(super) fn ignored_of_directory(file: &File) -> Option<String> {
    let what = match (&file.lines, file.max_bytes) {
        (None, None) => return None,
        (Some(_), None) => "lines means",
        (None, Some(_)) => "max_bytes means",
        (Some(_), Some(_)) => "lines and max_bytes mean",
    };
    Some(format!(
        "{what} nothing for a directory; depth says how much of it is listed"
    ))
}

/// Returns the entries of a directory, one per line.
pub(super) fn entries(listing: &Listing) -> String {
    let mut entries = String::new();
    for entry in &listing.entries {
        entries.push_str(&entry.label());
        entries.push('\n');
    }
    entries
}

/// Returns the content of a directory.
pub(super) fn directory_content(listing: &Listing) -> FileContent {
    FileContent {
        kind: Some("directory"),
        omitted_entries: more_than_none(listing.omitted_entries),
        ignored_entries: more_than_none(listing.ignored_entries),
        ..FileContent::default()
    }
}
