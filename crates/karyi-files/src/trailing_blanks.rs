//! Finds a text up to blanks at line ends.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

const BLANKS: [char; 2] = [' ', '\t'];

/// Removes the blanks at line ends.
fn trimmed(text: &str) -> Cow<'_, str> {
    if !text.split('\n').any(|line| line.ends_with(BLANKS)) {
        return Cow::Borrowed(text);
    }
    let mut trimmed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.strip_suffix('\n');
        trimmed.push_str(without_blanks(body.unwrap_or(line)));
        if body.is_some() {
            trimmed.push('\n');
        }
    }
    Cow::Owned(trimmed)
}

/// Maps an offset in the trimmed text to the original. Walks the lines again: an index of short lines would
/// take more memory than the text.
fn whole(text: &str, offset: usize) -> usize {
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let body = line.strip_suffix('\n');
        let length = without_blanks(body.unwrap_or(line)).len() + usize::from(body.is_some());
        let is_last = at + line.len() == text.len();
        if offset < start + length || is_last {
            return at + offset - start;
        }
        start += length;
        at += line.len();
    }
    offset
}

fn without_blanks(line: &str) -> &str {
    line.trim_end_matches(BLANKS)
}

/// Returns the only occurrence, counting overlapping ones separately; `ends_line` requires the end of a line
/// or of the text after it.
fn only_place(text: &str, trimmed_find: &str, ends_line: bool) -> Option<usize> {
    let (needle, last) = match ends_line {
        // Searches with the line break: checking each occurrence would be slow where many overlap.
        true => {
            let last = text.strip_suffix(trimmed_find).map(str::len);
            (Cow::Owned(format!("{trimmed_find}\n")), last)
        }
        false => (Cow::Borrowed(trimmed_find), None),
    };
    let next = |from: usize| {
        let rest = text.as_bytes().get(from..)?;
        let found = memmem::find(rest, needle.as_bytes()).map(|at| from + at);
        found.or(last.filter(|last| *last >= from))
    };
    let place = next(0)?;
    next(place + 1).is_none().then_some(place)
}

/// Returns the only place of `text` that equals `find` up to blanks at line ends.
pub(super) fn find_once(text: &str, find: &str) -> Option<Range<usize>> {
    let trimmed_find = trimmed(find);
    // A cheap test that rules out most texts.
    let longest = trimmed_find.lines().max_by_key(|line| line.len())?;
    if longest.trim().is_empty() || memmem::find(text.as_bytes(), longest.as_bytes()).is_none() {
        return None;
    }
    let ends_line = trimmed_find.len() < find.len() && !find.ends_with('\n');
    let trimmed = trimmed(text);
    if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&trimmed_find, &trimmed) {
        // Neither text has such blanks, and a literal search already failed.
        return None;
    }
    let bytes = trimmed.as_bytes();
    let is_end = |end: usize| bytes.get(end).is_none_or(|byte| *byte == b'\n');
    let place = only_place(&trimmed, &trimmed_find, find.ends_with(BLANKS))?;
    let end = place + trimmed_find.len();
    let whole_end = match trimmed_find.ends_with('\n') {
        // The line break and the blanks before it.
        true => whole(text, end - 1),
        false => whole(text, end),
    };
    let rest = text.get(whole_end..)?;
    let blanks = match trimmed_find.ends_with('\n') || ends_line && is_end(end) {
        true => rest.len() - rest.trim_start_matches(BLANKS).len(),
        false => 0,
    };
    let breaks = usize::from(trimmed_find.ends_with('\n'));
    Some(whole(text, place)..whole_end + blanks + breaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, find: &str, expected: Option<&str>) {
        let found = find_once(text, find).map(|place| &text[place]);
        assert_eq!(found, expected, "{text:?} {find:?}");
    }

    #[test]
    fn blanks_at_line_ends_do_not_matter() {
        check("a  \nb\n", "a\nb", Some("a  \nb"));
        check("a\nb\n", "a \t\nb\n", Some("a\nb\n"));
        check("a\nb  \nc\n", "b\n", Some("b  \n"));
        check("a\nb  \nc\n", "b \n", Some("b  \n"));
        check("x = 1  \ny\n", "x = 1 ", Some("x = 1  "));
        check("x = 1\t", "x = 1 ", Some("x = 1\t"));
        check("x\n\ny\n", "x\n  \ny", Some("x\n\ny"));
        check("x\n \t\ny  z\n", "x\n\ny  z", Some("x\n \t\ny  z"));
        check("caf\u{e9} \nb", "caf\u{e9}\nb", Some("caf\u{e9} \nb"));
    }

    #[test]
    fn other_differences_and_second_places_do_matter() {
        check("  a\nb \n", " a\nb", Some(" a\nb"));
        // A literal match was tried before.
        check("  a\nb\n", " a\nb", None);
        check("a b\n", "a  b", None);
        check("foobar\n", "foo ", None);
        check("a \nb\na  \nb\n", "a\nb", None);
        // Overlapping places count separately.
        check("a();  \na();\na();\n", "a();\na();\n", None);
        check("x\nx\nx", "x\nx ", None);
        check("x\nx\nx\n", "x\nx ", None);
        check("aa\naaa\n", "aa ", None);
        check("aab\naaa\n", "aa ", Some("aa"));
        check("y\naa", "aa ", Some("aa"));
        check("a\n", "  ", None);
        check("a\n", "\n \n", None);
    }
}
