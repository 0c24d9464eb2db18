//! Separates reasoning that a local model writes as `<think>` into its text.
//!
//! Only a thought before the first text of the answer counts: later the tag is text about thoughts.

use crate::answer::ModelEvent;

/// Splitter of a text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct ThoughtSplitter {
    state: State,
    /// Text that may be the start of a tag, or white space around one.
    held: String,
    /// Length of the white space at the start of an answer, which is not read again.
    blank: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Start,
    Thought,
    /// After a thought, where white space is left out.
    AfterThought,
    Text,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl ThoughtSplitter {
    /// Reads a piece, and adds the events of it.
    pub(crate) fn feed(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        self.held.push_str(piece);
        loop {
            let before = self.state;
            match self.state {
                State::Start => self.start(),
                State::Thought => self.thought(events),
                State::AfterThought => self.after_thought(),
                State::Text => push(&mut self.held, ModelEvent::Text, events),
            }
            if self.state == before {
                return;
            }
        }
    }

    /// Ends the text, and adds the event of what was held back.
    pub(crate) fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        match self.state {
            State::Thought => push(&mut self.held, ModelEvent::Reasoning, events),
            State::Start | State::Text => push(&mut self.held, ModelEvent::Text, events),
            State::AfterThought => self.held.clear(),
        }
    }

    fn start(&mut self) {
        let text = self.held.get(self.blank..).unwrap_or_default();
        let text = text.trim_start();
        self.blank = self.held.len() - text.len();
        if let Some(rest) = text.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            self.state = State::Thought;
        } else if !OPEN.starts_with(text) {
            self.state = State::Text;
        }
    }

    fn thought(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((thought, rest)) = self.held.split_once(CLOSE) {
            let (mut thought, rest) = (thought.to_owned(), rest.to_owned());
            push(&mut thought, ModelEvent::Reasoning, events);
            self.held = rest;
            self.state = State::AfterThought;
            return;
        }
        let is_start = |length: &usize| self.held.ends_with(&CLOSE[..*length]);
        let kept = (1..CLOSE.len()).rev().find(is_start).unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        push(&mut self.held, ModelEvent::Reasoning, events);
        self.held = rest;
    }

    fn after_thought(&mut self) {
        let text = self.held.trim_start().to_owned();
        if !text.is_empty() {
            self.state = State::Text;
        }
        self.held = text;
    }
}

/// Takes a text that is not empty as an event.
fn push(text: &mut String, event: fn(String) -> ModelEvent, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(event(std::mem::take(text)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};

    use super::*;

    #[track_caller]
    fn check(text: &str, thought: &str, answer: &str) {
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (mut splitter, mut events) = (ThoughtSplitter::default(), Vec::new());
            let (start, end) = text.split_at(cut);
            splitter.feed(start, &mut events);
            splitter.feed(end, &mut events);
            splitter.finish(&mut events);
            let (mut thoughts, mut texts) = (String::new(), String::new());
            for event in events {
                match event {
                    ModelEvent::Text(text) => texts.push_str(&text),
                    ModelEvent::Reasoning(text) => thoughts.push_str(&text),
                    other => unreachable!("{other:?}"),
                }
            }
            assert_eq!((&*thoughts, &*texts), (thought, answer), "cut at {cut}");
        }
    }

    #[test]
    fn a_thought_before_the_answer_is_reasoning() {
        check("<think>a b</think>\n\nyes", "a b", "yes");
        check(
            "\n <think>\u{20ac}</thin</think>yes </think>",
            "\u{20ac}</thin",
            "yes </think>",
        );
        check("<think>never ends </th", "never ends </th", "");
        check("<think></think> ", "", "");
    }

    #[test]
    fn a_tag_in_the_answer_is_text() {
        check("yes <think>a</think>", "", "yes <think>a</think>");
        check("<think", "", "<think");
        check("<thinking>a", "", "<thinking>a");
        check("  yes", "", "  yes");
        check(
            "<think>a</think>b<think>c</think>",
            "a",
            "b<think>c</think>",
        );
    }

    /// Texts without an end that the splitter could search again and again: start, unit.
    const FAMILIES: [(&str, &str); 6] = [
        ("", " "),
        ("", "\n\t"),
        ("<think>", " "),
        ("<think>", "</thin"),
        ("<think>", "<think>"),
        ("<think>a</think>", " "),
    ];
    /// Largest ratio of the times of a doubled and a single text.
    const MOST: f64 = 2.2;
    /// Measurements of a ratio before it is believed.
    const ATTEMPTS: usize = 12;

    fn used() -> f64 {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        Duration::from(time).as_secs_f64()
    }

    fn time(text: &str) -> f64 {
        let start = used();
        let (mut splitter, mut events) = (ThoughtSplitter::default(), Vec::new());
        for piece in text.as_bytes().chunks(1_000) {
            splitter.feed(std::str::from_utf8(piece).unwrap(), &mut events);
        }
        splitter.finish(&mut events);
        used() - start
    }

    /// Returns the least ratio of the times for a doubled and a single text.
    fn ratio((start, unit): (&str, &str)) -> f64 {
        let text = |length: usize| [start, &unit.repeat(length / unit.len())].concat();
        let mut length = 50_000;
        while time(&text(length)) < 4e-3 {
            length *= 2;
        }
        let (one, two) = (text(length), text(2 * length));
        let (mut times, mut long, mut ratio) = (Vec::new(), f64::MAX, f64::MAX);
        for _ in 0..ATTEMPTS {
            times.push(time(&one));
            times.sort_by(f64::total_cmp);
            long = long.min(time(&two));
            ratio = long / times[times.len() / 2];
            if ratio <= MOST {
                break;
            }
        }
        ratio
    }

    #[test]
    fn time_is_linear() {
        for family in FAMILIES {
            let ratio = ratio(family);
            assert!(ratio <= MOST, "{family:?}: {ratio}");
        }
    }
}
