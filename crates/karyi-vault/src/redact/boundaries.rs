//! Boundaries in a text: placeholders, markers and words.

use std::ops::Range;

use super::form::Form;

/// Text before the name in a placeholder.
pub(super) const PLACEHOLDER: &str = "$KARYI";

/// Length of the longest marker, with a margin.
pub(super) const MARKER_BYTES: usize = 96;

/// Returns the ranges of markers with known names that start before `until`.
pub(super) fn markers(
    text: &str,
    until: usize,
    is_name: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Range<usize>> {
    const WORD: &str = "KARYI";
    let marker = move |start: usize| {
        let before = *text.as_bytes().get(start.checked_sub(1)?)?;
        let rest = text.get(start + WORD.len()..)?;
        let inside = match before {
            b'$' => rest.strip_prefix('{')?.split_once('}')?.0,
            b'[' => rest.strip_prefix(':')?.split_once(']')?.0,
            _ => return None,
        };
        let (name, form) = inside.split_once(':').unwrap_or((inside, ""));
        let is_form = match before {
            b'$' => form.is_empty() && name.len() == inside.len(),
            _ => Form::is_word(form),
        };
        let end = start + WORD.len() + 1 + inside.len() + 1;
        (is_form && is_name(name)).then_some(start - 1..end)
    };
    let head = text.get(..text.floor_char_boundary(until));
    let words = head.unwrap_or_default().match_indices(WORD);
    words.filter_map(move |(at, _)| marker(at))
}

/// Returns `place`, or the start of a possible placeholder around it.
pub(super) fn before_placeholder(text: &str, place: usize) -> usize {
    let bytes = text.as_bytes();
    let is_inside = |start: &usize| {
        let end = bytes.len().min(start + PLACEHOLDER.len());
        let begun = bytes.get(*start..end).unwrap_or_default();
        let is_open = |byte: Option<&u8>| matches!(byte, None | Some(b'{' | b'<'));
        PLACEHOLDER.as_bytes().starts_with(begun) && is_open(bytes.get(end))
    };
    let first = place.saturating_sub(PLACEHOLDER.len());
    (first..place).find(is_inside).unwrap_or(place)
}

/// Returns true when a `$` precedes a place: in the output, or in the text when the output was taken away.
pub(super) fn is_behind_dollar(shown: &str, text: &str, place: usize) -> bool {
    match shown {
        "" => text
            .as_bytes()
            .get(..place)
            .is_some_and(|before| before.ends_with(b"$")),
        shown => shown.ends_with('$'),
    }
}

/// Appends a text and escapes its literal placeholders; returns true when it has any.
pub(super) fn escape(text: &str, out: &mut String) -> bool {
    let (mut rest, mut is_changed) = (text, false);
    while let Some(at) = memchr::memmem::find(rest.as_bytes(), PLACEHOLDER.as_bytes()) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let is_open = after
            .get(PLACEHOLDER.len()..)
            .is_some_and(|after| after.starts_with(['{', '<']));
        if is_open {
            out.push('$');
            is_changed = true;
        }
        out.push_str(PLACEHOLDER);
        rest = after.get(PLACEHOLDER.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    is_changed
}

/// Returns the number of bytes at the end of a text that are an incomplete start of `word`.
pub(super) fn begun(text: &[u8], word: &[u8]) -> usize {
    let longest = word.len().saturating_sub(1).min(text.len());
    let is_begun = |length: &usize| {
        let end = text.get(text.len() - length..);
        end.is_some_and(|end| word.starts_with(end))
    };
    (1..=longest).rev().find(is_begun).unwrap_or(0)
}

/// Returns true when a range is not inside a longer word, in any script.
pub(super) fn is_word(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let joins = |at: usize| {
        let Some((before, after)) = text.split_at_checked(at) else {
            return false;
        };
        let is_letter = |character: Option<char>| character.is_some_and(is_of_word);
        is_letter(before.chars().next_back()) && is_letter(after.chars().next())
    };
    (!joins(start) || ends_with_escape(before.as_bytes())) && !joins(end)
}

/// Number of bytes before a word that are checked for an escape.
pub(super) const ESCAPE_BYTES: usize = 32;

/// Returns true when a text ends with an escape such as `\n`, `%NN`, or the terminal sequence `ESC [ 31 m`.
fn ends_with_escape(text: &[u8]) -> bool {
    let text = text
        .get(text.len().saturating_sub(ESCAPE_BYTES)..)
        .unwrap_or_default();
    match text {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [rest @ .., b'A'..=b'Z' | b'a'..=b'z'] => {
            let is_parameter = |byte: &u8| byte.is_ascii_digit() || b";:?".contains(byte);
            let start = rest.iter().rposition(|byte| !is_parameter(byte));
            let head = start.and_then(|start| rest.get(..=start));
            head.is_some_and(|head| head.ends_with(b"\x1b["))
        }
        _ => false,
    }
}

/// Returns true for a character of a word. Scripts without spaces between words have none.
fn is_of_word(character: char) -> bool {
    let is_unspaced = matches!(
        u32::from(character),
        // Thai and Lao, Myanmar, Khmer, kana, Han.
        0x0E00..=0x0EFF
            | 0x1000..=0x109F
            | 0x1780..=0x17FF
            | 0x3005..=0x3007
            | 0x3040..=0x30FF
            | 0x31F0..=0x31FF
            | 0x3400..=0x9FFF
            | 0xF900..=0xFAFF
            | 0xFF66..=0xFF9F
            | 0x2_0000..=0x3_FFFF
    );
    character == '_' || character.is_alphanumeric() && !is_unspaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_behind_escapes() {
        for (before, expected) in [
            ("", true),
            ("a", false),
            ("\u{1b}[01;31m", true),
            ("\u{1b}[m\u{1b}[K", true),
            ("[31m", false),
            ("a\\n", true),
            ("x%3D", true),
            ("x3D", false),
        ] {
            let text = format!("{before}hunter2");
            assert_eq!(
                is_word(&text, before.len(), text.len()),
                expected,
                "{text:?}"
            );
        }
    }
}
