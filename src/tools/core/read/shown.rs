//! What `<read>` shows of one file or directory, and what it says beside it.

use super::{File, FileShown, more_than_none};
use karyi_files::line_reader::TextView;
use karyi_files::listing::Listing;
use karyi_files::recode::CONVERT;
use karyi_files::view::LineRange;

/// Says what is shown of a text; `names_lines` when lines were asked for.
pub(super) fn text_shown(text: TextView, names_lines: bool, wanted: LineRange) -> FileShown {
    let is_empty = names_lines && text.total_lines == 0;
    FileShown {
        advice: match is_empty {
            true => Some("the file is empty".into()),
            false => past_end(&text, wanted).or_else(|| doubt(&text)),
        },
        kind: Some("text"),
        bytes: Some(text.total_bytes),
        first_line: Some(text.first_line),
        total_lines: Some(text.total_lines),
        omitted_bytes: more_than_none(text.omitted_bytes),
        omitted_lines: more_than_none(text.omitted_lines),
        encoding: text.encoding,
        is_lossy: text.is_lossy,
        output: Some(text.text),
        ..FileShown::default()
    }
}

/// Says how many lines there are when the wanted ones lie behind them.
fn past_end(text: &TextView, wanted: LineRange) -> Option<String> {
    let LineRange::From { first, .. } = wanted else {
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

/// Says that a text may be another one, as its encoding is not known for sure.
fn doubt(text: &TextView) -> Option<String> {
    match (text.is_lossy, text.encoding) {
        (true, _) => Some(format!(
            "what is no character was replaced by U+FFFD; if the file is in another encoding, {CONVERT}"
        )),
        (false, Some(name)) if text.is_doubtful => Some(format!(
            "{name} is only a guess; if the text makes no sense, {CONVERT}"
        )),
        (false, _) => None,
    }
}

/// Says which attributes mean nothing for a directory.
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

/// Says what is shown of a directory.
pub(super) fn listing_shown(listing: &Listing) -> FileShown {
    let mut output = String::new();
    for entry in &listing.entries {
        output.push_str(&entry.label());
        output.push('\n');
    }
    FileShown {
        kind: Some("directory"),
        omitted_entries: more_than_none(listing.omitted_entries),
        ignored_entries: more_than_none(listing.ignored_entries),
        output: Some(output),
        ..FileShown::default()
    }
}
