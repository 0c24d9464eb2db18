//! Messages and hints for pairs that do not match.

use super::closest::Passage;
use super::document::with_lf;
use super::matching::{MatchError, MatchErrorKind};
use super::request::FileEdit;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Label of a pair: `src/a.rs, find 2 of 3`.
pub(super) fn pair_label(edit: &FileEdit, pair: usize) -> String {
    let path = edit.path.display();
    match edit.pairs.len() {
        0 | 1 => path.to_string(),
        pairs => format!("{path}, find {} of {pairs}", pair + 1),
    }
}

const ESCAPES_IN_FILE: &str = "if the escapes stand in the file, wrap the text in <![CDATA[...]]> and \
                               add lines around it until it is unique";
const OVERLAPS: &str = "the text was there until an earlier find of this call replaced a part of it: pairs apply in \
                        order, each on what those before it left; write one find for both";
const NO_LAST_BREAK: &str = "the text ends the file, whose last line has no line break: leave every line break at \
                             the end of find out, and of replace";
const EMPTY_FILE: &str = "the file is empty: leave find empty to fill it";
const BLANK_FILE: &str = "the file contains only white space; read it, and copy that as it stands";
const SHORT: &str = "the text is too short for a closest passage: read the file, and copy a whole line as it stands";
/// Visible characters below which a text to find is short.
const SHORT_FIND: usize = 4;
const SAY_WHICH: &str = "wrap the text in <![CDATA[...]]> exactly as it stands in the file, and add \
                         lines around it until it is unique";

/// Describes the failure of a pair. `before` is the text that the first pair of this `<file>` worked on,
/// `original` the text before the call, which earlier edits of the same file may have changed.
pub(super) fn describe(
    edit: &FileEdit,
    error: MatchError,
    before: &str,
    original: Option<&str>,
) -> ToolError {
    let (pair_label, pair) = (pair_label(edit, error.pair), error.pair);
    let has_secret = edit
        .pairs
        .get(error.pair)
        .is_some_and(|pair| pair.has_secret);
    let make = |code, what: String| ToolError::new(code, format!("{pair_label}: {what}"));
    match error.kind {
        MatchErrorKind::NotFound {
            closest,
            searched_lines,
            replacement,
        } => {
            let what = not_found_message(replacement.filter(|_| !has_secret));
            let error = make(ErrorCode::FindNotFound, what);
            let find = edit.pairs.get(pair).map_or("", |pair| pair.find.as_str());
            let closest = match has_secret {
                // A hint would reveal the shape or the length of the secret.
                true => None,
                false => closest_or_reason(closest, find, before),
            };
            let closest = closest.unwrap_or_else(|| error.hint.clone());
            let closest = with_cut(closest, searched_lines);
            let hint = better_hint(edit, pair, before, original);
            let hint = hint.map_or(closest, str::to_owned);
            error.with_quoting_hint(hint)
        }
        MatchErrorKind::AmbiguousAsWritten { lines, total } => {
            let what = format!(
                "expected the text to find once, found it nowhere; with its escapes not decoded it is \
                 there {total} times, on {}",
                list(&lines, total)
            );
            make(ErrorCode::FindNotFound, what).with_hint(ESCAPES_IN_FILE)
        }
        MatchErrorKind::TwoReadings { lines, total } => {
            let what = format!(
                "the text to find is there decoded, and also with its escapes as they were written: \
                 {total} places, on {}",
                list(&lines, total)
            );
            make(ErrorCode::FindAmbiguous, what).with_hint(SAY_WHICH)
        }
        MatchErrorKind::Ambiguous { lines, total } => make(
            ErrorCode::FindAmbiguous,
            format!(
                "expected the text to find once, found it {total} times, on {}",
                list(&lines, total)
            ),
        ),
        MatchErrorKind::EmptyFind => {
            let error = make(
                ErrorCode::BadArguments,
                "an empty text to find creates a file, and this one has text already".into(),
            );
            error.with_hint("name the text to replace; to write a whole file, use `<content>`")
        }
        MatchErrorKind::TooLarge => make(ErrorCode::FileTooLarge, too_large()),
    }
}

fn too_large() -> String {
    let most = limits::MAX_EDIT_FILE_BYTES;
    format!("the result would have more than {most} bytes, or too many places change")
}

/// Describes the closest passage, or the reason why there is none.
fn closest_or_reason(closest: Option<Passage>, find: &str, before: &str) -> Option<String> {
    match closest {
        Some(found) => Some(closest_hint(&found)),
        None => nothing_close(find, before).map(str::to_owned),
    }
}

/// Returns the obvious reason why no passage is close, if there is one.
fn nothing_close(find: &str, before: &str) -> Option<&'static str> {
    let visible = find.chars().filter(|c| !c.is_whitespace()).take(SHORT_FIND);
    match before.trim().is_empty() {
        true if before.is_empty() => Some(EMPTY_FILE),
        true => Some(BLANK_FILE),
        false if visible.count() < SHORT_FIND => Some(SHORT),
        false => None,
    }
}

/// Message for a text that was not found, with the line of its replacement.
fn not_found_message(replacement: Option<usize>) -> String {
    let what = "expected the text to find once, found it nowhere";
    match replacement {
        None => what.into(),
        Some(line) => format!(
            "{what}; its replacement is on line {line}, perhaps by chance: look there whether the change is \
             made already"
        ),
    }
}

/// Adds to a hint that only a part of the file was searched.
fn with_cut(hint: String, searched_lines: Option<usize>) -> String {
    let Some(lines) = searched_lines else {
        return hint;
    };
    let joint = if hint.ends_with('\n') { "" } else { "; " };
    format!("{hint}{joint}only the first {lines} lines of the file were compared")
}

/// Returns a better hint than the closest passage, if there is one.
fn better_hint(
    edit: &FileEdit,
    pair: usize,
    before: &str,
    original: Option<&str>,
) -> Option<&'static str> {
    let mut earlier = [Some(before), original].into_iter().flatten();
    if earlier.any(|text| was_there(edit, pair, text)) {
        return Some(OVERLAPS);
    }
    lacks_last_break(edit, pair, before).then_some(NO_LAST_BREAK)
}

/// Tells whether an earlier text contained the text to find.
fn was_there(edit: &FileEdit, pair: usize, earlier: &str) -> bool {
    let wanted = edit.pairs.get(pair).map(|pair| with_lf(&pair.find));
    wanted.is_some_and(|find| !find.is_empty() && with_lf(earlier).contains(&*find))
}

/// Tells whether a text would match the end of the file without its final line breaks.
fn lacks_last_break(edit: &FileEdit, pair: usize, before: &str) -> bool {
    let wanted = edit.pairs.get(pair).map(|pair| with_lf(&pair.find));
    let wanted = wanted.as_deref().and_then(|find| find.strip_suffix('\n'));
    wanted.is_some_and(|find| {
        let find = find.trim_end_matches('\n');
        !find.is_empty() && with_lf(before).ends_with(find)
    })
}

fn list(lines: &[usize], total: usize) -> String {
    let mut shown: Vec<String> = lines.iter().map(usize::to_string).collect();
    shown.dedup();
    let more = if total > lines.len() { ", ..." } else { "" };
    let noun = match (shown.len(), more) {
        (1, "") => "line",
        _ => "lines",
    };
    format!("{noun} {}{more}", shown.join(", "))
}

fn closest_hint(passage: &Passage) -> String {
    let lines = match (passage.first_line, passage.last_line) {
        (first, last) if first == last => format!("line {first}"),
        (first, last) => format!("lines {first}-{last}"),
    };
    let mut hint = format!(
        "closest is {lines}, to copy as it stands:\n{}",
        passage.text
    );
    hint.push_str(&passage.differences.join("; "));
    hint
}
