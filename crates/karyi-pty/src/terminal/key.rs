//! Names of keys and the bytes a terminal sends for them.
//!
//! `<ctrl>` names a key: a single character means Ctrl and that character, a word means the key itself. Cursor keys,
//! home and end are sent as ESC `[`, or as ESC `O` if the job has set the application mode.

/// A key that can be pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Ctrl and a character, as the byte it sends.
    Control(u8),
    /// A key with a name, as the bytes it sends.
    Named(&'static str),
}

/// Keys with names, and the bytes they send.
const NAMED: &[(&str, &str)] = &[
    ("enter", "\r"),
    ("esc", "\x1b"),
    ("tab", "\t"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("pgup", "\x1b[5~"),
    ("pgdn", "\x1b[6~"),
    ("backspace", "\x7f"),
    ("delete", "\x1b[3~"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
];

/// Returns the names of all keys: the characters for Ctrl, then the words.
#[must_use]
pub fn names() -> Vec<String> {
    let characters = (b'!'..=b'~').filter(|byte| control(*byte).is_some());
    let characters = characters.map(|byte| char::from(byte).to_string());
    let words = NAMED.iter().map(|(name, _)| (*name).to_owned());
    characters.chain(words).collect()
}

impl Key {
    /// Ctrl+C.
    pub const INTERRUPT: Self = Self::Control(3);
    /// Ctrl+Z.
    pub const SUSPEND: Self = Self::Control(26);
    /// Ctrl+\\.
    pub const QUIT: Self = Self::Control(28);

    /// Returns the key with a trimmed lower-case name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let [character] = name.as_bytes() {
            return control(*character).map(Self::Control);
        }
        let (_, sequence) = NAMED.iter().find(|(known, _)| *known == name)?;
        Some(Self::Named(sequence))
    }

    /// Returns the bytes the key sends in the application mode of the cursor keys.
    #[must_use]
    pub fn application_bytes(self) -> Vec<u8> {
        let mut bytes = self.bytes();
        if let [0x1b, second @ b'[', b'A'..=b'D' | b'F' | b'H'] = bytes.as_mut_slice() {
            *second = b'O';
        }
        bytes
    }

    /// Returns the bytes the key sends.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::Control(byte) => vec![byte],
            Self::Named(sequence) => sequence.as_bytes().to_vec(),
        }
    }
}

/// Returns true if a trimmed lower-case text names a key.
#[must_use]
pub fn is_key_name(name: &str) -> bool {
    Key::parse(name).is_some()
}

/// Returns the byte of Ctrl and a character.
fn control(character: u8) -> Option<u8> {
    match character {
        b'a'..=b'z' | b'[' | b'\\' | b']' | b'^' | b'_' => Some(character & 0x1f),
        b'?' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&[u8]>) {
        assert_eq!(
            Key::parse(name).map(Key::bytes).as_deref(),
            expected,
            "{name:?}"
        );
        assert_eq!(is_key_name(name), expected.is_some(), "{name:?}");
    }

    #[test]
    fn a_character_means_ctrl() {
        check("a", Some(b"\x01"));
        check("c", Some(b"\x03"));
        check("z", Some(b"\x1a"));
        check("[", Some(b"\x1b"));
        check("\\", Some(b"\x1c"));
        check("]", Some(b"\x1d"));
        check("^", Some(b"\x1e"));
        check("_", Some(b"\x1f"));
        check("?", Some(b"\x7f"));
    }

    #[test]
    fn a_word_means_the_key() {
        check("enter", Some(b"\r"));
        check("up", Some(b"\x1b[A"));
        check("delete", Some(b"\x1b[3~"));
        check("f12", Some(b"\x1b[24~"));
        for (name, sequence) in NAMED {
            check(name, Some(sequence.as_bytes()));
        }
        assert!(names().iter().all(|name| is_key_name(name)));
        assert_eq!(names().len(), 26 + 6 + NAMED.len());
    }

    #[test]
    fn cursor_keys_have_another_mode() {
        let check = |name: &str, expected: &[u8]| {
            let bytes = Key::parse(name).unwrap().application_bytes();
            assert_eq!(bytes, expected, "{name}");
        };
        check("up", b"\x1bOA");
        check("left", b"\x1bOD");
        check("home", b"\x1bOH");
        check("end", b"\x1bOF");
        check("pgup", b"\x1b[5~");
        check("f1", b"\x1bOP");
        check("esc", b"\x1b");
        check("[", b"\x1b");
        check("a", b"\x01");
    }

    #[test]
    fn anything_else_is_no_key() {
        for name in [
            "", "C", "1", " c", "@", "f0", "f13", "return", "ctrl-c", "é", "cc",
        ] {
            check(name, None);
        }
    }
}
