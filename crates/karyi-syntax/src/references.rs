//! Recognises `&name;`, `&#1;` and `$KARYI<NAME>` in text.

use super::chars::is_xml_char;

/// Longest name of a placeholder.
const MAX_PLACEHOLDER_NAME: usize = 64;
/// Text before the `<` of a placeholder.
const PLACEHOLDER: &[u8] = b"$KARYI";

/// A well-formed reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    /// Its bytes, `&` and `;` too.
    pub(super) length: usize,
    /// The character it denotes, if XML allows it.
    pub(super) character: Option<char>,
    /// The character it denotes, NUL apart.
    pub(super) any: Option<char>,
}

impl Reference {
    /// Returns true when it denotes a character that XML allows.
    pub(super) fn is_legal(self) -> bool {
        self.character.is_some()
    }

    /// Returns the character; where `takes_any`, also one that XML does not allow.
    pub(super) fn meant(self, takes_any: bool) -> Option<char> {
        if takes_any { self.any } else { self.character }
    }
}

/// Reads the reference at the start of `bytes`.
pub(super) fn reference(bytes: &[u8]) -> Option<Reference> {
    let (length, character) = match bytes {
        [b'&', b'l', b't', b';', ..] => (4, '<'),
        [b'&', b'g', b't', b';', ..] => (4, '>'),
        [b'&', b'a', b'm', b'p', b';', ..] => (5, '&'),
        [b'&', b'q', b'u', b'o', b't', b';', ..] => (6, '"'),
        [b'&', b'a', b'p', b'o', b's', b';', ..] => (6, '\''),
        _ => return numeric(bytes),
    };
    Some(Reference {
        length,
        character: Some(character),
        any: Some(character),
    })
}

/// Reads a reference by number.
fn numeric(bytes: &[u8]) -> Option<Reference> {
    let (radix, start) = match bytes {
        [b'&', b'#', b'x', ..] => (16, 3),
        [b'&', b'#', ..] => (10, 2),
        _ => return None,
    };
    let digits = bytes.get(start..)?;
    let count = digits
        .iter()
        .take_while(|b| char::from(**b).is_digit(radix))
        .count();
    if count == 0 || digits.get(count) != Some(&b';') {
        return None;
    }
    let digits = std::str::from_utf8(digits.get(..count)?).ok()?;
    // A number too large for u32 is no character either.
    let number = u32::from_str_radix(digits, radix).ok();
    Some(Reference {
        length: start + count + 1,
        character: number.filter(|n| is_xml_char(*n)).and_then(char::from_u32),
        any: number.filter(|n| *n > 0).and_then(char::from_u32),
    })
}

/// Result of checking a `<` for a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// A placeholder that ends before this index.
    Ends(usize),
    /// None.
    No,
    /// More bytes decide.
    Cut,
}

/// Checks the `<` at index `at` for a placeholder.
pub(super) fn placeholder(bytes: &[u8], at: usize) -> Placeholder {
    let before = bytes.get(..at).unwrap_or_default();
    if !before.ends_with(PLACEHOLDER) {
        return Placeholder::No;
    }
    let name = bytes.get(at + 1..).unwrap_or_default();
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = name
        .iter()
        .take(MAX_PLACEHOLDER_NAME + 1)
        .take_while(|b| is_part(b))
        .count();
    let starts_badly = name.first().is_some_and(u8::is_ascii_digit);
    match name.get(length) {
        _ if starts_badly || length > MAX_PLACEHOLDER_NAME => Placeholder::No,
        None => Placeholder::Cut,
        Some(b'>') if length > 0 => Placeholder::Ends(at + length + 2),
        Some(_) => Placeholder::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(usize, bool)>) {
        let found = reference(text.as_bytes()).map(|r| (r.length, r.is_legal()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn five_names_and_numbers_are_references() {
        check("&lt;x", Some((4, true)));
        check("&apos;", Some((6, true)));
        check("&#65;", Some((5, true)));
        check("&#x1F600;", Some((9, true)));
        check("&#00000000000000065;", Some((20, true)));
        check("&#0;", Some((4, false)));
        check("&#27;", Some((5, false)));
        check("&#xD800;", Some((8, false)));
        check("&#xFFFE;", Some((8, false)));
        check("&#99999999999;", Some((14, false)));
    }

    #[test]
    fn anything_else_is_text() {
        for text in [
            "&", "&&", "&a;", "&lt", "&LT;", "&nbsp;", "&#;", "&#x;", "&#xZZ;", "&#X41;", "&#6",
            "&#+6;",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn placeholders_need_name_and_closer() {
        let row =
            |text: &str, expected| assert_eq!(placeholder(text.as_bytes(), 6), expected, "{text}");
        row("$KARYI<TOKEN>x", Placeholder::Ends(13));
        row("$KARYI<_a1>", Placeholder::Ends(11));
        row("$KARYI<TOK", Placeholder::Cut);
        row("$KARYI<", Placeholder::Cut);
        row("$KARYI<>", Placeholder::No);
        row("$KARYI<1>", Placeholder::No);
        row("$KARYI<a b>", Placeholder::No);
        row("$KARYI<<", Placeholder::No);
        row("$KARXI<A>", Placeholder::No);
        row(
            &format!("$KARYI<{}>", "a".repeat(64)),
            Placeholder::Ends(72),
        );
        row(&format!("$KARYI<{}>", "a".repeat(65)), Placeholder::No);
    }
}
