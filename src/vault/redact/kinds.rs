//! The kinds of escapes, and the text that they are read from.

use super::lane::Lane;
use crate::vault::view;

/// How the escapes of one kind are read. Text that is written in one kind may hold the signs of
/// the others as they are.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// What they begin with.
    pub(super) sign: u8,
    /// Whether a blank after the sign may be what is escaped.
    pub(super) is_parted: bool,
}

impl Kind {
    const fn new(sign: u8) -> Self {
        Self {
            sign,
            is_parted: false,
        }
    }

    /// Whether a blank stands behind a sign that may be meant for it: elsewhere white space hides nothing.
    #[inline]
    pub(super) fn is_parted(&self, at: usize, main: &Lane, known: &Known<'_>) -> bool {
        self.is_parted && known.has_blank_between(main.place(at), main.place(at + 1))
    }
}

/// All of them. A blank after a backslash is one that a shell has quoted, or stands between any two
/// characters of the text.
pub(super) const KINDS: [Kind; 4] = [
    Kind {
        sign: b'\\',
        is_parted: true,
    },
    Kind::new(b'\\'),
    Kind::new(b'%'),
    Kind::new(b'&'),
];

/// The text that places are in, as far as it is known.
pub(super) struct Known<'a> {
    pub(super) bytes: &'a [u8],
    /// Where it starts.
    pub(super) base: u64,
}

impl Known<'_> {
    /// Whether a blank stands between two visible bytes that follow each other.
    fn has_blank_between(&self, first: u64, second: u64) -> bool {
        if second == first + 1 {
            return false;
        }
        let index = |place: u64| usize::try_from(place.saturating_sub(self.base)).ok();
        let range = index(first + 1).zip(index(second));
        let between = range.and_then(|(start, end)| self.bytes.get(start..end));
        let between = between.unwrap_or_default();
        let shown = view::shown(between);
        let mut bytes = between.iter().enumerate();
        bytes.any(|(at, byte)| matches!(byte, b' ' | b'\t') && shown.get(at) != Some(&false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blanks_that_are_shown_part_an_escape() {
        let cases = [
            ("\\n", false),
            ("\\ n", true),
            ("\\\r\n\tn", true),
            ("\\\r\nn", false),
            ("\\\u{1b}[0 qn", false),
            ("\\\u{1b}]a b\u{7}n", false),
            ("\\\u{1b}[0 q n", true),
        ];
        for (text, expected) in cases {
            let known = Known {
                bytes: text.as_bytes(),
                base: 100,
            };
            let last = 100 + text.len() as u64 - 1;
            assert_eq!(known.has_blank_between(100, last), expected, "{text:?}");
            assert!(!known.has_blank_between(0, 1), "{text:?}");
        }
    }
}
