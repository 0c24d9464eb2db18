//! Tells whether a text to find is gone because its replacement was put there before.
//!
//! A replacement that merely stands in the file says nothing: the call would seem to be done, and nothing
//! was done. So what the pair leaves as it is must agree with the place, and no other place may come
//! closer to the text to find.

use std::ops::Range;

use super::super::closest::Passage;
use super::line_at;

/// Bytes without blanks from which a replacement tells that its pair was applied: a shorter text stands
/// in many files anyway.
const TELLING_BYTES: usize = 10;
/// Such bytes of one that has its lines to itself.
const TELLING_LINE_BYTES: usize = 3;
/// Letters and digits that either needs: a closing brace says nothing.
const TELLING_LETTERS: usize = 2;

/// Whether the replacement at this place is the trace of an earlier edit; `closest` is what comes closest to
/// the text to find.
pub(super) fn is_trace(
    text: &str,
    place: &Range<usize>,
    find: &str,
    closest: Option<&Passage>,
) -> bool {
    let replacement = text.get(place.clone()).unwrap_or_default();
    is_telling(text, place) && agrees(find, replacement) && is_closest(text, place, closest)
}

/// Whether most of the text to find stays, and the replacement shows that the rest of it was changed.
fn agrees(find: &str, replacement: &str) -> bool {
    let (start, rest_find, rest) = without_start(find, replacement);
    let (end, _, new) = without_end(rest_find, rest);
    let has_letters = |text: &str| text.contains(char::is_alphanumeric);
    let kept = visible(start) + visible(end);
    // What was only taken away leaves a trace between two parts that met by it.
    let is_new = has_letters(new) || visible(start) > 0 && visible(end) > 0;
    is_new && kept * 2 >= visible(find)
}

/// Takes away what both texts start with.
fn without_start<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str, &'a str) {
    let pairs = a.chars().zip(b.chars());
    let same = pairs.take_while(|(a, b)| a == b);
    let length = same.map(|(a, _)| a.len_utf8()).sum();
    let (start, a) = a.split_at(length);
    (start, a, b.get(length..).unwrap_or_default())
}

/// Takes away what both texts end with.
fn without_end<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str, &'a str) {
    let pairs = a.chars().rev().zip(b.chars().rev());
    let same = pairs.take_while(|(a, b)| a == b);
    let length: usize = same.map(|(a, _)| a.len_utf8()).sum();
    let (a, end) = a.split_at(a.len() - length);
    (end, a, b.get(..b.len() - length).unwrap_or_default())
}

fn visible(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// Whether no other place comes closer.
fn is_closest(text: &str, place: &Range<usize>, closest: Option<&Passage>) -> bool {
    let Some(passage) = closest else {
        return true;
    };
    let first = line_at(text, place.start);
    let last = line_at(text, place.end.saturating_sub(1).max(place.start));
    passage.first_line <= last && first <= passage.last_line
}

/// Whether a text at this place says enough to be taken for the trace of an earlier edit.
fn is_telling(text: &str, place: &Range<usize>) -> bool {
    let found = text.get(place.clone()).unwrap_or_default();
    let (before, after) = (text.get(..place.start), text.get(place.end..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let is_one_word =
        |a: Option<char>, b: Option<char>| a.is_some_and(is_word) && b.is_some_and(is_word);
    if is_one_word(before.chars().next_back(), found.chars().next())
        || is_one_word(found.chars().next_back(), after.chars().next())
    {
        return false;
    }
    let is_blank = |c: &char| *c == ' ' || *c == '\t';
    let left = before.chars().rev().find(|c| !is_blank(c));
    let right = after.chars().find(|c| !is_blank(c));
    let starts_line = left.is_none_or(|c| c == '\n') || found.starts_with('\n');
    let ends_line = right.is_none_or(|c| c == '\n') || found.ends_with('\n');
    let least = match starts_line && ends_line {
        true => TELLING_LINE_BYTES,
        false => TELLING_BYTES,
    };
    let letters = found.chars().filter(|c| c.is_alphanumeric());
    let visible = found.chars().filter(|c| !c.is_whitespace());
    letters.take(TELLING_LETTERS).count() == TELLING_LETTERS
        && visible.take(least).map(char::len_utf8).sum::<usize>() >= least
}

/// Whether a character goes on with the word beside it. Scripts without blanks between words do not.
fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric() && character < '\u{2E80}'
}
