//! Keys to an answer: first the value, then how long it is wanted.

use zeroize::{Zeroize, Zeroizing};

use super::Next;
use super::keys::Key;
use crate::limits;
use crate::secret::SecretValue;
use crate::tool::context::{Lifetime, Reply};
use crate::vault::visible_bytes;

/// Room for a value and one more character: what is too long stays so.
const ROOM: usize = limits::MAX_SECRET_BYTES + 4;

/// An answer while it is given.
pub(super) struct Answer {
    typed: Zeroizing<String>,
    /// How many characters came behind those that have room.
    lost: usize,
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
            typed: Zeroizing::new(String::with_capacity(ROOM)),
            lost: 0,
            has_lines: false,
            is_complete: false,
            store,
            has_choice: true,
            least_bytes,
        }
    }

    /// Starts an answer that is complete with its value. One that is too long is longer than any that
    /// can be used, and not all of it.
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

    /// Takes one key; `has_more` says that the next one is there already.
    pub(super) fn take(&mut self, key: Key, has_more: bool) -> Next<Reply> {
        match key {
            key if self.is_complete => self.choose(&key),
            Key::Paste(text) => self.paste(&text),
            Key::Escape | Key::Control('c') => Next::Done(Reply::Declined),
            Key::Control('d') => self.complete(),
            Key::Enter => self.line_break(has_more),
            key => {
                self.edit(&key);
                Next::Keys
            }
        }
    }

    /// Takes pasted text. The line break after a single line belongs to whoever copied it, those of
    /// several lines to the value.
    fn paste(&mut self, text: &str) -> Next<Reply> {
        let breaks = unified(text).filter(|c| *c == '\n').count();
        let ends = text.ends_with(['\r', '\n']);
        if breaks <= usize::from(ends) && !self.has_lines {
            self.add(unified(text).take_while(|c| *c != '\n'));
            return Next::Keys;
        }
        self.add(unified(text));
        self.lines()
    }

    fn lines(&mut self) -> Next<Reply> {
        if std::mem::replace(&mut self.has_lines, true) {
            return Next::Keys;
        }
        Next::Show("\n  several lines; Ctrl+D ends the value: ".into())
    }

    fn edit(&mut self, key: &Key) {
        match key {
            Key::Char(c) => self.add([*c]),
            Key::Tab => self.add(['\t']),
            Key::Control('u') => self.clear(),
            Key::Backspace if self.lost > 0 => self.lost -= 1,
            Key::Backspace => {
                self.typed.pop();
            }
            _ => {}
        }
    }

    fn line_break(&mut self, has_more: bool) -> Next<Reply> {
        if self.has_lines || has_more {
            self.add(['\n']);
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
        if self.typed.len() > limits::MAX_SECRET_BYTES {
            let most = limits::MAX_SECRET_BYTES;
            return self.again(&format!("a value has at most {most} bytes"));
        }
        if visible_bytes(&self.typed) < self.least_bytes {
            return self.again(&self.too_short());
        }
        self.is_complete = true;
        Next::Ask(format!("{}{}", self.doubts(), self.choice()))
    }

    /// Refuses what cannot be used and starts anew.
    fn again(&mut self, why: &str) -> Next<Reply> {
        self.clear();
        self.has_lines = false;
        Next::Ask(format!("\n  not taken: {why}; another one: "))
    }

    fn too_short(&self) -> String {
        let short = match self.least_bytes > limits::MIN_SECRET_BYTES {
            true => format!(" ({} with --allow-short)", limits::MIN_SECRET_BYTES),
            false => String::new(),
        };
        let least = self.least_bytes;
        format!("a value has at least {least} bytes{short} that are not white space")
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

    fn choose(&mut self, key: &Key) -> Next<Reply> {
        let lifetime = match key {
            Key::Escape | Key::Control('c' | 'd') | Key::Char('d' | 'D') => {
                return Next::Done(Reply::Declined);
            }
            Key::Char('u' | 'U') => Lifetime::Once,
            Key::Enter | Key::Char('s' | 'S') => Lifetime::Session,
            Key::Char('v' | 'V') if self.store.is_some() => Lifetime::Saved,
            _ => return Next::Keys,
        };
        let value = SecretValue::new(std::mem::take(&mut *self.typed));
        Next::Done(Reply::Value(value, lifetime))
    }

    /// Adds text as far as there is room: a reallocation would leave a copy behind.
    fn add(&mut self, text: impl IntoIterator<Item = char>) {
        for c in text {
            if self.lost == 0 && self.typed.len() + c.len_utf8() <= ROOM {
                self.typed.push(c);
            } else {
                self.lost += 1;
            }
        }
    }

    fn clear(&mut self) {
        self.typed.zeroize();
        self.lost = 0;
    }
}

/// Returns text with one character for each of its line breaks. It makes no copy, which would stay in memory.
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

    /// Gives the words as keys, or as pasted text; returns what came of it.
    fn check(words: &[&str], store: Option<&'static str>, expected: &str) {
        let mut answer = Answer::new(store, limits::MIN_SECRET_BYTES);
        let mut shown = String::new();
        for word in words {
            let keys: Vec<Key> = match word.strip_prefix(PASTE) {
                Some(text) => vec![Key::Paste(Zeroizing::new(text.into()))],
                None => word.chars().map(key).collect(),
            };
            for key in keys {
                match answer.take(key, false) {
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

    fn key(c: char) -> Key {
        match c {
            '\n' => Key::Enter,
            '\x7f' => Key::Backspace,
            '\x1b' => Key::Escape,
            '\x03' => Key::Control('c'),
            '\x04' => Key::Control('d'),
            '\x15' => Key::Control('u'),
            c => Key::Char(c),
        }
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
    fn what_is_too_long_is_typed_again() {
        let most = "x".repeat(limits::MAX_SECRET_BYTES);
        let more = format!("{most}yyyyyyyy");
        let told = "not taken: a value has at most 61440 bytes; another one: ";
        let is_whole = format!("{most:?} Session");
        check(&[&most, "\n", "\n"], None, &is_whole);
        check(&[&more, "\n"], None, told);
        check(&[&format!("{PASTE}{more}"), "\n"], None, told);
        let kept = "\"value-1\" Session";
        check(&[&more, "\n", "value-1\n", "\n"], None, kept);
        check(&[&more, "\x15", "value-1\n", "\n"], None, kept);
        // What is taken back is what came last.
        check(&[&more, &"\x7f".repeat(8), "\n", "\n"], None, &is_whole);
    }

    #[test]
    fn likely_mistakes_are_told() {
        check(&[" value-123\n"], None, "white space");
        check(&["Bearer abcdefgh\n"], None, "belongs to a header");
        check(&["$KARYI{TOKEN}\n"], None, "placeholder");
        check(&["pw1!z\n"], None, "short");
    }
}
