//! What is left of a text without white space, case, quote style and characters that only look alike.
//!
//! Two texts with the same skeleton mean the same to a reader; a model that copied one often wrote the
//! other.

use std::ops::Range;

use memchr::memmem;

/// Bytes of a skeleton from which its place tells something.
const LEAST_BYTES: usize = 3;

/// Returns the skeleton of a text.
pub(super) fn skeleton(text: &str) -> String {
    bones(text).collect()
}

fn bones(text: &str) -> impl Iterator<Item = char> {
    let visible = text.chars().filter(|c| !is_blank(*c));
    visible.map(plain).flat_map(char::to_lowercase)
}

/// Returns the first place of `text` with the same skeleton as `find`, with the blanks around it that
/// share its lines with nothing else.
pub(super) fn find(text: &str, find: &str) -> Option<Range<usize>> {
    let wanted = skeleton(find);
    if wanted.len() < LEAST_BYTES {
        return None;
    }
    let whole = skeleton(text);
    let place = memmem::find(whole.as_bytes(), wanted.as_bytes())?;
    // The text is walked again: to note where each line starts would take more memory than the text when they
    // are short.
    let start = offset_of(text, place);
    let last = offset_of(text, place + wanted.len() - 1);
    let end = last + text.get(last..)?.chars().next()?.len_utf8();
    Some(with_blanks(text, start..end))
}

/// Returns the offset of the character that a byte of the skeleton comes from.
fn offset_of(text: &str, bone: usize) -> usize {
    let mut seen = 0;
    for (at, character) in text.char_indices().filter(|(_, c)| !is_blank(*c)) {
        seen += plain(character)
            .to_lowercase()
            .map(char::len_utf8)
            .sum::<usize>();
        if seen > bone {
            return at;
        }
    }
    text.len()
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

/// Whether a character shows nothing.
pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}' | '\u{FEFF}'
        )
}

/// Characters that look like another one, and that one.
const LOOK_ALIKES: &[(&str, &str)] = &[
    (
        "АВЕЅІЈКМНОРСТХУаеѕіјорсухһԁԛԝ",
        "ABESIJKMHOPCTXYaesijopcyxhdqw",
    ),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρ", "ABEZHIKMNOPTYXoavp"),
    ("ı‚…․⁄∕∗˗；：，。（）！？", "i,..//*-;:,.()!?"),
];

/// Returns the plain spelling of a character that only looks different.
pub(super) fn plain(character: char) -> char {
    match character {
        c if c.is_ascii() && !matches!(c, '\'' | '`') => c,
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
    fn a_text_is_found_whatever_its_blanks_and_breaks() {
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
        check("ab", "ab", None);
        check("", "", None);
    }
}
