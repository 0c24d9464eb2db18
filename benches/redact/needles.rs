//! Values, and the encodings of them that a list of patterns needs: a dozen for each.

use std::fmt::Write;

/// Tokens of 20 to 60 characters, the same in every run.
pub(crate) fn values(count: usize) -> Vec<String> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/+=.";
    (0..count)
        .map(|_| {
            let length = 20 + next() as usize % 40;
            (0..length)
                .map(|_| char::from(letters[next() as usize % letters.len()]))
                .collect()
        })
        .collect()
}

/// Every encoding of every value, each once.
pub(crate) fn patterns(values: &[String]) -> Vec<Vec<u8>> {
    let mut patterns: Vec<Vec<u8>> = values.iter().flat_map(|value| encodings(value)).collect();
    patterns.sort();
    patterns.dedup();
    patterns
}

fn encodings(value: &str) -> Vec<Vec<u8>> {
    let each = |form: fn(u8) -> String| value.bytes().map(form).collect::<String>();
    let percent = |upper: bool| {
        let mut text = String::new();
        for byte in value.bytes() {
            let _ = match (
                byte.is_ascii_alphanumeric() || b"-_.".contains(&byte),
                upper,
            ) {
                (true, _) => write!(text, "{}", char::from(byte)),
                (false, true) => write!(text, "%{byte:02X}"),
                (false, false) => write!(text, "%{byte:02x}"),
            };
        }
        text
    };
    let mut forms = vec![
        value.to_owned(),
        value.replace('/', "\\/"),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("{byte:02X}")),
        each(|byte| format!("\\x{byte:02x}")),
        each(|byte| format!("%u00{byte:02x}")),
        each(|byte| format!("&#{byte};")),
        percent(true),
        percent(false),
    ];
    forms.extend((0..3).flat_map(|shift| base64(value, shift)));
    forms.into_iter().map(String::into_bytes).collect()
}

/// The digits of both alphabets that depend on the value alone.
fn base64(value: &str, shift: usize) -> [String; 2] {
    let mut bits = vec![false; 8 * shift];
    for byte in value.bytes() {
        bits.extend((0..8).rev().map(|place| byte >> place & 1 == 1));
    }
    let digits = bits.chunks_exact(6).skip((8 * shift).div_ceil(6));
    let digits: Vec<u8> = digits
        .map(|six| {
            six.iter()
                .fold(0, |number, bit| number << 1 | u8::from(*bit))
        })
        .collect();
    ["+/", "-_"].map(|last| {
        let letters =
            format!("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789{last}");
        let letter = |digit: &u8| char::from(letters.as_bytes()[usize::from(*digit)]);
        digits.iter().map(letter).collect()
    })
}
