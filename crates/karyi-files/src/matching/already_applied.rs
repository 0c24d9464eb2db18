//! Decides whether a text to find is gone because its replacement was applied before.
//!
//! A replacement that merely occurs in the file proves nothing: the call would seem done although it did
//! nothing. So the unchanged context of the pair must agree with the place, and no other place may be as
//! plausible: none as close to the text to find, and none with the same start and end.

use std::ops::Range;

use memchr::memmem;

use super::super::closest;
use super::super::document::count_breaks;
use karyi_core::limits;

/// Non-blank bytes from which a replacement proves that its pair was applied; shorter texts occur in many
/// files anyway.
const SIGNIFICANT_BYTES: usize = 10;
/// The same for a replacement that fills whole lines.
const SIGNIFICANT_LINE_BYTES: usize = 3;
/// Letters and digits that either needs; a closing brace proves nothing.
const SIGNIFICANT_LETTERS: usize = 2;

/// Returns the first place of the replacement that an earlier edit left.
pub(super) fn find_trace(
    text: &str,
    places: &[Range<usize>],
    find: &str,
    replace: &str,
) -> Option<Range<usize>> {
    let place = places.iter().find(|place| is_significant(text, place))?;
    let is_only_guess = || {
        !has_rival(text, &SharedContext::of(find, replace), replace)
            && closest::is_nearest(text, find, replace)
    };
    (agrees(find, replace) && is_only_guess()).then(|| place.clone())
}

/// Tells whether most of the text to find stays and the replacement shows a change of the rest.
fn agrees(find: &str, replacement: &str) -> bool {
    let (start, rest_find, rest) = without_start(find, replacement);
    let (end, _, new) = without_end(rest_find, rest);
    let has_letters = |text: &str| text.contains(char::is_alphanumeric);
    let context = visible(start) + visible(end);
    // A pure removal shows as two parts that now meet.
    let is_new = has_letters(new) || visible(start) > 0 && visible(end) > 0;
    is_new && context * 2 >= visible(find)
}

/// Splits off the common prefix of both texts.
fn without_start<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str, &'a str) {
    let pairs = a.chars().zip(b.chars());
    let same = pairs.take_while(|(a, b)| a == b);
    let length = same.map(|(a, _)| a.len_utf8()).sum();
    let (start, a) = a.split_at(length);
    (start, a, b.get(length..).unwrap_or_default())
}

/// Splits off the common suffix of both texts.
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

/// Context that a pair leaves unchanged.
struct SharedContext<'a> {
    /// Common prefix of both texts, or their common suffix when the prefix is blank.
    first: &'a str,
    /// Common suffix after that; empty when it is blank.
    then: &'a str,
    /// Maximum number of lines of both.
    lines: usize,
}

impl<'a> SharedContext<'a> {
    fn of(find: &'a str, replace: &'a str) -> Self {
        let (start, rest_find, rest) = without_start(find, replace);
        let (end, old, new) = without_end(rest_find, rest);
        let goes_on = |next: Option<char>| next.is_some_and(is_word);
        let is_cut = [old, new].map(|text| goes_on(text.chars().next()));
        let whole_start = match is_cut.contains(&true) {
            true => start.trim_end_matches(is_word),
            false => start,
        };
        let is_cut = [old, new].map(|text| goes_on(text.chars().next_back()));
        let whole_end = match is_cut.contains(&true) {
            true => end.trim_start_matches(is_word),
            false => end,
        };
        // A partial word only counts where there is nothing else.
        let (start, end) = match (whole_start.trim(), whole_end.trim()) {
            ("", "") => (start.trim_start(), end.trim()),
            (_, end) => (whole_start.trim_start(), end),
        };
        let (first, then) = match start.is_empty() {
            true => (end, ""),
            false => (start, end),
        };
        let lines = 1 + count_breaks(find).max(count_breaks(replace));
        Self { first, then, lines }
    }
}

/// Tells whether another place starts and ends like the text to find and could be the one that was meant.
fn has_rival(text: &str, context: &SharedContext<'_>, replace: &str) -> bool {
    let mut own = memmem::find_iter(text.as_bytes(), replace.as_bytes()).peekable();
    let mut is_own = |at: usize| {
        while own.next_if(|own| own + replace.len() <= at).is_some() {}
        own.peek().is_some_and(|own| *own <= at)
    };
    let places = memmem::find_iter(text.as_bytes(), context.first.as_bytes());
    let others = places.filter(|at| !is_own(*at)).enumerate();
    let ends_alike = |at: usize| {
        let rest = text.get(at + context.first.len()..).unwrap_or_default();
        let rest = rest.get(..rest.floor_char_boundary(limits::RIVAL_REACH_BYTES));
        let mut lines = rest.unwrap_or_default().split_inclusive('\n');
        let length = lines.by_ref().take(context.lines).map(str::len).sum();
        rest.and_then(|rest| rest.get(..length))
            .is_some_and(|rest| rest.contains(context.then))
    };
    others
        .into_iter()
        .any(|(count, at)| count >= limits::MAX_RIVAL_PLACES || ends_alike(at))
}

/// Tells whether the text at a place is significant enough to prove an earlier edit.
fn is_significant(text: &str, place: &Range<usize>) -> bool {
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
        true => SIGNIFICANT_LINE_BYTES,
        false => SIGNIFICANT_BYTES,
    };
    let letters = found.chars().filter(|c| c.is_alphanumeric());
    let visible = found.chars().filter(|c| !c.is_whitespace());
    letters.take(SIGNIFICANT_LETTERS).count() == SIGNIFICANT_LETTERS
        && visible.take(least).map(char::len_utf8).sum::<usize>() >= least
}

/// Tells whether a character joins its neighbour into one word. Scripts without spaces between words are
/// excluded.
fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric() && character < '\u{2E80}'
}
