//! One entry of a TODO file, which is one line.
//!
//! ```text
//! - [ ] [Created](2026-02-03 08:30), [ChatID](tg:-1001) | Call [John](tg:1001)
//! - [x] [Created](2026-02-03 08:30), [Done](2026-02-04 18:00) | Pay the rent
//! ```
//!
//! Times are minutes in UTC. A line of another form is no entry.

use jiff::Timestamp;
use jiff::civil::{Date, Time};

/// Text between the facts about an entry and its content.
const SEPARATOR: &str = " | ";

/// Entry of a TODO file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoEntry {
    /// Time of its creation, as `YYYY-MM-DD HH:MM`.
    pub created_at: String,
    /// Time of its end, in the same form; nothing while it is open.
    pub done_at: Option<String>,
    /// Chat it belongs to, as `tg:NUMBER`.
    pub chat_id: Option<String>,
    /// Its text, which is one line.
    pub content: String,
}

impl TodoEntry {
    /// Reads a line without its end; nothing when it is no entry.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end();
        let (is_done, rest) = match line.split_at_checked(6)? {
            ("- [ ] ", rest) => (false, rest),
            ("- [x] " | "- [X] ", rest) => (true, rest),
            _ => return None,
        };
        let (facts, content) = rest.split_once(SEPARATOR)?;
        let mut entry = Self {
            created_at: String::new(),
            done_at: None,
            chat_id: None,
            content: content.trim().to_owned(),
        };
        for fact in facts.split(',') {
            let (key, value) = fact.trim().strip_prefix('[')?.split_once("](")?;
            let value = value.strip_suffix(')')?;
            match key {
                "Created" if entry.created_at.is_empty() && is_minute(value) => {
                    entry.created_at = value.to_owned();
                }
                "Done" if is_done && entry.done_at.is_none() && is_minute(value) => {
                    entry.done_at = Some(value.to_owned());
                }
                "ChatID" if entry.chat_id.is_none() && is_chat_id(value) => {
                    entry.chat_id = Some(value.to_owned());
                }
                _ => return None,
            }
        }
        let is_whole = !entry.created_at.is_empty() && !entry.content.is_empty();
        (is_whole && is_done == entry.done_at.is_some()).then_some(entry)
    }

    /// Returns the entry as a line without its end.
    #[must_use]
    pub fn line(&self) -> String {
        let mark = if self.done_at.is_some() { 'x' } else { ' ' };
        let mut line = format!("- [{mark}] [Created]({})", self.created_at);
        if let Some(done_at) = &self.done_at {
            line.push_str(&format!(", [Done]({done_at})"));
        }
        if let Some(chat_id) = &self.chat_id {
            line.push_str(&format!(", [ChatID]({chat_id})"));
        }
        line.push_str(SEPARATOR);
        line.push_str(&self.content);
        line
    }
}

/// Returns a time in the form of an entry.
#[must_use]
pub fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Returns a text as one line: runs of white space and control characters become one blank.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns true for the id of a chat: `tg:` and a number that is not zero.
#[must_use]
pub fn is_chat_id(text: &str) -> bool {
    let number = text
        .strip_prefix("tg:")
        .filter(|digits| !digits.starts_with('+'));
    number.is_some_and(|digits| digits.parse().is_ok_and(|number: i64| number != 0))
}

/// Returns true for `YYYY-MM-DD HH:MM`.
fn is_minute(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| -> Option<i16> {
        let digits = text.get(range)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    };
    let small = |range| number(range).and_then(|value| i8::try_from(value).ok());
    let signs = [4, 7, 10, 13].map(|at| text.as_bytes().get(at).copied());
    let is_time = || {
        let date = Date::new(number(0..4)?, small(5..7)?, small(8..10)?).ok()?;
        let time = Time::new(small(11..13)?, small(14..16)?, 0, 0).ok()?;
        Some((date, time))
    };
    text.len() == 16 && signs == [b'-', b'-', b' ', b':'].map(Some) && is_time().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str) {
        let entry = TodoEntry::parse(line);
        assert_eq!(entry.map(|entry| entry.line()).as_deref(), Some(line));
    }

    #[test]
    fn entries_are_written_as_they_were_read() {
        check("- [ ] [Created](2026-02-03 08:30) | Pay the rent");
        check("- [ ] [Created](2026-02-03 08:30), [ChatID](tg:-1001) | a | b, [c](tg:1)");
        check("- [x] [Created](2026-02-03 08:30), [Done](2026-02-04 18:00) | 买牛奶");
        check(
            "- [x] [Created](2026-02-03 08:30), [Done](2026-02-04 18:00), [ChatID](tg:7) | <!-- x",
        );
    }

    #[test]
    fn other_lines_are_no_entries() {
        for line in [
            "",
            "- [ ]",
            "- [ ] Pay the rent",
            "- [ ] | x",
            "- [ ] [Created](2026-02-03 08:30) |",
            "- [ ] [Created](2026-02-03 08:30) | ",
            "- [ ] [Created](2026-02-30 08:30) | no such day",
            "- [ ] [Created](2026-02-03 24:00) | no such hour",
            "- [ ] [Created](2026-2-3 8:30) | x",
            "- [ ] [Created](+026-02-03 08:30) | x",
            "- [ ] [Created](2026-02-03 08:30), [Created](2026-02-03 08:30) | twice",
            "- [ ] [Created](2026-02-03 08:30), [Done](2026-02-03 08:30) | done and open",
            "- [x] [Created](2026-02-03 08:30) | open and done",
            "- [ ] [Created](2026-02-03 08:30), [ChatID](tg:0) | x",
            "- [ ] [Created](2026-02-03 08:30), [Colour](red) | x",
            "- [ ] [ChatID](tg:1) | x",
            "* [ ] [Created](2026-02-03 08:30) | x",
            "  - [ ] [Created](2026-02-03 08:30) | x",
        ] {
            assert_eq!(TodoEntry::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_chat_is_a_number_of_telegram() {
        for (text, expected) in [
            ("tg:1", true),
            ("tg:-1001234567890", true),
            ("tg:0", false),
            ("tg:+1", false),
            ("tg:", false),
            ("tg:@john", false),
            ("tg:9223372036854775808", false),
            ("1", false),
            ("TG:1", false),
        ] {
            assert_eq!(is_chat_id(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31m \u{2028}c\n"), "a b [31m c");
    }
}
