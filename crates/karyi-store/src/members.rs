//! Writes JSON objects member by member.
//!
//! Records, log lines and responses are written for every call, and their member names need no escaping. The
//! output equals that of serde; tests compare both.

/// JSON object that is being written.
pub struct Members<'t> {
    text: &'t mut Vec<u8>,
    is_first: bool,
}

impl<'t> Members<'t> {
    /// Begins an object at the end of a text.
    pub fn begin(text: &'t mut Vec<u8>) -> Self {
        text.push(b'{');
        Self {
            text,
            is_first: true,
        }
    }

    /// Ends the object.
    pub fn end(self) {
        self.text.push(b'}');
    }

    /// Begins a member and returns the buffer for its value. The name must need no escaping.
    pub fn value(&mut self, name: &str) -> &mut Vec<u8> {
        let start: &[u8] = match std::mem::take(&mut self.is_first) {
            true => b"\"",
            false => b",\"",
        };
        self.text.extend_from_slice(start);
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
        self.text
    }

    /// Adds a string.
    pub fn text(&mut self, name: &str, value: &str) {
        add_text(self.value(name), value);
    }

    /// Adds a string if there is one.
    pub fn some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, value: u64) {
        add_number(self.value(name), value);
    }

    /// Adds a number if there is one.
    pub fn some_number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.number(name, value);
        }
    }

    /// Adds `true` if the value is true.
    pub fn when(&mut self, name: &str, value: bool) {
        if value {
            self.value(name).extend_from_slice(b"true");
        }
    }
}

/// Appends a JSON string.
pub fn add_text(out: &mut Vec<u8>, value: &str) {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // Checking all bytes vectorises and is twice as fast as stopping at the first special one.
    let all_plain = |all: bool, byte: &u8| all & is_plain(byte);
    if value.as_bytes().iter().fold(true, all_plain) {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(out, value);
    }
}

fn add_number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        *place = b"0123456789"[usize::from((value % 10) as u8)];
        value /= 10;
        length += 1;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - length..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_character_is_escaped_at_every_position() {
        let signs = (0..=0x80)
            .chain([0x7ff, 0xffff, 0x1f4a9])
            .filter_map(char::from_u32);
        for sign in signs {
            for before in 0..=17 {
                for after in [0, 1, 7, 8, 9] {
                    let text = format!("{}{sign}{}", "x".repeat(before), "~".repeat(after));
                    let mut out = Vec::new();
                    add_text(&mut out, &text);
                    let expected = serde_json::to_vec(&text).unwrap();
                    assert_eq!(out, expected, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn output_equals_serde_json() {
        let mut out = b"x".to_vec();
        let mut members = Members::begin(&mut out);
        members.text("a", "plain 古井 \u{7f}");
        members.some("b", Some("\"\\\n\u{1}"));
        members.some("c", None);
        members.number("d", 0);
        members.some_number("e", Some(u64::MAX));
        members.when("f", true);
        members.when("g", false);
        members.value("h").extend_from_slice(b"[]");
        members.end();
        let expected = json!({
            "a": "plain 古井 \u{7f}", "b": "\"\\\n\u{1}", "d": 0, "e": u64::MAX, "f": true, "h": []
        });
        assert_eq!(String::from_utf8(out).unwrap(), format!("x{expected}"));
        let mut empty = Vec::new();
        Members::begin(&mut empty).end();
        assert_eq!(empty, b"{}");
    }
}
