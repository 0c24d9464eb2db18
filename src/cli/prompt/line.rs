//! A value while it is typed.

use zeroize::{Zeroize, Zeroizing};

use super::keys::Key;
use crate::limits;
use crate::secret::SecretValue;

/// Room for a value and one more character: what is too long stays so.
const ROOM: usize = limits::MAX_SECRET_BYTES + 4;

/// Result of one key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// From now on line breaks belong to the value.
    SeveralLines,
    Complete,
    Declined,
}

/// A value while it is typed.
pub(super) struct Line {
    typed: Zeroizing<String>,
    /// Number of characters behind those that have room.
    lost: usize,
    has_lines: bool,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            // A reallocation would leave a copy behind.
            typed: Zeroizing::new(String::with_capacity(ROOM)),
            lost: 0,
            has_lines: false,
        }
    }

    /// Returns the value. One that is too long is not all of it.
    pub(super) fn into_value(mut self) -> SecretValue {
        SecretValue::new(std::mem::take(&mut *self.typed))
    }

    /// Takes one key; `has_more` says that the next one is there already.
    pub(super) fn take(&mut self, key: Key, has_more: bool) -> Step {
        match key {
            Key::Paste(text) => return self.paste(&text),
            Key::Escape => return Step::Declined,
            // Nobody types so fast: a line break with more behind it is a pasted one.
            Key::Enter if self.has_lines || has_more => {
                self.add(['\n']);
                return self.several_lines();
            }
            Key::Enter | Key::Control('d') if self.typed.is_empty() => return Step::Declined,
            Key::Enter | Key::Control('d') => return Step::Complete,
            Key::Char(c) => self.add([c]),
            Key::Tab => self.add(['\t']),
            Key::Control('u') => {
                self.typed.zeroize();
                self.lost = 0;
            }
            Key::Backspace if self.lost > 0 => self.lost -= 1,
            Key::Backspace => drop(self.typed.pop()),
            Key::Control(_) | Key::Other => {}
        }
        Step::More
    }

    /// Takes pasted text. The line break after a single line belongs to whoever copied it, those of several lines to
    /// the value.
    fn paste(&mut self, text: &str) -> Step {
        let breaks = unified(text).filter(|c| *c == '\n').count();
        let ends = text.ends_with(['\r', '\n']);
        if breaks <= usize::from(ends) && !self.has_lines {
            self.add(unified(text).take_while(|c| *c != '\n'));
            return Step::More;
        }
        self.add(unified(text));
        self.several_lines()
    }

    fn several_lines(&mut self) -> Step {
        match std::mem::replace(&mut self.has_lines, true) {
            true => Step::More,
            false => Step::SeveralLines,
        }
    }

    fn add(&mut self, text: impl IntoIterator<Item = char>) {
        for c in text {
            if self.lost == 0 && self.typed.len() + c.len_utf8() <= ROOM {
                self.typed.push(c);
            } else {
                self.lost += 1;
            }
        }
    }
}

/// Returns text with one character for each of its line breaks, without a copy that would stay in memory.
fn unified(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || match chars.next()? {
        '\r' => {
            chars.next_if_eq(&'\n');
            Some('\n')
        }
        c => Some(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASTE: &str = "paste:";

    /// Gives the words as keys, or as pasted text; returns the value.
    fn typed(words: &[&str]) -> Option<String> {
        let mut line = Line::new();
        for word in words {
            let keys: Vec<Key> = match word.strip_prefix(PASTE) {
                Some(text) => vec![Key::Paste(Zeroizing::new(text.into()))],
                None => word.chars().map(key).collect(),
            };
            for key in keys {
                match line.take(key, false) {
                    Step::More | Step::SeveralLines => {}
                    Step::Complete => return Some(line.into_value().expose().to_owned()),
                    Step::Declined => return None,
                }
            }
        }
        panic!("{words:?} is no answer");
    }

    fn key(c: char) -> Key {
        match c {
            '\n' => Key::Enter,
            '\x7f' => Key::Backspace,
            '\x1b' => Key::Escape,
            '\x04' => Key::Control('d'),
            '\x15' => Key::Control('u'),
            c => Key::Char(c),
        }
    }

    #[test]
    fn keys_make_a_value() {
        for (words, expected) in [
            (&["abx\x7fc123456\n"][..], Some("abc123456")),
            (&["lost\x15", "value-1\n"], Some("value-1")),
            (&["value-1\x04"], Some("value-1")),
            (&["\x1b"], None),
            (&["\n"], None),
            (&["\x04"], None),
            (&["paste:token-1\n", "\n"], Some("token-1")),
            (&["paste:a 1\r\nb 2\n", "\x04"], Some("a 1\nb 2\n")),
            (&["paste:a 1\rb 2", "\n", "c 3\x04"], Some("a 1\nb 2\nc 3")),
        ] {
            assert_eq!(typed(words).as_deref(), expected, "{words:?}");
        }
    }

    #[test]
    fn lines_pasted_as_keys_are_one_value() {
        let mut line = Line::new();
        for c in "begin\nsave\n".chars() {
            assert!(!matches!(line.take(key(c), true), Step::Complete));
        }
        assert_eq!(line.take(key('\x04'), false), Step::Complete);
        assert_eq!(line.into_value().expose(), "begin\nsave\n");
    }

    #[test]
    fn what_is_too_long_stays_so() {
        let most = "x".repeat(limits::MAX_SECRET_BYTES);
        let more = format!("{most}yyyyyyyy");
        let length = |words: &[&str]| typed(words).unwrap().len();
        assert_eq!(length(&[&most, "\n"]), limits::MAX_SECRET_BYTES);
        assert!(length(&[&more, "\n"]) > limits::MAX_SECRET_BYTES);
        let pasted = format!("{PASTE}{more}");
        assert!(length(&[&pasted, "\n"]) > limits::MAX_SECRET_BYTES);
        // What is taken back is what came last.
        let back = "\x7f".repeat(8);
        assert_eq!(length(&[&more, &back, "\n"]), limits::MAX_SECRET_BYTES);
    }
}
