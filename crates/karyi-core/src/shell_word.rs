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

/// Returns text as one word of any shell, in quotes only when it needs them.
#[must_use]
pub fn word(text: &OsStr) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match text.to_str() {
        // zsh expands `=NAME`.
        Some(word) if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) => {
            word.to_owned()
        }
        _ => quote(text),
    }
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

    #[test]
    fn plain_words_need_no_quotes() {
        for (text, expected) in [
            ("a/b-c_d.e:f=g@h%i+j,k", "a/b-c_d.e:f=g@h%i+j,k"),
            ("", "''"),
            ("=ls", "'=ls'"),
            ("~", "'~'"),
            ("a b", "'a b'"),
            ("é", "'é'"),
        ] {
            assert_eq!(word(OsStr::new(text)), expected);
        }
    }
}
