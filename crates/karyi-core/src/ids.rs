//! Identifiers and points in time, as they are stored.

use std::cell::{Cell, RefCell};

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroize;

use crate::limits;

/// The system has no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomBytes;

/// A second since 1970 and its text without what follows the seconds.
type Second = (i64, [u8; SECOND_CHARS]);

/// Length of `2026-11-22T08:00:00`.
const SECOND_CHARS: usize = 19;
/// Digits after the second.
const MICRO_DIGITS: usize = 6;
/// Length of `2026-11-22T08:00:00.123456Z`.
const TIME_CHARS: usize = SECOND_CHARS + MICRO_DIGITS + 2;

thread_local! {
    /// The second that was written last: most times of a busy server fall into the same one.
    static SECOND: Cell<Option<Second>> = const { Cell::new(None) };
    static POOL: RefCell<Pool> = const { RefCell::new(Pool::EMPTY) };
}

/// Returns true when a text can be an identifier: `[A-Za-z0-9._:-]{1,100}`.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    !text.is_empty() && text.len() <= limits::MAX_ID_CHARS && text.bytes().all(is_sign)
}

/// Adds the time now to a text, as [`now`] writes it.
pub fn add_now(text: &mut Vec<u8>) {
    let time = Timestamp::now();
    match stamp(time) {
        Some(stamp) => text.extend_from_slice(&stamp),
        None => text.extend_from_slice(text_of(time).as_bytes()),
    }
}

/// Returns the time now, as text: `2026-11-22T08:00:00.123456Z`.
#[must_use]
pub fn now() -> String {
    text_of(Timestamp::now())
}

/// Returns a point in time as text of a fixed width, so that texts sort as times do.
#[must_use]
pub fn text_of(time: Timestamp) -> String {
    let stamp = stamp(time).map(|stamp| ascii(stamp.to_vec()));
    // Before 1970 parts of a second count backwards.
    stamp.unwrap_or_else(|| format!("{time:.6}"))
}

/// Returns that text of a time since 1970.
fn stamp(time: Timestamp) -> Option<[u8; TIME_CHARS]> {
    let second = time.as_second();
    let known = SECOND
        .get()
        .filter(|(known, _)| *known == second)
        .or_else(|| second_of(time));
    let known = known?;
    let mut micros = u32::try_from(time.subsec_nanosecond()).ok()? / 1000;
    SECOND.set(Some(known));
    let mut text = *b"                   .      Z";
    let (start, rest) = text.split_at_mut(SECOND_CHARS);
    start.copy_from_slice(&known.1);
    for digit in rest.iter_mut().skip(1).take(MICRO_DIGITS).rev() {
        *digit = b"0123456789"[micros as usize % 10];
        micros /= 10;
    }
    Some(text)
}

fn second_of(time: Timestamp) -> Option<Second> {
    let text = format!("{time:.0}");
    let start = text.strip_suffix('Z')?.as_bytes().try_into().ok()?;
    Some((time.as_second(), start))
}

/// Random bytes that were asked of the system for several identifiers at once.
struct Pool {
    bytes: [u8; limits::RANDOM_POOL_BYTES],
    left: usize,
}

impl Pool {
    const EMPTY: Self = Self {
        bytes: [0; limits::RANDOM_POOL_BYTES],
        left: 0,
    };

    /// Takes bytes out; none is given twice or stays behind.
    fn take(&mut self, wanted: &mut [u8]) -> Result<(), NoRandomBytes> {
        if wanted.len() > self.left {
            fill(&mut self.bytes)?;
            self.left = self.bytes.len();
        }
        let start = self.left.checked_sub(wanted.len());
        let taken = start.and_then(|start| self.bytes.get_mut(start..self.left));
        let Some(taken) = taken else {
            return fill(wanted);
        };
        wanted.copy_from_slice(taken);
        taken.zeroize();
        self.left -= wanted.len();
        Ok(())
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| NoRandomBytes)
}

/// Returns random bytes.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], NoRandomBytes> {
    let mut bytes = [0; N];
    POOL.with_borrow_mut(|pool| pool.take(&mut bytes))?;
    Ok(bytes)
}

/// Makes a new identifier: a random UUID (version 4).
///
/// # Errors
/// The system has no random bytes.
pub fn new_id() -> Result<String, NoRandomBytes> {
    let mut bytes = random::<16>()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut id = Vec::with_capacity(bytes.len() * 2 + 4);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            id.push(b'-');
        }
        id.extend_from_slice(&digits(*byte));
    }
    Ok(ascii(id))
}

/// Writes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.extend_from_slice(&digits(*byte));
    }
    ascii(text)
}

/// Returns signs of ASCII as text.
fn ascii(signs: Vec<u8>) -> String {
    String::from_utf8(signs).unwrap_or_default()
}

/// Returns the two digits of a byte.
fn digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 0x0f].map(|nibble| DIGITS[usize::from(nibble)])
}

/// Reads hexadecimal digits.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| {
            digit
                .to_digit(16)
                .and_then(|value| u8::try_from(value).ok())
        })
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | digit))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_the_form_of_a_uuid() {
        let id = new_id().unwrap();
        let shape: String = id
            .chars()
            .map(|c| if c == '-' { '-' } else { 'x' })
            .collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert_eq!(id.as_bytes()[14], b'4');
        assert_ne!(id, new_id().unwrap());
    }

    #[test]
    fn random_bytes_are_given_once() {
        let mut pool = Pool::EMPTY;
        let mut seen = std::collections::HashSet::new();
        for _ in 0..2 * limits::RANDOM_POOL_BYTES / 16 {
            let mut bytes = [0; 16];
            pool.take(&mut bytes).unwrap();
            assert!(seen.insert(bytes));
            assert!(pool.bytes[pool.left..].iter().all(|byte| *byte == 0));
        }
        let mut many = vec![0; limits::RANDOM_POOL_BYTES + 1];
        pool.take(&mut many).unwrap();
        assert!(
            // A part of one byte may be zero by chance.
            many.chunks_exact(64)
                .all(|part| part.iter().any(|byte| *byte != 0))
        );
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(hex(&[0, 0xab, 0xff]), "00abff");
        assert_eq!(unhex("00abff"), Some(vec![0, 0xab, 0xff]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("zz"), None);
    }

    #[test]
    fn times_have_one_width() {
        let time = Timestamp::from_second(1_734_091_200).unwrap();
        assert_eq!(text_of(time), "2024-12-13T12:00:00.000000Z");
        let check = |nanos: i128| {
            let time = Timestamp::from_nanosecond(nanos).unwrap();
            assert_eq!(text_of(time), format!("{time:.6}"));
        };
        for second in [0, 1, 1_734_091_199, 1_734_091_200, 253_402_207_200] {
            for nanos in [999_999_999, 0, 999, 1_000, 120_000_789] {
                check(second * 1_000_000_000 + nanos);
                check(second * 1_000_000_000 - nanos);
            }
        }
    }
}
