//! How much of a text beside an escape is looked at with it: what a match with an escape in it may have there.

use crate::limits;

/// Characters before an escape and after it: a match with an escape in it has fewer on either side.
const CHARACTERS: usize = limits::REDACTED_RUN_BYTES + 4;

/// Most bytes that these take, as UTF-8 or in a row of one byte.
pub(super) const MOST_AROUND: usize = 4 * CHARACTERS;

/// How much behind an escape is still taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    characters: usize,
    /// Nothing is taken where none of these is left.
    bytes: usize,
}

impl Left {
    /// Right behind an escape.
    pub(super) const ALL: Self = Self {
        characters: CHARACTERS,
        bytes: MOST_AROUND,
    };

    /// Whether nothing is taken.
    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.bytes == 0
    }

    /// Whether so many bytes are taken for sure.
    #[inline]
    pub(super) fn has(self, count: usize) -> bool {
        count < self.characters.min(self.bytes)
    }

    /// Returns how many of some bytes are taken that stand at a place in a text.
    #[inline]
    pub(super) fn take(&mut self, text: &[u8], at: usize, count: usize) -> usize {
        if *self == Self::ALL && count >= CHARACTERS && is_simple(text, at) {
            *self = Self::default();
            return CHARACTERS;
        }
        self.take_each(text, at, count)
    }

    fn take_each(&mut self, text: &[u8], at: usize, count: usize) -> usize {
        let mut taken = 0;
        while taken < count && self.bytes > 0 {
            self.bytes -= 1;
            if counts(text, at + taken) {
                self.characters = self.characters.saturating_sub(1);
                if self.characters == 0 {
                    self.bytes = 0;
                }
            }
            taken += 1;
        }
        taken
    }
}

/// Returns where what is looked at begins that stands before a place.
#[inline]
pub(super) fn before(text: &[u8], at: usize) -> usize {
    match at.checked_sub(CHARACTERS) {
        Some(from) if is_simple(text, from) => from,
        _ => before_each(text, at),
    }
}

fn before_each(text: &[u8], at: usize) -> usize {
    let least = at.saturating_sub(MOST_AROUND);
    let mut characters = 0;
    let mut from = at;
    while from > least && characters < CHARACTERS {
        from -= 1;
        characters += usize::from(counts(text, from));
    }
    from
}

/// Whether a byte counts: as the first one of a character, and not as the third one of a row, as rows of one byte may
/// count for nothing.
pub(super) fn counts(text: &[u8], at: usize) -> bool {
    let byte = text.get(at);
    let is_same = |back: usize| at.checked_sub(back).and_then(|at| text.get(at)) == byte;
    let is_more = byte.is_some_and(|byte| byte & 0xC0 == 0x80);
    !(is_more || is_same(1) && is_same(2))
}

/// Whether as many bytes as there are characters are ASCII and have no row: so it is almost everywhere. All of them are
/// looked at at once.
#[inline]
fn is_simple(text: &[u8], at: usize) -> bool {
    const ONES: u128 = u128::MAX / 0xFF;
    const HIGH: u128 = ONES << 7;
    let bytes = text
        .get(at..at + CHARACTERS)
        .map(<[u8; CHARACTERS]>::try_from);
    let Some(Ok(bytes)) = bytes else {
        return false;
    };
    let all = u128::from_le_bytes(bytes);
    // Zero where a byte is followed by two of its like; that a borrow shows more of them only takes time.
    let rows = (all ^ all >> 8) | (all ^ all >> 16);
    let is_row = rows.wrapping_sub(ONES) & !rows & HIGH;
    (all & HIGH) | is_row == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to count are the same, however the bytes are divided.
    #[test]
    fn characters_are_counted_and_not_bytes() {
        for (text, before_end, behind_start) in [
            ("abcdefghijklmnopqrstuvwxyz", 16, 16),
            ("aabbccddeeffgghhiijjkk", 16, 16),
            ("aaabcdefghijklmnopqrst", 16, 17),
            ("абвгдежзийклмнопрстуф", 32, 31),
            ("我的数据库密码是什么我不知道你也不知道他", 48, 46),
            ("🔑🔐🔏🔒🔓🔑🔐🔏🔒🔓🔑🔐🔏🔒🔓🔑🔐🔏", 64, 61),
            ("short", 5, 5),
        ] {
            let bytes = text.as_bytes();
            assert_eq!(
                bytes.len() - before(bytes, bytes.len()),
                before_end,
                "{text}"
            );
            let mut left = Left::ALL;
            assert_eq!(left.take(bytes, 0, bytes.len()), behind_start, "{text}");
            for cut in 0..bytes.len() {
                let mut left = Left::ALL;
                let mut taken = left.take(bytes, 0, cut);
                if taken == cut {
                    taken += left.take(bytes, cut, bytes.len() - cut);
                }
                assert_eq!(taken, behind_start, "{text} cut at {cut}");
            }
        }
        let row = "=".repeat(100);
        assert_eq!(before(row.as_bytes(), 100), 100 - MOST_AROUND);
        let mut left = Left::ALL;
        assert_eq!(left.take(row.as_bytes(), 0, 100), MOST_AROUND);
    }
}
