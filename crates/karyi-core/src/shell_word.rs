//! Quoting for a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Quotes text so that any shell reads it as one word.
#[must_use]
pub fn quote(text: &OsStr) -> String {
    let mut quoted = String::from("'");
    quoted.push_str(&String::from_utf8_lossy(text.as_bytes()).replace('\'', r"'\''"));
    quoted.push('\'');
    quoted
}

/// Quotes text; unlike [`quote`] it keeps bytes that are not UTF-8.
#[must_use]
pub fn quote_bytes(text: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        let check = |text: &str, expected: &str| {
            assert_eq!(quote(OsStr::new(text)), expected);
            assert_eq!(quote_bytes(OsStr::new(text)), expected.as_bytes());
        };
        check("", "''");
        check("a b$x\n", "'a b$x\n'");
        check("it's", r"'it'\''s'");
    }
}
