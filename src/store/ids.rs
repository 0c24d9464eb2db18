//! Identifiers and points in time, as they are stored.

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};

use crate::store::StoreError;

/// Returns the time now, as text: `2026-11-22T08:00:00.123456Z`.
#[must_use]
pub fn now() -> String {
    text_of(Timestamp::now())
}

/// Returns a point in time as text of a fixed width, so that texts sort as times do.
#[must_use]
pub fn text_of(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Returns so many random bytes.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| StoreError::Broken("the system gives no random bytes".into()))?;
    Ok(bytes)
}

/// Makes a new identifier: a random UUID (version 4).
///
/// # Errors
/// The system has no random bytes.
pub fn new_id() -> Result<String, StoreError> {
    let mut bytes = random::<16>()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok(format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    ))
}

/// Writes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0x0f)]);
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
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
    }
}
