//! Bytes of a terminal to keys and pastes. What is left of them in memory is overwritten.

use zeroize::Zeroizing;

use crate::limits;

const ESCAPE: u8 = 0x1b;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Bytes that are kept of a paste: more than fit into a value, also when each of its lines ends in two.
const MOST_PASTED: usize = 2 * limits::MAX_SECRET_BYTES + 2;
/// Bytes that may wait to become a key; a longer sequence is none.
const MOST_WAITING: usize = 64;

/// Something that the user did.
pub(super) enum Key {
    /// A character.
    Char(char),
    /// A small letter with Ctrl.
    Control(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    /// A text, with the line breaks it came with.
    Paste(Zeroizing<String>),
    /// Anything else.
    Other,
}

impl Key {
    /// Whether it is Ctrl+C.
    pub(super) fn is_break(&self) -> bool {
        matches!(self, Self::Control('c'))
    }
}

/// Bytes that were read and are not a key yet.
pub(super) struct Keys {
    bytes: Zeroizing<Vec<u8>>,
    /// What was read of a paste that has not ended.
    paste: Option<Zeroizing<Vec<u8>>>,
}

impl Keys {
    /// Bytes to read at once.
    pub(super) const CHUNK: usize = 1024;

    /// Starts with nothing.
    pub(super) fn new() -> Self {
        Self {
            // A reallocation would leave a copy behind.
            bytes: Zeroizing::new(Vec::with_capacity(Self::CHUNK + MOST_WAITING)),
            paste: None,
        }
    }

    /// Adds what was read: at most one chunk, when there is no next key without it.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether something was read that is not a key yet.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next key. `has_paused` says that nothing more came for a while: what was begun is all there is of it.
    pub(super) fn next(&mut self, has_paused: bool) -> Option<Key> {
        if self.paste.is_none() && self.bytes.starts_with(PASTE_START) {
            self.bytes.drain(..PASTE_START.len());
            self.paste = Some(Zeroizing::new(Vec::with_capacity(MOST_PASTED)));
        }
        if self.paste.is_some() {
            return self.pasted();
        }
        let is_over = has_paused || self.bytes.len() >= MOST_WAITING;
        let rest = || (is_over && !self.bytes.is_empty()).then(|| begun(&self.bytes));
        let (length, key) = first(&self.bytes).or_else(rest)?;
        self.bytes.drain(..length);
        Some(key)
    }

    /// Returns the paste when its end was read.
    fn pasted(&mut self) -> Option<Key> {
        let paste = self.paste.as_mut()?;
        let mut windows = self.bytes.windows(PASTE_END.len());
        let end = windows.position(|window| window == PASTE_END);
        // What came last may be the start of the end.
        let open = self.bytes.len().saturating_sub(PASTE_END.len() - 1);
        let taken = end.unwrap_or(open);
        let room = MOST_PASTED - paste.len();
        paste.extend_from_slice(&self.bytes[..taken.min(room)]);
        self.bytes
            .drain(..taken + end.map_or(0, |_| PASTE_END.len()));
        end?;
        let paste = self.paste.take()?;
        Some(Key::Paste(text_of(&paste)))
    }
}

/// Returns bytes as text; what is none is replaced.
fn text_of(bytes: &[u8]) -> Zeroizing<String> {
    // What takes the place of a byte has three, and a reallocation would leave a copy behind.
    let mut text = Zeroizing::new(String::with_capacity(3 * bytes.len()));
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// Returns the first key and its length, when it is there as a whole.
fn first(bytes: &[u8]) -> Option<(usize, Key)> {
    let (&byte, rest) = bytes.split_first()?;
    let key = match byte {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x08 | 0x7f => Key::Backspace,
        ESCAPE => return escaped(rest).map(|(length, key)| (length + 1, key)),
        0x01..=0x1a => Key::Control(char::from(byte - 1 + b'a')),
        0x00..=0x1f => Key::Other,
        _ => return character(bytes),
    };
    Some((1, key))
}

/// Takes what comes after Esc: a sequence, a key with Alt, or a key of its own.
fn escaped(rest: &[u8]) -> Option<(usize, Key)> {
    match *rest.first()? {
        b'[' => {
            let is_end = |byte: &u8| !matches!(byte, 0x20..=0x3f);
            let length = 1 + rest[1..].iter().position(is_end)?;
            let is_part = matches!(rest[length], 0x40..=0x7e);
            Some((length + usize::from(is_part), Key::Other))
        }
        b'O' => rest.get(1).map(|_| (2, Key::Other)),
        0x00..=0x1f | 0x7f => Some((0, Key::Escape)),
        _ => Some((1, Key::Other)),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Key)> {
    let length = match bytes.first()? {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((1, Key::Other)),
    };
    let text = std::str::from_utf8(bytes.get(..length)?);
    let key = text.ok().and_then(|text| text.chars().next());
    Some(key.map_or((1, Key::Other), |c| (length, Key::Char(c))))
}

/// Returns what was begun and did not go on: Esc alone, or nothing that counts.
fn begun(bytes: &[u8]) -> (usize, Key) {
    match bytes {
        [ESCAPE] => (1, Key::Escape),
        _ => (bytes.len(), Key::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(key: &Key) -> String {
        match key {
            Key::Char(c) => c.to_string(),
            Key::Control(c) => format!("^{c}"),
            Key::Enter => "Enter".into(),
            Key::Tab => "Tab".into(),
            Key::Backspace => "Back".into(),
            Key::Escape => "Esc".into(),
            Key::Paste(text) => format!("{:?}", text.as_str()),
            Key::Other => "-".into(),
        }
    }

    /// Reads bytes in chunks of this size; the keys, with a space between them.
    fn read(bytes: &[u8], size: usize) -> String {
        let mut keys = Keys::new();
        let mut all = Vec::new();
        for chunk in bytes.chunks(size) {
            keys.add(chunk);
            while let Some(key) = keys.next(false) {
                all.push(shown(&key));
            }
        }
        while let Some(key) = keys.next(true) {
            all.push(shown(&key));
        }
        assert!(keys.is_empty());
        all.join(" ")
    }

    #[test]
    fn keys_are_the_same_however_they_are_read() {
        for (bytes, expected) in [
            (&b"aZ \r\n\t\x7f\x08"[..], "a Z   Enter Enter Tab Back Back"),
            (b"\x03\x04\x15\x00\x1c", "^c ^d ^u - -"),
            ("é名🦀".as_bytes(), "é 名 🦀"),
            (b"a\xff\xc3(\xe5\x90", "a - - ( -"),
            (b"\x1b[A\x1b[1;5C\x1bOPx\x1b[15~", "- - - x -"),
            (b"\x1bxy\x1b\x03\x1b[\x03", "- y Esc ^c - ^c"),
            (b"\x1b[200~a\r\nb\x1b[201~c", "\"a\\r\\nb\" c"),
            (
                b"\x1b[200~\x1b[A\x1b[20\x1b[201~",
                "\"\\u{1b}[A\\u{1b}[20\"",
            ),
            (b"a\x1b", "a Esc"),
            (b"\x1b[", "-"),
        ] {
            for size in 1..=bytes.len() {
                assert_eq!(read(bytes, size), expected, "{size}");
            }
        }
    }

    #[test]
    fn nothing_grows_without_end() {
        let endless = [b"\x1b[".as_slice(), &[b'1'; 5000]].concat();
        let mut keys = Keys::new();
        let mut others = 0;
        for chunk in endless.chunks(Keys::CHUNK) {
            keys.add(chunk);
            while keys.next(false).is_some() {
                others += 1;
            }
            assert!(keys.bytes.capacity() <= Keys::CHUNK + MOST_WAITING);
        }
        assert!(others > 0);
        let long = [PASTE_START, &[b'x'; 3 * MOST_PASTED], PASTE_END].concat();
        let pasted = read(&long, Keys::CHUNK);
        assert_eq!(pasted.len(), MOST_PASTED + 2);
    }
}
