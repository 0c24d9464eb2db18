//! Makes text visible that would control a terminal, hide or reorder other text.
//!
//! A character is replaced by one character, so that places in the text stay what they were.

use std::borrow::Cow;

/// Replaces characters that control a terminal, are invisible or reorder text; line breaks and tabs stay.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    match has_unsafe(text) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(made_visible(text)),
    }
}

/// Replaces what is unsafe, but for a joiner between two parts of one character.
fn made_visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match (before, chars.peek()) {
            (Some(before), Some(after)) if is_joiner(c) && is_joined(before, *after) => {
                shown.push(c);
            }
            _ => shown.push(visible(c)),
        }
        // The part before a joiner may end in its variant.
        before = if is_emoji_variant(c) { before } else { Some(c) };
    }
    shown
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}')
}

/// Returns true for variation selectors and skin tones.
fn is_emoji_variant(c: char) -> bool {
    matches!(c, '\u{FE0E}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}')
}

/// Returns true when a joiner between these two is part of the spelling: in emoji and in Arabic and Indic scripts.
fn is_joined(before: char, after: char) -> bool {
    let is_emoji = |c: char| matches!(c, '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}');
    let is_joining = |c: char| matches!(c, '\u{0620}'..='\u{06FF}' | '\u{0900}'..='\u{0DFF}');
    is_emoji(before) && is_emoji(after) || is_joining(before) && is_joining(after)
}

/// Bytes examined together: most text is plain, which a quick scan shows.
const STRETCH_BYTES: usize = 64;

fn has_unsafe(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.ceil_char_boundary(STRETCH_BYTES.min(rest.len()));
        let (stretch, after) = rest.split_at(end);
        if !is_plain(stretch) && stretch.chars().any(is_unsafe) {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns true for printable ASCII, line breaks and tabs.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    // No branch per byte, so the compiler can vectorise the loop.
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// Like [`safe`], for text that may keep its own colours; only colour sequences stay.
#[must_use]
pub fn safe_in_colour(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return safe(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (number, piece) in text.split('\x1b').enumerate() {
        let is_digit = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
        let body = piece
            .strip_prefix('[')
            .map(|body| body.trim_start_matches(is_digit));
        match body
            .and_then(|body| body.strip_prefix('m'))
            .filter(|_| number > 0)
        {
            Some(after) => {
                let length = piece.len() - after.len();
                shown.push('\x1b');
                shown.push_str(piece.get(..length).unwrap_or_default());
                shown.push_str(&safe(after));
            }
            None if number > 0 => shown.push_str(&safe(&format!("\x1b{piece}"))),
            None => shown.push_str(&safe(piece)),
        }
    }
    Cow::Owned(shown)
}

/// Like [`safe`], for text on one line; line breaks are replaced as well.
#[must_use]
pub fn safe_line(text: &str) -> Cow<'_, str> {
    match safe(text) {
        line if line.contains(['\n', '\t']) => {
            Cow::Owned(line.replace('\n', "\u{240A}").replace('\t', "\u{2409}"))
        }
        line => line,
    }
}

/// Like [`safe_line`], for text of a question, where no word may look like another: variation selectors and
/// blank patterns are replaced as well.
#[must_use]
pub fn safe_question(text: &str) -> String {
    let replaced = |c: char| if is_faint(c) { '\u{FFFD}' } else { visible(c) };
    text.chars().map(replaced).collect()
}

/// Like [`safe`], for JSON text, without changing its meaning.
#[must_use]
pub fn safe_json(text: &str) -> Cow<'_, str> {
    if !has_unsafe(text) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            false => shown.push(c),
            true => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    shown.into()
}

fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks, joiners and default-ignorable characters.
        '\u{034F}'
        | '\u{061C}'
        | '\u{17B4}'..='\u{17B5}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' => true,
        // Filler letters.
        '\u{115F}'..='\u{1160}' | '\u{3164}' | '\u{FFA0}' => true,
        '\u{E0000}'..='\u{E0FFF}' => !is_faint(c),
        _ => c.is_control(),
    }
}

/// Returns true for invisible characters of ordinary text: soft hyphens, variation selectors, and the empty
/// Braille pattern, which occurs in drawings.
fn is_faint(c: char) -> bool {
    matches!(
        c,
        '\u{AD}'
            | '\u{180B}'..='\u{180F}'
            | '\u{2800}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{E0100}'..='\u{E01EF}'
    )
}

/// Returns the symbol for a control character, or the replacement character.
fn visible(c: char) -> char {
    match c {
        c if !is_unsafe(c) => c,
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{FFFD}'),
        '\u{7F}' => '\u{2421}',
        _ => '\u{FFFD}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osc52_is_stripped() {
        assert_eq!(safe("a\x1b]52;c;eA==\x07b"), "a␛]52;c;eA==␇b");
    }

    #[test]
    fn only_colours_stay() {
        let check = |text: &str, expected: &str| assert_eq!(safe_in_colour(text), expected);
        check("a\x1b[1;31mb\x1b[0m\n", "a\x1b[1;31mb\x1b[0m\n");
        check("\x1b[2Ja\x1b[m", "␛[2Ja\x1b[m");
        check("\x1b]52;c;eA==\x07\x1b[31", "␛]52;c;eA==␇␛[31");
        check("a\x1b[31m\u{9b}2J", "a\x1b[31m\u{FFFD}2J");
    }

    #[test]
    fn bidirectional_overrides_are_shown() {
        assert_eq!(safe("a\u{202E}b\u{9b}31m\u{7f}"), "a\u{FFFD}b\u{FFFD}31m␡");
    }

    #[test]
    fn a_question_shows_what_cannot_be_seen() {
        let faint = "\u{AD}\u{180B}\u{2800}\u{FE00}\u{FE0F}\u{E0100}";
        let hidden = "\x1b\u{34F}\u{115F}\u{1160}\u{2062}\u{3164}\u{FFA0}\u{E0041}";
        let marked = |count: usize| "\u{FFFD}".repeat(count);
        let text = format!("cu{faint}r{hidden}l 村\n");
        let question = format!("cu{}r␛{}l 村\n", marked(6), marked(7));
        assert_eq!(safe_question(&text), question);
        let elsewhere = format!("cu{faint}r␛{}l 村\n", marked(7));
        assert_eq!(safe(&text), elsewhere);
    }

    #[test]
    fn what_is_unsafe_is_found_wherever_it_stands() {
        let unsafe_ones = [
            "\x1b",
            "\r",
            "\x7f",
            "\u{85}",
            "\u{61C}",
            "\u{200B}",
            "\u{FEFF}",
            "\u{E0001}",
            "\u{34F}",
            "\u{115F}",
            "\u{2028}",
            "\u{2064}",
            "\u{3164}",
            "\u{FFA0}",
        ];
        for before in 0..2 * STRETCH_BYTES {
            for fill in ["a", "\u{E9}", "\u{2500}", "\u{1F600}"] {
                let start = fill.repeat(before) + "\t\n ~";
                assert!(!has_unsafe(&start), "{start:?}");
                for found in unsafe_ones {
                    let text = format!("{start}{found}{fill}");
                    assert!(has_unsafe(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn joiners_stay_inside_of_a_character_only() {
        let check = |text: &str, expected: &str| assert_eq!(safe(text), expected);
        check("👨\u{200D}👩\u{200D}👧", "👨\u{200D}👩\u{200D}👧");
        check("❤\u{FE0F}\u{200D}🔥", "❤\u{FE0F}\u{200D}🔥");
        check("👩🏽\u{200D}💻", "👩🏽\u{200D}💻");
        check("می\u{200C}خواهم", "می\u{200C}خواهم");
        check("a\u{200D}b", "a\u{FFFD}b");
        check("👨\u{200D}", "👨\u{FFFD}");
        check("\u{200D}👨", "\u{FFFD}👨");
        check("👨\u{200D}\u{200D}👩", "👨\u{FFFD}\u{FFFD}👩");
    }

    #[test]
    fn json_stays_what_it_was() {
        let text = "{\n  \"a\": \"\u{202E}b\u{9b}\u{E0001}\u{7f}村\"\n}";
        let shown = safe_json(text);
        assert_eq!(
            shown,
            "{\n  \"a\": \"\\u202eb\\u009b\\udb40\\udc01\\u007f村\"\n}"
        );
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(safe("a\tb\n中"), Cow::Borrowed(_)));
    }
}
