//! Decodes what a terminal sends: keys in the old and in kitty's encoding, pastes, and changes of focus.
//!
//! Bytes may be cut anywhere. An escape byte at the end is a key only after a pause, which the caller decides.

use karyi_core::limits;

const ESCAPE: u8 = 0x1b;
const PASTE_START: &[u8] = b"200";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longest sequence; a longer one is dropped.
const MOST_SEQUENCE_BYTES: usize = 64;

/// A key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character; with Ctrl a small letter.
    Char(char),
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Escape.
    Escape,
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A key that nothing here uses.
    Other,
}

/// Modifiers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modifiers {
    /// Shift.
    pub shift: bool,
    /// Alt.
    pub alt: bool,
    /// Ctrl.
    pub control: bool,
}

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPress {
    /// The key.
    pub key: Key,
    /// Its modifiers.
    pub modifiers: Modifiers,
}

impl KeyPress {
    /// Returns a key without modifiers.
    #[must_use]
    pub fn plain(key: Key) -> Self {
        Self {
            key,
            modifiers: Modifiers::default(),
        }
    }

    /// Returns a letter with Ctrl.
    #[must_use]
    pub fn control(letter: char) -> Self {
        Self {
            key: Key::Char(letter),
            modifiers: Modifiers {
                control: true,
                ..Modifiers::default()
            },
        }
    }

    /// Returns true for a key that was pressed without Ctrl and Alt.
    #[must_use]
    pub fn is_plain(self) -> bool {
        !self.modifiers.control && !self.modifiers.alt
    }

    /// Returns the letter of a key that was pressed with Ctrl alone.
    #[must_use]
    pub fn control_letter(self) -> Option<char> {
        match (self.key, self.modifiers) {
            (
                Key::Char(letter),
                Modifiers {
                    control: true,
                    alt: false,
                    ..
                },
            ) => Some(letter),
            _ => None,
        }
    }
}

/// Input of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key.
    Key(KeyPress),
    /// Pasted text, with `\n` as line breaks.
    Paste(String),
    /// The terminal got or lost the focus.
    Focus(bool),
}

/// Decodes the bytes of a terminal.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    bytes: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// Start of the bytes, decoded.
enum Decoded {
    Input(TerminalInput, usize),
    PasteStart(usize),
    /// Nothing that is used.
    Nothing(usize),
    Incomplete,
}

impl KeyDecoder {
    /// Takes bytes; returns what is complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        self.bytes.extend_from_slice(bytes);
        self.decode()
    }

    /// Returns true when bytes wait for the rest of a key.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty() && self.paste.is_none()
    }

    /// Takes a pause: an escape byte at the end was the key.
    pub fn pause(&mut self) -> Vec<TerminalInput> {
        if !self.is_waiting() {
            return Vec::new();
        }
        let rest = std::mem::take(&mut self.bytes);
        let mut found = Vec::new();
        if let [ESCAPE, after @ ..] = rest.as_slice() {
            found.push(TerminalInput::Key(KeyPress::plain(Key::Escape)));
            // `ESC [` alone would begin a sequence again.
            found.extend(after.iter().filter_map(|byte| plain_key(*byte)));
        }
        found
    }

    fn decode(&mut self) -> Vec<TerminalInput> {
        let mut found = Vec::new();
        loop {
            if let Some(paste) = &mut self.paste {
                match take_paste(paste, &mut self.bytes) {
                    true => {
                        let paste = self.paste.take().unwrap_or_default();
                        found.push(TerminalInput::Paste(pasted_text(&paste)));
                    }
                    false => return found,
                }
            }
            let length = match first(&self.bytes) {
                Decoded::Incomplete => return found,
                Decoded::Nothing(length) => length,
                Decoded::PasteStart(length) => {
                    self.paste = Some(Vec::new());
                    length
                }
                Decoded::Input(input, length) => {
                    found.push(input);
                    length
                }
            };
            self.bytes.drain(..length);
        }
    }
}

/// Moves bytes of a paste; returns true at its end.
fn take_paste(paste: &mut Vec<u8>, bytes: &mut Vec<u8>) -> bool {
    // The end may have begun in the bytes before.
    let start = paste.len().saturating_sub(PASTE_END.len());
    paste.append(bytes);
    let tail = paste.get(start..).unwrap_or_default();
    let end = tail
        .windows(PASTE_END.len())
        .position(|window| window == PASTE_END);
    if let Some(end) = end {
        let rest = paste.split_off(start + end);
        *bytes = rest.get(PASTE_END.len()..).unwrap_or_default().to_vec();
        paste.truncate(limits::MAX_PASTE_BYTES);
        return true;
    }
    let most = limits::MAX_PASTE_BYTES + PASTE_END.len();
    if paste.len() > most {
        let surplus = most - PASTE_END.len()..paste.len() - PASTE_END.len();
        paste.drain(surplus);
    }
    false
}

fn pasted_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Decodes the start of some bytes.
fn first(bytes: &[u8]) -> Decoded {
    match bytes {
        [] => Decoded::Incomplete,
        [ESCAPE] => Decoded::Incomplete,
        [ESCAPE, b'[', rest @ ..] => control_sequence(rest),
        [ESCAPE, b'O'] => Decoded::Incomplete,
        [ESCAPE, b'O', last, ..] => key(final_key(*last), Modifiers::default(), 3),
        [ESCAPE, ESCAPE, ..] => key(Key::Escape, Modifiers::default(), 1),
        [ESCAPE, rest @ ..] => with_alt(rest),
        [byte, ..] => match plain_key(*byte) {
            Some(input) => Decoded::Input(input, 1),
            None => character(bytes),
        },
    }
}

fn key(key: Key, modifiers: Modifiers, length: usize) -> Decoded {
    match key {
        Key::Other => Decoded::Nothing(length),
        _ => Decoded::Input(TerminalInput::Key(KeyPress { key, modifiers }), length),
    }
}

/// Decodes a key of one byte.
fn plain_key(byte: u8) -> Option<TerminalInput> {
    let press = match byte {
        b'\r' => KeyPress::plain(Key::Enter),
        b'\t' => KeyPress::plain(Key::Tab),
        0x08 | 0x7f => KeyPress::plain(Key::Backspace),
        0x00 => KeyPress::control(' '),
        ESCAPE => return None,
        0x01..=0x1a => KeyPress::control(char::from(byte - 1 + b'a')),
        0x1c..=0x1f => KeyPress::control(char::from(byte + b'@')),
        b' '..=b'~' => KeyPress::plain(Key::Char(char::from(byte))),
        _ => return None,
    };
    Some(TerminalInput::Key(press))
}

/// Decodes a character of several bytes.
fn character(bytes: &[u8]) -> Decoded {
    let length = bytes.first().map_or(1, |first| first.leading_ones()) as usize;
    if !(2..=4).contains(&length) {
        return Decoded::Nothing(1);
    }
    let Some(whole) = bytes.get(..length) else {
        return Decoded::Incomplete;
    };
    match std::str::from_utf8(whole)
        .ok()
        .and_then(|text| text.chars().next())
    {
        Some(c) => key(Key::Char(c), Modifiers::default(), length),
        None => Decoded::Nothing(1),
    }
}

/// Decodes a key after an escape byte, which is the key with Alt.
fn with_alt(rest: &[u8]) -> Decoded {
    match first(rest) {
        Decoded::Input(TerminalInput::Key(press), length) => {
            let modifiers = Modifiers {
                alt: true,
                ..press.modifiers
            };
            key(press.key, modifiers, length + 1)
        }
        Decoded::Incomplete => Decoded::Incomplete,
        Decoded::Input(..) | Decoded::PasteStart(_) | Decoded::Nothing(_) => Decoded::Nothing(1),
    }
}

/// Decodes what follows `ESC [`.
fn control_sequence(rest: &[u8]) -> Decoded {
    let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
    let Some(end) = rest.iter().position(is_final) else {
        return match rest.len() > MOST_SEQUENCE_BYTES {
            true => Decoded::Nothing(rest.len() + 2),
            false => Decoded::Incomplete,
        };
    };
    let (parameters, last) = rest.split_at(end);
    let last = last.first().copied().unwrap_or_default();
    let length = end + 3;
    if parameters == PASTE_START && last == b'~' {
        return Decoded::PasteStart(length);
    }
    if parameters.is_empty() && matches!(last, b'I' | b'O') {
        return Decoded::Input(TerminalInput::Focus(last == b'I'), length);
    }
    let parameters = String::from_utf8_lossy(parameters).into_owned();
    let mut fields = parameters.split(';');
    let number = |field: Option<&str>| -> u32 {
        let first = field.unwrap_or_default().split(':').next();
        first.and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    let code = number(fields.next());
    let second = fields.next().unwrap_or_default();
    if second.split(':').nth(1) == Some("3") {
        // The key was released.
        return Decoded::Nothing(length);
    }
    let third = number(fields.next());
    let modifiers = modifiers(number(Some(second)));
    match last {
        b'u' => key(code_key(code), modifiers, length),
        b'~' if code == 27 => key(code_key(third), modifiers, length),
        b'~' => key(number_key(code), modifiers, length),
        b'Z' => {
            let shift = true;
            key(Key::Tab, Modifiers { shift, ..modifiers }, length)
        }
        _ => key(final_key(last), modifiers, length),
    }
}

/// Decodes the number of modifiers: one more than their bits.
fn modifiers(number: u32) -> Modifiers {
    let bits = number.saturating_sub(1);
    Modifiers {
        shift: bits & 1 != 0,
        alt: bits & 2 != 0,
        control: bits & 4 != 0,
    }
}

/// Returns the key of a code point.
fn code_key(code: u32) -> Key {
    match code {
        9 => Key::Tab,
        13 | 57414 => Key::Enter,
        27 => Key::Escape,
        8 | 127 => Key::Backspace,
        // Keys without a character, in the area for private use.
        57344..=63743 => Key::Other,
        code => char::from_u32(code)
            .filter(|c| !c.is_control())
            .map_or(Key::Other, |c| Key::Char(c.to_ascii_lowercase())),
    }
}

/// Returns the key of a sequence that ends in a letter.
fn final_key(last: u8) -> Key {
    match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'F' => Key::End,
        b'H' => Key::Home,
        b'M' => Key::Enter,
        _ => Key::Other,
    }
}

/// Returns the key of a sequence that ends in `~`.
fn number_key(number: u32) -> Key {
    match number {
        1 | 7 => Key::Home,
        3 => Key::Delete,
        4 | 8 => Key::End,
        5 => Key::PageUp,
        6 => Key::PageDown,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(key: Key, shift: bool, alt: bool, control: bool) -> TerminalInput {
        let modifiers = Modifiers {
            shift,
            alt,
            control,
        };
        TerminalInput::Key(KeyPress { key, modifiers })
    }

    fn plain(key: Key) -> TerminalInput {
        press(key, false, false, false)
    }

    /// Checks bytes whole and cut at every place.
    fn check(bytes: &[u8], expected: &[TerminalInput]) {
        for cut in 0..=bytes.len() {
            let mut decoder = KeyDecoder::default();
            let (head, tail) = bytes.split_at(cut);
            let mut found = decoder.push(head);
            found.extend(decoder.push(tail));
            assert_eq!(found, expected, "{bytes:?} cut at {cut}");
            assert!(!decoder.is_waiting(), "{bytes:?}");
        }
    }

    #[test]
    fn keys_of_both_encodings() {
        check(
            "aé日🎉".as_bytes(),
            &['a', 'é', '日', '🎉'].map(|c| plain(Key::Char(c))),
        );
        check(
            b"\r\t\x7f",
            &[plain(Key::Enter), plain(Key::Tab), plain(Key::Backspace)],
        );
        check(
            b"\x03\x1d",
            &[
                press(Key::Char('c'), false, false, true),
                press(Key::Char(']'), false, false, true),
            ],
        );
        check(b"\n", &[press(Key::Char('j'), false, false, true)]);
        check(
            b"\x1b[A\x1bOB\x1b[1;5C",
            &[
                plain(Key::Up),
                plain(Key::Down),
                press(Key::Right, false, false, true),
            ],
        );
        check(
            b"\x1b[3~\x1b[Z",
            &[plain(Key::Delete), press(Key::Tab, true, false, false)],
        );
        check(
            b"\x1b[13;2u\x1b[27;2;13~",
            &[
                press(Key::Enter, true, false, false),
                press(Key::Enter, true, false, false),
            ],
        );
        check(
            b"\x1b[99;5u\x1b[27u",
            &[
                press(Key::Char('c'), false, false, true),
                plain(Key::Escape),
            ],
        );
        check(
            b"\x1b\r\x1bb",
            &[
                press(Key::Enter, false, true, false),
                press(Key::Char('b'), false, true, false),
            ],
        );
        check(b"\x1b[97;1:3ua", &[plain(Key::Char('a'))]);
        check(
            b"\x1b[I\x1b[O",
            &[TerminalInput::Focus(true), TerminalInput::Focus(false)],
        );
    }

    #[test]
    fn a_paste_is_one_text() {
        let paste = TerminalInput::Paste("a\nb\x1b[Ac\n日".into());
        check(
            "\x1b[200~a\r\nb\x1b[Ac\r日\x1b[201~x".as_bytes(),
            &[paste, plain(Key::Char('x'))],
        );
    }

    #[test]
    fn an_escape_is_a_key_after_a_pause() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.pause(), [plain(Key::Escape)]);
        assert!(!decoder.is_waiting());
        assert_eq!(decoder.push(b"\x1b\x1b"), [plain(Key::Escape)]);
        assert_eq!(decoder.pause(), [plain(Key::Escape)]);
    }

    #[test]
    fn hostile_bytes_end() {
        let mut decoder = KeyDecoder::default();
        for byte in 0..=u8::MAX {
            decoder.push(&[byte; 100]);
            decoder.push(b"\x1b[");
            decoder.push(&[byte; 100]);
        }
        decoder.push(b"\x1b[201~");
        decoder.pause();
        let long = [b"\x1b[200~".as_slice(), &[b'x'; 100], b"\x1b[201~"].concat();
        assert_eq!(decoder.push(&long).len(), 1);
    }
}
