//! Reduces text to a skeleton without white space, case, quote style and look-alike characters, however they
//! are spelled: precomposed, with combining marks, or as an escape.
//!
//! Texts with equal skeletons read the same; a model that copied one often wrote the other.

use std::ops::Range;

use memchr::memmem;
use unicode_normalization::char::decompose_compatible;

use unit::{EscapeMode, Unit, units};

pub(super) mod unit;

/// Least size of a skeleton whose place is significant by itself.
const LEAST_BYTES: usize = 3;
/// Most parts that a character is decomposed into. Characters with more stay whole, so that no text grows
/// manifold.
const MOST_PARTS: usize = 4;

/// Returns the skeleton of a text.
pub(super) fn skeleton(text: &str) -> String {
    bones(text, EscapeMode::Escapes)
}

fn bones(text: &str, mode: EscapeMode) -> String {
    let mut bones = String::with_capacity(text.len());
    for unit in units(text, mode) {
        match unit.character {
            c if is_blank(c) => {}
            // Fast path for the bulk of long texts.
            c if is_itself(c) => bones.push(c.to_ascii_lowercase()),
            c => bones.extend(bones_of(c)),
        }
    }
    bones
}

/// Tells whether a character is ASCII without look-alikes.
fn is_itself(character: char) -> bool {
    character.is_ascii() && !matches!(character, '\'' | '`')
}

fn bones_of(character: char) -> impl Iterator<Item = char> {
    plain(character).flat_map(char::to_lowercase)
}

/// Returns the first place of `text` with the skeleton of `find`, including surrounding blanks that are alone
/// on their lines. Equal spelling is tried first, then escapes.
pub(super) fn find(text: &str, find: &str) -> Option<Range<usize>> {
    let may_escape = [text, find].map(|text| memchr::memchr2(b'&', b'\\', text.as_bytes()));
    find_read(text, find, EscapeMode::Literal).or_else(|| {
        let may_escape = may_escape.iter().any(Option::is_some);
        may_escape.then(|| find_read(text, find, EscapeMode::Escapes))?
    })
}

/// Tells whether [`find`] finds a place for a text that is long enough to be significant.
pub(super) fn is_found(text: &str, find: &str) -> bool {
    skeleton(find).len() >= LEAST_BYTES && self::find(text, find).is_some()
}

fn find_read(text: &str, find: &str, mode: EscapeMode) -> Option<Range<usize>> {
    let wanted = bones(find, mode);
    if wanted.is_empty() {
        return None;
    }
    let whole = bones(text, mode);
    let place = memmem::find(whole.as_bytes(), wanted.as_bytes())?;
    drop(whole);
    // Walks the text again: an index of short lines would take more memory than the text.
    let start = unit_of(text, place, mode)?;
    let last = unit_of(text, place + wanted.len() - 1, mode)?;
    Some(with_blanks(text, start.range.start..last.range.end))
}

/// Returns the character of the text that produced a byte of the skeleton.
fn unit_of(text: &str, bone: usize, mode: EscapeMode) -> Option<Unit> {
    let mut seen = 0;
    units(text, mode)
        .filter(|unit| !is_blank(unit.character))
        .find(|unit| {
            seen += match is_itself(unit.character) {
                true => 1,
                false => bones_of(unit.character).map(char::len_utf8).sum(),
            };
            seen > bone
        })
}

fn with_blanks(text: &str, place: Range<usize>) -> Range<usize> {
    let (before, after) = (text.get(..place.start), text.get(place.end..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let is_inline = |c: char| c == ' ' || c == '\t' || c == '\r';
    let (left, right) = (
        before.trim_end_matches(is_inline),
        after.trim_start_matches(is_inline),
    );
    let start = match left.is_empty() || left.ends_with('\n') {
        true => left.len(),
        false => place.start,
    };
    let end = match right.is_empty() || right.starts_with('\n') {
        true => text.len() - right.len(),
        false => place.end,
    };
    start..end
}

/// Tells whether a character is invisible.
pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}' | '\u{FEFF}'
        )
}

/// Look-alike characters and the characters they look like.
const LOOK_ALIKES: &[(&str, &str)] = &[
    (
        "АВЕЅІЈКМНОРСТХУаеѕіјорсухһԁԛԝ",
        "ABESIJKMHOPCTXYaesijopcyxhdqw",
    ),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρ", "ABEZHIKMNOPTYXoavp"),
    ("ı‚․⁄∕∗˗；：，。（）！？", "i,.//*-;:,.()!?"),
];

/// Returns the plain spelling of a character: its decomposition without look-alikes.
pub(super) fn plain(character: char) -> impl Iterator<Item = char> + Clone {
    let mut parts = [None; MOST_PARTS];
    let known = alias(character);
    if character.is_ascii() || known != character {
        parts[0] = Some(known);
        return parts.into_iter().flatten();
    }
    let mut count = 0;
    decompose_compatible(character, |part| {
        if let Some(slot) = parts.get_mut(count) {
            *slot = Some(alias(part)).filter(|part| !is_blank(*part));
        }
        count += 1;
    });
    if count > MOST_PARTS {
        parts = [None; MOST_PARTS];
        parts[0] = Some(character);
    }
    parts.into_iter().flatten()
}

/// Returns the common character that another one looks like.
fn alias(character: char) -> char {
    match character {
        c if is_itself(c) => c,
        '\'' | '`' | '‘' | '’' | '‛' | '“' | '”' | '„' | '′' | '″' | '＂' | '＇' => {
            '"'
        }
        '–' | '—' | '−' | '‐' | '‑' | '‒' | '―' | '－' => '-',
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character)
        }
        other => {
            let find = |(odd, usual): &(&str, &str)| {
                let place = odd.chars().position(|c| c == other)?;
                usual.chars().nth(place)
            };
            LOOK_ALIKES.iter().find_map(find).unwrap_or(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &str, expected: Option<&str>) {
        let found = find(text, wanted).map(|place| &text[place]);
        assert_eq!(found, expected, "{text:?} {wanted:?}");
    }

    #[test]
    fn blanks_and_line_breaks_do_not_matter() {
        check(
            "x\n  call(a,\n       b);\ny\n",
            "call(a, b);",
            Some("  call(a,\n       b);"),
        );
        check("one two three", "TWO\nthree", Some("two three"));
        check("if (a  ==  b) {}\n", "a == b", Some("a  ==  b"));
        check("say “hi” \r\n", "say \"hi\"", Some("say “hi” \r"));
        check("a\u{130}bc", "\u{130}b", Some("\u{130}b"));
        check("foo\u{AD}bar baz", "foobar", Some("foo\u{AD}bar"));
        check("abc", "abd", None);
        check("xAB", "ab", Some("AB"));
        check("x", "", None);
        check("", "", None);
        check(" ", "\t", None);
    }

    #[test]
    fn any_spelling_of_characters_is_found() {
        check("un caf\u{E9}.", "cafe\u{301}", Some("caf\u{E9}"));
        check("un cafe\u{301}.", "caf\u{E9}", Some("cafe\u{301}"));
        check(
            "\u{D55C}\u{AE00}",
            "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}",
            Some("\u{D55C}\u{AE00}"),
        );
        check(
            "\u{1112}\u{1161}\u{11AB}!",
            "\u{D55C}",
            Some("\u{1112}\u{1161}\u{11AB}"),
        );
        check(
            "a \u{FF46}\u{FF4E}\u{FF08}1\u{FF09}",
            "fn(1)",
            Some("\u{FF46}\u{FF4E}\u{FF08}1\u{FF09}"),
        );
        check("\u{FB01}n \u{2026}", "fin ...", Some("\u{FB01}n \u{2026}"));
        check("\u{FF76}\u{FF9E}", "\u{30AC}", Some("\u{FF76}\u{FF9E}"));
        check(
            "if a &lt; b &amp;&amp; c",
            "a < b && c",
            Some("a &lt; b &amp;&amp; c"),
        );
        check("if a < b", "a &lt; b", Some("a < b"));
        check(
            "caf\\u00e9 \\ud83d\\ude00",
            "caf\u{E9} \u{1F600}",
            Some("caf\\u00e9 \\ud83d\\ude00"),
        );
        check("caf\u{E9}", "caf\\u00e9", Some("caf\u{E9}"));
        // Equal spelling comes first.
        check("a &lt; b; A < b", "a < b", Some("A < b"));
        // A character with very many parts stays whole.
        check("x\u{FDFA}y", "\u{FDFA} Y", Some("\u{FDFA}y"));
    }
}
