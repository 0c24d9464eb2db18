//! Splits text into words for search.
//!
//! Chinese and Japanese have no spaces, and Korean attaches endings to words, so runs of their characters are
//! split into overlapping pairs. Everything else is split into lower-case words after composition (NFC), so
//! that all spellings of a letter match.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Normalises a text for comparison: composed and in lower case.
#[must_use]
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return text.into();
    }
    if is_nfc_quick(text.chars()) != IsNormalized::Yes {
        return text.nfc().collect::<String>().to_lowercase().into();
    }
    match text.chars().all(|c| c.to_lowercase().eq([c])) {
        true => text.into(),
        false => text.to_lowercase().into(),
    }
}

/// Composes letters and combining marks (NFC).
#[must_use]
pub fn compose(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.into(),
        _ => text.nfc().collect::<String>().into(),
    }
}

/// Fast test for characters that never compose with the previous one and have no other case.
fn is_plain(c: char) -> bool {
    match c {
        '\0'..='\u{7f}' => !c.is_ascii_uppercase(),
        '\u{2010}'..='\u{2027}' | '\u{3001}'..='\u{3029}' | '\u{ff01}'..='\u{ff20}' => true,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => true,
        _ => false,
    }
}

/// Word of a text.
pub struct Word<'a> {
    /// Lower-case letters and digits.
    pub text: &'a str,
    /// True for a pair of characters of a run.
    pub is_pair: bool,
    /// True for a run of one character, which may be the start of an indexed pair.
    pub is_single: bool,
    /// True at the end of a run.
    pub is_end_of_run: bool,
}

/// Passes every word of a text to `found`, in order.
pub fn each_word(text: &str, found: &mut dyn FnMut(Word<'_>)) {
    let folded = fold(text);
    let mut rest = &*folded;
    while let Some(first) = rest.chars().next() {
        let is_same: fn(char) -> bool = match first {
            c if is_ideograph(c) => is_ideograph,
            c if is_word(c) => is_word,
            _ => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        let end = rest.find(|c| !is_same(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if is_ideograph(first) {
            pairs(run, found);
        } else {
            found(Word {
                text: run,
                is_pair: false,
                is_single: false,
                is_end_of_run: true,
            });
        }
        rest = after;
    }
}

fn pairs(run: &str, found: &mut dyn FnMut(Word<'_>)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    if starts.len() == 1 {
        return found(Word {
            text: run,
            is_pair: false,
            is_single: true,
            is_end_of_run: true,
        });
    }
    for (number, pair) in starts.windows(2).enumerate() {
        let end = starts.get(number + 2).copied().unwrap_or(run.len());
        let start = pair.first().copied().unwrap_or(0);
        found(Word {
            text: run.get(start..end).unwrap_or_default(),
            is_pair: true,
            is_single: false,
            is_end_of_run: end == run.len(),
        });
    }
}

/// Tells whether a character belongs to a script without spaces between words.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3130}'..='\u{318f}' | '\u{3400}'..='\u{4dbf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Tells whether a character is a letter or digit of a script with spaces between words.
#[must_use]
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() && !is_ideograph(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_and_decomposed_letters_are_equal() {
        for text in [
            "\u{1112}\u{1161}\u{11ab}",
            "U\u{308}ber",
            "か\u{3099}く",
            "\u{212b}",
        ] {
            assert_eq!(fold(text), fold(&text.nfc().collect::<String>()));
        }
        assert!(matches!(fold("古井 well %"), Cow::Borrowed(_)));
        assert_eq!(fold("Über"), "über");
    }

    #[test]
    fn the_fast_path_changes_nothing() {
        let plain = ('\0'..=char::MAX).filter(|c| is_plain(*c));
        for c in plain {
            // Next to anything, even a character that composes with the previous one.
            let text = format!("{c}{c}a");
            assert_eq!(is_nfc_quick(text.chars()), IsNormalized::Yes, "{c:?}");
            assert_eq!(text.to_lowercase(), text, "{c:?}");
        }
    }
}
