//! Asks the user about calls: one screen for all calls of a block that need consent.
//!
//! The whole texts stand in the history above; the screen has the reasons and the keys. Keys count only after a pause, so
//! that a letter of a text that is being typed agrees to nothing.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::approval::{Approver, AskedPart, CallAnswer, CallQuestion};
use crate::tool::context::{ApprovalRequest, Boxed, Consent};
use karyi_core::limits;
use karyi_screen::input_box::InputBox;
use karyi_screen::keys::{Key, KeyPress};
use karyi_screen::safe_text::{safe_line, safe_question};
use karyi_screen::styled_line::{Line, Span, Style, wrap};
use karyi_screen::theme;

/// Questions on their way to the screen.
pub(super) struct Asked {
    questions: Vec<CallQuestion>,
    /// True when "no" may have a reason.
    takes_reason: bool,
    reply: oneshot::Sender<Option<Vec<CallAnswer>>>,
}

/// Passes questions to the screen.
#[derive(Clone)]
pub(super) struct ScreenApprover(pub(super) mpsc::Sender<Asked>);

impl ScreenApprover {
    /// Returns the answers; nothing when nobody answers.
    async fn ask(
        &self,
        questions: Vec<CallQuestion>,
        takes_reason: bool,
    ) -> Option<Vec<CallAnswer>> {
        let (reply, answers) = oneshot::channel();
        let asked = Asked {
            questions,
            takes_reason,
            reply,
        };
        self.0.send(asked).await.ok()?;
        answers.await.ok()?
    }

    /// Asks for consent to use a secret.
    pub(super) async fn consent(&self, request: &ApprovalRequest) -> Consent {
        let reason = "its policy wants your agreement, which holds for this session";
        let own = AskedPart::new(request.name.as_str(), reason);
        let facts = request.facts().into_iter();
        let facts = facts.map(|fact| AskedPart::new("note", fact));
        let question = CallQuestion {
            id: format!("with {}", request.name),
            tool: request.tool,
            title: request.tool.to_owned(),
            text: request.text.clone(),
            parts: std::iter::once(own).chain(facts).collect(),
            is_editable: false,
        };
        match self.ask(vec![question], false).await.as_deref() {
            Some([CallAnswer::Yes]) => Consent::Yes,
            Some(_) => Consent::No,
            None => Consent::Unavailable,
        }
    }
}

impl Approver for ScreenApprover {
    fn approve<'a>(&'a self, calls: &'a [CallQuestion]) -> Boxed<'a, Option<Vec<CallAnswer>>> {
        Box::pin(self.ask(calls.to_vec(), true))
    }
}

/// The screen that asks.
pub(super) struct ApprovalScreen {
    asked: Asked,
    answers: Vec<CallAnswer>,
    entry: Entry,
    /// Time from which on keys count.
    open_at: Instant,
    /// True while a text stands in the input: what is typed goes on with it.
    pub(super) has_draft: bool,
}

/// Text that is being typed for an answer.
enum Entry {
    None,
    Reason(InputBox),
    Edit(InputBox),
}

/// Result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalKey {
    /// It was taken.
    Taken,
    /// It belongs to the input below.
    ForInput,
    /// It interrupts the work.
    Interrupt,
}

impl ApprovalScreen {
    /// Opens the screen for questions.
    pub(super) fn new(asked: Asked, now: Instant) -> Self {
        Self {
            asked,
            answers: Vec::new(),
            entry: Entry::None,
            open_at: now + limits::APPROVAL_PAUSE,
            has_draft: false,
        }
    }

    /// Returns the texts of the calls, for the history.
    pub(super) fn texts(&self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for question in &self.asked.questions {
            let heading = format!("? {} {}", question.tool, question.id);
            let heading = safe_line(&heading).into_owned();
            lines.push(Line::from(Span::styled(heading, theme::WARNING)));
            for line in question.text.trim_end().lines() {
                let style = match (question.tool, line.as_bytes().first()) {
                    ("edit", Some(b'+')) => theme::GOOD,
                    ("edit", Some(b'-')) => theme::BAD,
                    ("edit", Some(b'@')) => theme::FAINT,
                    _ => Style::new(),
                };
                let text = format!("  {}", safe_question(line));
                lines.push(Line::from(Span::styled(text, style)));
            }
        }
        lines
    }

    /// Returns true when nobody waits for the answers any more.
    pub(super) fn is_over(&self) -> bool {
        self.asked.reply.is_closed() || self.answers.len() >= self.asked.questions.len()
    }

    /// Returns the time at which keys begin to count, if that is to come.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        (self.open_at > now).then_some(self.open_at)
    }

    /// Returns true while a key answers, and no text is typed.
    pub(super) fn is_choosing(&self) -> bool {
        matches!(self.entry, Entry::None)
    }

    /// Sends the answers.
    pub(super) fn finish(self) {
        let is_whole = self.answers.len() >= self.asked.questions.len();
        let answers = is_whole.then_some(self.answers);
        // Nobody may wait any more.
        let _ = self.asked.reply.send(answers);
    }

    /// Takes a key.
    pub(super) fn key(&mut self, press: KeyPress, now: Instant) -> ApprovalKey {
        if press.control_letter() == Some('c') {
            // A text that is being typed is given up first.
            return match std::mem::replace(&mut self.entry, Entry::None) {
                Entry::None => ApprovalKey::Interrupt,
                Entry::Reason(_) | Entry::Edit(_) => ApprovalKey::Taken,
            };
        }
        if now < self.open_at {
            self.open_at = now + limits::APPROVAL_PAUSE;
            return ApprovalKey::ForInput;
        }
        match std::mem::replace(&mut self.entry, Entry::None) {
            Entry::None => return self.choose(press),
            Entry::Reason(mut input) => match press.key {
                Key::Enter => self.answers.push(CallAnswer::No(input.take())),
                Key::Escape => {}
                _ => {
                    input.key(press);
                    self.entry = Entry::Reason(input);
                }
            },
            Entry::Edit(mut input) => match press.key {
                Key::Enter if press.modifiers.alt || press.modifiers.shift => {
                    input.break_line();
                    self.entry = Entry::Edit(input);
                }
                Key::Enter => self.answers.push(CallAnswer::Edited(input.take())),
                Key::Escape => {}
                _ => {
                    if press.control_letter() == Some('j') {
                        input.break_line();
                    } else {
                        input.key(press);
                    }
                    self.entry = Entry::Edit(input);
                }
            },
        }
        ApprovalKey::Taken
    }

    /// Takes a paste into the text that is being typed; returns false when none is.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        match &mut self.entry {
            Entry::None => return false,
            Entry::Reason(input) | Entry::Edit(input) => input.paste(text),
        }
        true
    }

    /// Takes an answer that was typed as a line: a key, or `n` with a reason. Returns false when it is none.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let count = self.answers.len();
        let (word, rest) = line
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((line.trim(), ""));
        match (word, rest.trim()) {
            ("n", reason) => self.answers.push(CallAnswer::No(reason.to_owned())),
            ("y" | "Y" | "a" | "w", "") => {
                for letter in word.chars() {
                    self.choose(KeyPress::plain(Key::Char(letter)));
                }
            }
            _ => {}
        }
        self.answers.len() > count
    }

    fn choose(&mut self, press: KeyPress) -> ApprovalKey {
        let Some(question) = self.question().cloned() else {
            return ApprovalKey::Taken;
        };
        match press.key {
            _ if !press.is_plain() => {}
            Key::Escape => return ApprovalKey::Interrupt,
            Key::Char('y') => self.answers.push(CallAnswer::Yes),
            Key::Char('Y') => {
                let rest = self.asked.questions.len() - self.answers.len();
                self.answers
                    .extend(std::iter::repeat_n(CallAnswer::Yes, rest));
            }
            Key::Char('n') if !self.asked.takes_reason => {
                self.answers.push(CallAnswer::No(String::new()));
            }
            Key::Char('n') => self.entry = Entry::Reason(InputBox::default()),
            Key::Char('a') => {
                if let Some(rules) = question.rules() {
                    self.answers.push(CallAnswer::Always(rules));
                }
            }
            Key::Char('w') => {
                if let Some(rule) = question.wider_rule() {
                    self.answers.push(CallAnswer::Always(vec![rule.to_owned()]));
                }
            }
            Key::Char('e') if question.is_editable => {
                let mut input = InputBox::default();
                input.set_text(&question.text);
                self.entry = Entry::Edit(input);
            }
            _ => {}
        }
        ApprovalKey::Taken
    }

    fn question(&self) -> Option<&CallQuestion> {
        self.asked.questions.get(self.answers.len())
    }

    /// Returns the lines of the screen, and the caret in them while a text is typed.
    pub(super) fn lines(
        &self,
        columns: usize,
        now: Instant,
    ) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let Some(question) = self.question() else {
            return (Vec::new(), None);
        };
        let (number, count) = (self.answers.len() + 1, self.asked.questions.len());
        let place = match count {
            1 => String::new(),
            _ => format!(" ({number} of {count})"),
        };
        let heading = format!("Run {} {}{place}?", question.tool, question.id);
        let mut lines = vec![Line::from(Span::styled(
            safe_line(&heading).into_owned(),
            theme::WARNING,
        ))];
        for fact in question.facts() {
            let text = Span::raw(format!("  {}", safe_question(&fact)));
            lines.extend(wrap(&[text], columns, &[], &[Span::raw("    ")]));
        }
        let entry = match &self.entry {
            Entry::None => None,
            Entry::Reason(input) => Some(("reason for the model, Enter sends:", input)),
            Entry::Edit(input) => Some(("the text that runs in its place, Enter runs it:", input)),
        };
        if let Some((words, input)) = entry {
            lines.push(Line::from(Span::styled(words, theme::FAINT)));
            let rows = input.rows(columns, limits::CHOICE_ROWS);
            let caret = (lines.len() + rows.caret.0, rows.caret.1);
            lines.extend(rows.lines);
            return (lines, Some(caret));
        }
        lines.extend(self.key_lines(columns, now));
        (lines, None)
    }

    /// Returns the keys that answer, the most important ones first; no lines while a text is typed.
    pub(super) fn key_lines(&self, columns: usize, now: Instant) -> Vec<Line<'static>> {
        let (Some(question), Entry::None) = (self.question(), &self.entry) else {
            return Vec::new();
        };
        let keys = match self.opens_at(now) {
            _ if self.has_draft => {
                "send your text with Enter, or clear it with Ctrl+U: then keys answer".to_owned()
            }
            Some(_) => "…".to_owned(),
            None => {
                let left = self.asked.questions.len() - self.answers.len();
                self.keys(question, left) + " · Esc interrupt"
            }
        };
        let keys = Span::styled(keys, theme::STRONG);
        wrap(&[keys], columns, &[], &[])
    }

    /// Returns the question for a terminal that only prints, which answers by lines.
    pub(super) fn plain_lines(&self, columns: usize, now: Instant) -> Vec<Line<'static>> {
        let Some(question) = self.question() else {
            return Vec::new();
        };
        let (mut lines, _) = self.lines(columns, now);
        lines.truncate(1 + question.facts().len());
        let question = CallQuestion {
            is_editable: false,
            ..question.clone()
        };
        let left = self.asked.questions.len() - self.answers.len();
        let keys = self.keys(&question, left) + " · q interrupt; Enter sends";
        lines.push(Line::from(keys));
        lines
    }

    /// Returns the keys that answer a question.
    fn keys(&self, question: &CallQuestion, left: usize) -> String {
        let mut keys = match self.asked.takes_reason {
            true => "y yes · n no, with a reason".to_owned(),
            false => "y yes · n no".to_owned(),
        };
        if left > 1 {
            keys.push_str(&format!(" · Y yes to all {left}"));
        }
        if let Some(rules) = question.rules() {
            let rules: Vec<String> = rules.iter().map(|rule| safe_question(rule)).collect();
            keys.push_str(&format!(" · a always here: {}", rules.join(", ")));
        }
        if let Some(rule) = question.wider_rule() {
            keys.push_str(&format!(" · w always here: {}", safe_question(rule)));
        }
        if question.is_editable {
            keys.push_str(" · e edit");
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_screen::styled_line::plain_text;

    fn question(id: &str) -> CallQuestion {
        CallQuestion {
            id: id.into(),
            tool: "command",
            title: "git push".into(),
            text: "git push\x1b[2J\n".into(),
            parts: vec![AskedPart {
                what: "git push".into(),
                reason: "it is not known to only read".into(),
                rule: Some("git push".into()),
                wider_rule: None,
            }],
            is_editable: true,
        }
    }

    fn screen(count: usize) -> (ApprovalScreen, oneshot::Receiver<Option<Vec<CallAnswer>>>) {
        let (reply, answers) = oneshot::channel();
        let questions = (0..count)
            .map(|number| question(&number.to_string()))
            .collect();
        let asked = Asked {
            questions,
            takes_reason: true,
            reply,
        };
        let screen = ApprovalScreen::new(asked, Instant::now());
        (screen, answers)
    }

    fn later() -> Instant {
        Instant::now() + 2 * limits::APPROVAL_PAUSE
    }

    fn typed(screen: &mut ApprovalScreen, text: &str) {
        for c in text.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            assert_eq!(
                screen.key(KeyPress::plain(key), later()),
                ApprovalKey::Taken
            );
        }
    }

    #[test]
    fn each_key_has_its_answer() {
        let (mut shown, mut answers) = screen(5);
        typed(&mut shown, "y?nno\nae");
        typed(&mut shown, "x\n");
        assert!(!shown.is_over());
        typed(&mut shown, "Y");
        assert!(shown.is_over());
        shown.finish();
        let expected = vec![
            CallAnswer::Yes,
            CallAnswer::No("no".into()),
            CallAnswer::Always(vec!["git push".into()]),
            CallAnswer::Edited("git push\x1b[2J\nx".into()),
            CallAnswer::Yes,
        ];
        assert_eq!(answers.try_recv().unwrap(), Some(expected));
    }

    #[test]
    fn keys_count_only_after_a_pause() {
        let (mut shown, _answers) = screen(1);
        let press = KeyPress::plain(Key::Char('y'));
        assert_eq!(shown.key(press, Instant::now()), ApprovalKey::ForInput);
        assert!(!shown.is_over());
        assert_eq!(
            shown.key(KeyPress::control('c'), Instant::now()),
            ApprovalKey::Interrupt
        );
        assert_eq!(shown.key(press, later()), ApprovalKey::Taken);
        assert!(shown.is_over());
    }

    #[test]
    fn keys_with_ctrl_or_alt_answer_nothing() {
        let (mut shown, _answers) = screen(1);
        for bits in 1..=3_u8 {
            for letter in ['y', 'Y', 'a', 'w', 'n', 'e'] {
                let mut press = KeyPress::plain(Key::Char(letter));
                press.modifiers.control = bits & 1 != 0;
                press.modifiers.alt = bits & 2 != 0;
                assert_eq!(shown.key(press, later()), ApprovalKey::Taken);
                assert!(
                    !shown.is_over() && matches!(shown.entry, Entry::None),
                    "{press:?}"
                );
            }
        }
    }

    #[test]
    fn a_paste_goes_into_the_reason() {
        let (mut shown, mut answers) = screen(1);
        assert!(!shown.paste("y"));
        typed(&mut shown, "n");
        assert!(shown.paste("too\nlong"));
        typed(&mut shown, "\n");
        shown.finish();
        let expected = vec![CallAnswer::No("too\nlong".into())];
        assert_eq!(answers.try_recv().unwrap(), Some(expected));
    }

    #[test]
    fn lines_answer_where_no_key_can() {
        let (mut shown, mut answers) = screen(4);
        for other in ["", "yes please", "y?", "e", "w", "Yy"] {
            assert!(!shown.line(other), "{other}");
        }
        assert!(shown.line("y") && shown.line("n not this") && shown.line("a") && shown.line("n"));
        shown.finish();
        let expected = vec![
            CallAnswer::Yes,
            CallAnswer::No("not this".into()),
            CallAnswer::Always(vec!["git push".into()]),
            CallAnswer::No(String::new()),
        ];
        assert_eq!(answers.try_recv().unwrap(), Some(expected));
        let (shown, _answers) = screen(1);
        let texts: Vec<String> = shown
            .plain_lines(100, later())
            .iter()
            .map(plain_text)
            .collect();
        assert_eq!(
            texts,
            [
                "Run command 0?",
                "  git push: it is not known to only read",
                "y yes · n no, with a reason · a always here: git push · q interrupt; Enter sends"
            ]
        );
    }

    #[test]
    fn an_interrupted_question_is_over() {
        let (shown, answers) = screen(1);
        drop(answers);
        assert!(shown.is_over());
    }

    #[test]
    fn the_screen_shows_text_reasons_and_keys() {
        let (shown, _answers) = screen(2);
        let texts: Vec<String> = shown.texts().iter().map(plain_text).collect();
        assert_eq!(texts[..2], ["? command 0", "  git push␛[2J"]);
        let (lines, caret) = shown.lines(100, later());
        let texts: Vec<String> = lines.iter().map(plain_text).collect();
        assert_eq!(
            texts,
            [
                "Run command 0 (1 of 2)?",
                "  git push: it is not known to only read",
                "y yes · n no, with a reason · Y yes to all 2 · a always here: git push · e edit · Esc interrupt"
            ]
        );
        assert_eq!(caret, None);
    }
}
