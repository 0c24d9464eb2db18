//! Keys to an answer: first the value, then how long it is wanted.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use zeroize::{Zeroize, Zeroizing};

use super::Next;
use crate::limits;
use crate::secret::SecretValue;
use crate::tool::context::{Lifetime, Reply};
use crate::vault::visible_bytes;

/// An answer while it is given.
pub(super) struct Answer {
    typed: Zeroizing<String>,
    has_lines: bool,
    is_complete: bool,
    store: Option<&'static str>,
    /// Whether the user says how long the value is wanted.
    has_choice: bool,
    /// How many bytes it must have, white space not counted.
    least_bytes: usize,
}

impl Answer {
    /// Starts an answer; `store` could keep the value, which must have that many bytes.
    pub(super) fn new(store: Option<&'static str>, least_bytes: usize) -> Self {
        Self {
            typed: Zeroizing::new(String::with_capacity(limits::MAX_SECRET_BYTES)),
            has_lines: false,
            is_complete: false,
            store,
            has_choice: true,
            least_bytes,
        }
    }

    /// Starts an answer that is complete with its value.
    pub(super) fn plain() -> Self {
        Self {
            has_choice: false,
            ..Self::new(None, 0)
        }
    }

    /// Returns what is asked beside the question itself.
    pub(super) fn prompt(&self) -> String {
        if self.is_complete {
            self.choice()
        } else {
            String::new()
        }
    }

    /// Takes one event; `has_more` says that the next one is there already.
    pub(super) fn take(&mut self, event: Event, has_more: bool) -> Next<Reply> {
        match event {
            Event::Paste(text) => {
                let text = Zeroizing::new(text);
                if self.is_complete {
                    return Next::Keys;
                }
                self.paste(&text)
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if self.is_complete {
                    self.choose(key)
                } else {
                    self.key(key, has_more)
                }
            }
            _ => Next::Keys,
        }
    }

    /// Takes pasted text. The line break after a single line belongs to whoever copied it, those of
    /// several lines to the value.
    fn paste(&mut self, text: &str) -> Next<Reply> {
        let text = Zeroizing::new(text.replace("\r\n", "\n").replace('\r', "\n"));
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if !line.contains('\n') && !self.has_lines {
            self.add(line);
            return Next::Keys;
        }
        self.add(&text);
        self.lines()
    }

    fn lines(&mut self) -> Next<Reply> {
        if std::mem::replace(&mut self.has_lines, true) {
            return Next::Keys;
        }
        Next::Show("\n  several lines; Ctrl+D ends the value: ".into())
    }

    fn key(&mut self, key: KeyEvent, has_more: bool) -> Next<Reply> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Next::Done(Reply::Declined),
            KeyCode::Char('c') if is_control => return Next::Done(Reply::Declined),
            KeyCode::Char('d') if is_control => return self.complete(),
            KeyCode::Enter => return self.line_break(has_more),
            KeyCode::Char('j' | 'm') if is_control => return self.line_break(has_more),
            KeyCode::Char('u') if is_control => self.typed.clear(),
            KeyCode::Char(c) if !is_control => self.add(c.encode_utf8(&mut [0; 4])),
            KeyCode::Tab => self.add("\t"),
            KeyCode::Backspace => {
                self.typed.pop();
            }
            _ => {}
        }
        Next::Keys
    }

    fn line_break(&mut self, has_more: bool) -> Next<Reply> {
        if self.has_lines || has_more {
            self.add("\n");
            return self.lines();
        }
        self.complete()
    }

    /// Ends the value and asks how long it is wanted.
    fn complete(&mut self) -> Next<Reply> {
        if self.typed.is_empty() {
            return Next::Done(Reply::Declined);
        }
        if !self.has_choice {
            let value = SecretValue::new(std::mem::take(&mut *self.typed));
            return Next::Done(Reply::Value(value, Lifetime::Session));
        }
        if visible_bytes(&self.typed) < self.least_bytes {
            return self.again();
        }
        self.is_complete = true;
        Next::Ask(format!("{}{}", self.doubts(), self.choice()))
    }

    /// Refuses what is too short to be masked and starts anew.
    fn again(&mut self) -> Next<Reply> {
        self.typed.zeroize();
        self.has_lines = false;
        let short = match self.least_bytes > limits::MIN_SECRET_BYTES {
            true => format!(" ({} with --allow-short)", limits::MIN_SECRET_BYTES),
            false => String::new(),
        };
        Next::Ask(format!(
            "\n  not taken: a value has at least {} bytes{short} that are not white space; another one: ",
            self.least_bytes
        ))
    }

    fn choice(&self) -> String {
        let save = self
            .store
            .map_or_else(String::new, |store| format!(", sa[v]e in {store}"));
        format!("\n  keep it: [u]se once, [s]ession (Enter){save}, [d]eny: ")
    }

    /// Says what looks like a mistake.
    fn doubts(&self) -> String {
        let value = self.typed.as_str();
        let doubts = [
            (
                value.trim() != value && !self.has_lines,
                "it starts or ends with white space",
            ),
            (
                value.starts_with("Bearer "),
                "it starts with `Bearer `, which belongs to a header",
            ),
            (value.contains("$KARYI{"), "it looks like a placeholder"),
            (
                visible_bytes(value) < limits::GOOD_SECRET_BYTES,
                "it is short: only whole words of it are masked",
            ),
        ];
        let shown = doubts.iter().filter(|(is_so, _)| *is_so);
        shown.map(|(_, text)| format!("\n  note: {text}")).collect()
    }

    fn choose(&mut self, key: KeyEvent) -> Next<Reply> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let lifetime = match key.code {
            KeyCode::Esc => return Next::Done(Reply::Declined),
            KeyCode::Char('c' | 'd') if is_control => return Next::Done(Reply::Declined),
            KeyCode::Char('j' | 'm') if is_control => Lifetime::Session,
            KeyCode::Char('d' | 'D') => return Next::Done(Reply::Declined),
            KeyCode::Char('u' | 'U') => Lifetime::Once,
            KeyCode::Enter | KeyCode::Char('s' | 'S') => Lifetime::Session,
            KeyCode::Char('v' | 'V') if self.store.is_some() => Lifetime::Saved,
            _ => return Next::Keys,
        };
        let value = SecretValue::new(std::mem::take(&mut *self.typed));
        Next::Done(Reply::Value(value, lifetime))
    }

    /// Adds text as far as there is room: a reallocation would leave a copy behind.
    fn add(&mut self, text: &str) {
        if self.typed.len() + text.len() <= self.typed.capacity() {
            self.typed.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASTE: &str = "paste:";

    /// Gives the words as keys, or as pasted text; returns what came of it.
    fn check(words: &[&str], store: Option<&'static str>, expected: &str) {
        let mut answer = Answer::new(store, limits::MIN_SECRET_BYTES);
        let mut shown = String::new();
        for word in words {
            let events: Vec<Event> = match word.strip_prefix(PASTE) {
                Some(text) => vec![Event::Paste(text.into())],
                None => word.chars().map(key).collect(),
            };
            for event in events {
                match answer.take(event, false) {
                    Next::Keys => {}
                    Next::Show(text) | Next::Ask(text) => shown.push_str(&text),
                    Next::Done(reply) => shown = describe(&reply),
                }
            }
        }
        assert!(
            shown.contains(expected),
            "{words:?}: {shown:?}, expected {expected:?}"
        );
    }

    fn key(c: char) -> Event {
        let (code, modifiers) = match c {
            '\n' => (KeyCode::Enter, KeyModifiers::NONE),
            '\x7f' => (KeyCode::Backspace, KeyModifiers::NONE),
            '\x1b' => (KeyCode::Esc, KeyModifiers::NONE),
            '\x03' => (KeyCode::Char('c'), KeyModifiers::CONTROL),
            '\x04' => (KeyCode::Char('d'), KeyModifiers::CONTROL),
            '\x15' => (KeyCode::Char('u'), KeyModifiers::CONTROL),
            c => (KeyCode::Char(c), KeyModifiers::NONE),
        };
        Event::Key(KeyEvent::new(code, modifiers))
    }

    fn describe(reply: &Reply) -> String {
        match reply {
            Reply::Value(value, lifetime) => format!("{:?} {lifetime:?}", value.expose()),
            Reply::Declined => "declined".into(),
            Reply::Unavailable => "unavailable".into(),
            Reply::Timeout => "timeout".into(),
        }
    }

    #[test]
    fn keys_make_the_value_and_its_lifetime() {
        check(&["abx\x7fc123456\n", "\n"], None, "\"abc123456\" Session");
        check(&["lost\x15", "value-1\n", "u"], None, "\"value-1\" Once");
        check(&["value-1\n", "s"], None, "\"value-1\" Session");
        check(&["value-1\n", "v"], Some("keyring"), "\"value-1\" Saved");
        check(&["value-1\x04", "d"], None, "declined");
        for end in ["\x1b", "\x03", "\n", "\x04"] {
            check(&[end], None, "declined");
        }
        check(&["value-1\n", "\x1b"], None, "declined");
    }

    #[test]
    fn nothing_is_saved_where_there_is_no_store() {
        check(&["value-1\n", "v"], None, "[s]ession (Enter), [d]eny: ");
        check(
            &["value-1\n"],
            Some("the age file"),
            "sa[v]e in the age file",
        );
    }

    #[test]
    fn pasted_lines_stay_as_they_are() {
        check(&["paste:token-1\n", "\n", "s"], None, "\"token-1\" Session");
        check(
            &["paste:a 1\r\nb 2\n", "\x04", "s"],
            None,
            "\"a 1\\nb 2\\n\" Session",
        );
        check(
            &["paste:a 1\rb 2", "\n", "c 3\x04", "s"],
            None,
            "\"a 1\\nb 2\\nc 3\" Session",
        );
        check(&["paste:a\nb"], None, "several lines");
        check(
            &["value-1\n", "paste:vvv", "\n"],
            Some("x"),
            "\"value-1\" Session",
        );
    }

    #[test]
    fn lines_pasted_as_keys_are_no_choices() {
        let mut answer = Answer::new(Some("x"), limits::MIN_SECRET_BYTES);
        for c in "begin\nsave\n".chars() {
            assert!(!matches!(answer.take(key(c), true), Next::Done(_)));
        }
        answer.take(key('\x04'), false);
        let Next::Done(reply) = answer.take(key('s'), false) else {
            panic!("no reply");
        };
        assert_eq!(describe(&reply), "\"begin\\nsave\\n\" Session");
    }

    #[test]
    fn what_is_too_short_is_typed_again() {
        check(&["abc\n"], None, "not taken: a value has at least 4 bytes");
        check(&["        \n"], None, "not taken");
        check(&["paste:a\n \n", "\x04"], None, "not taken");
        check(&["   \n", "value-1\n", "\n"], None, "\"value-1\" Session");
        check(
            &["paste: \n\n", "\x04", "value-1\n", "\n"],
            None,
            "\"value-1\" Session",
        );
    }

    #[test]
    fn likely_mistakes_are_told() {
        check(&[" value-123\n"], None, "white space");
        check(&["Bearer abcdefgh\n"], None, "belongs to a header");
        check(&["$KARYI{TOKEN}\n"], None, "placeholder");
        check(&["pw1!z\n"], None, "short");
    }
}
