//! Canonical JSON (RFC 8785) and its hash.
//!
//! Inputs with the same meaning have the same hash, whatever the order of their keys.

use std::io::Write;

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde_json::{Number, Value};

use karyi_core::ids::hex;
use karyi_core::limits;

/// Length of the short form of a hash, in bytes.
const SHORT_BYTES: usize = 8;

/// Hash of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadHash([u8; SHA256_OUTPUT_LEN]);

impl PayloadHash {
    /// Returns the hash of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest(&SHA256, &canonical(value)).as_ref());
        Self(bytes)
    }

    /// Returns the first digits, for responses and the ledger.
    #[must_use]
    pub fn short(&self) -> String {
        hex(self.0.get(..SHORT_BYTES).unwrap_or(&self.0))
    }

    /// Returns all digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

/// Returns the canonical form of a value, as UTF-8.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(limits::CANONICAL_BYTES);
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(list) => {
            out.push(b'[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut keys: Vec<(&String, &Value)> = map.iter().collect();
            // Keys sort by UTF-16 units, not by bytes.
            keys.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push(b'{');
            for (index, (key, value)) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(out, key);
                out.push(b':');
                write_value(out, value);
            }
            out.push(b'}');
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // serde_json escapes exactly as RFC 8785 does; writing into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Writes a number as ECMAScript does.
fn write_number(out: &mut Vec<u8>, number: &Number) {
    let exact = number.as_i64().filter(|n| n.unsigned_abs() <= 1 << 53);
    if let Some(whole) = exact {
        let _ = write!(out, "{whole}");
        return;
    }
    let value = number.as_f64().unwrap_or(0.0);
    if value == 0.0 {
        return out.push(b'0');
    }
    if value < 0.0 {
        out.push(b'-');
    }
    // The shortest digits that read back as the value, as `d.ddde±x`.
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    place_point(out, &digits, exponent + 1);
}

/// Writes digits with the decimal point after the first `point` of them.
fn place_point(out: &mut Vec<u8>, digits: &str, point: i32) {
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let _ = match point {
        _ if length <= point && point <= 21 => write!(out, "{digits}{}", zeros(point - length)),
        1..=21 => {
            let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
            write!(out, "{whole}.{rest}")
        }
        -5..=0 => write!(out, "0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let sign = if point > 0 { "+" } else { "-" };
            write!(out, "{first}{dot}{rest}e{sign}{}", (point - 1).abs())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hashes_are_those_of_the_specification() {
        let check =
            |value: Value, expected: &str| assert_eq!(PayloadHash::of(&value).short(), expected);
        check(json!({}), "44136fa355b3678a");
        check(json!({"query": "严氏"}), "8777a5ee3f68c3a3");
        check(json!({"npc_id": "ancestor_yan"}), "9e07e24041b69a44");
        check(
            json!({"query": "严氏家训", "limit": 10}),
            "da25cd0ccaffef95",
        );
        check(
            json!({"limit": 10, "query": "严氏家训"}),
            "da25cd0ccaffef95",
        );
    }

    #[test]
    fn values_have_one_canonical_form() {
        let check = |text: &str, expected: &str| {
            let found = canonical(&serde_json::from_str(text).unwrap());
            assert_eq!(String::from_utf8(found).unwrap(), expected);
        };
        check(r#"{"b":[1, 2.0],"a":null}"#, r#"{"a":null,"b":[1,2]}"#);
        // The numbers and the string of RFC 8785, section 3.2.2.
        check(
            "[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]",
            "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
        );
        check(
            "[-0.0, 1e21, 1e20, 123456789012345680000, 1e-6, 1e-7, -1.5e-7]",
            "[0,1e+21,100000000000000000000,123456789012345680000,0.000001,1e-7,-1.5e-7]",
        );
        check(
            r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
            "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"",
        );
        check("9007199254740993", "9007199254740992");
        // U+1F600 sorts before U+FB33 by UTF-16 units.
        check(
            r#"{"\ufb33":1,"\ud83d\ude00":2}"#,
            "{\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
    }
}
