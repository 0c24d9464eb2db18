//! The messages of a conversation, as the model gets them.
//!
//! The start of a request stays the same to the byte from step to step, so that providers can cache it. A compaction
//! replaces the messages by one, and keeps them to be brought back; a rewind cuts the messages before a text of the
//! user.

use karyi_model::{Effort, Message, ModelRequest, Role};
use karyi_vault::redact::Redacted;

/// Reports that stay whole when a conversation is shortened.
const REPORTS_KEPT: usize = 2;

/// Text in place of a report that was left out.
const LEFT_OUT: &str =
    "<results><!-- left out to save room; run a call again if its result matters --></results>";

/// Messages of a conversation.
#[derive(Debug, Clone, Default)]
pub struct History {
    request: ModelRequest,
    /// Number of messages that the conversation began with.
    first: usize,
    /// Indexes of messages that are reports.
    reports: Vec<usize>,
    /// Texts of the user.
    turns: Vec<TurnStart>,
    /// Messages that compactions replaced, oldest first.
    folded: Vec<FoldedPart>,
}

/// Messages that a compaction replaced.
#[derive(Debug, Clone)]
struct FoldedPart {
    messages: Vec<Message>,
    reports: Vec<usize>,
    turns: Vec<TurnStart>,
}

/// Text of the user in the messages.
#[derive(Debug, Clone, Copy)]
struct TurnStart {
    /// Index of its message.
    index: usize,
    /// Length of what the user typed; files and the like follow.
    typed_bytes: usize,
}

impl History {
    /// Starts a conversation with a system text and earlier messages.
    #[must_use]
    pub fn new(request: ModelRequest) -> Self {
        Self {
            first: request.messages.len(),
            request,
            ..Self::default()
        }
    }

    /// Returns the request for the next answer.
    #[must_use]
    pub fn request(&self) -> &ModelRequest {
        &self.request
    }

    /// Asks for another effort from the next request on.
    pub(super) fn set_effort(&mut self, effort: Option<Effort>) {
        self.request.effort = effort;
    }

    /// Returns the last answer; nothing before the first one, to which an example does not count.
    #[must_use]
    pub fn last_answer(&self) -> Option<&Redacted> {
        let messages = self.request.messages.get(self.first..)?;
        let mut answers = messages.iter().rev();
        let answer = answers.find(|message| message.role == Role::Assistant);
        answer.map(|message| &message.text)
    }

    /// Returns the number of messages since the start or the last compaction.
    pub(super) fn message_count(&self) -> usize {
        self.request.messages.len() - self.first.min(self.request.messages.len())
    }

    /// Returns the number of texts of the user, those before compactions among them.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.earlier_turns() + self.turns.len()
    }

    /// Returns the number of a text of the user, from 0, and what the user typed, oldest first.
    #[must_use]
    pub fn user_texts(&self) -> Vec<(usize, Redacted)> {
        let folded = self.folded.iter().map(|part| (&part.messages, &part.turns));
        let parts = folded.chain([(&self.request.messages, &self.turns)]);
        let texts = parts.flat_map(|(messages, turns)| {
            let text = move |turn: &TurnStart| {
                let message = messages.get(turn.index);
                message.map(|message| message.text.until(turn.typed_bytes))
            };
            turns.iter().map(text)
        });
        texts.map(Option::unwrap_or_default).enumerate().collect()
    }

    /// Returns true when a compaction can be undone.
    #[must_use]
    pub fn is_compacted(&self) -> bool {
        !self.folded.is_empty()
    }

    /// Adds a text of the user, with what belongs to it, such as files.
    pub(super) fn push_user(&mut self, typed: Redacted, attached: Redacted) {
        let index = self.request.messages.len();
        let typed_bytes = typed.as_str().len();
        self.turns.push(TurnStart { index, typed_bytes });
        let mut whole = typed;
        if !attached.is_empty() {
            whole.change(attached, |whole, attached| {
                whole.push_str("\n\n");
                whole.push_str(&attached);
            });
        }
        self.request.messages.push(Message::user(whole));
    }

    /// Adds a text for the model that neither the user nor a tool wrote.
    pub(super) fn push_told(&mut self, text: Redacted) {
        self.request.messages.push(Message::user(text));
    }

    /// Adds an answer, unless it is blank.
    pub(super) fn push_answer(&mut self, text: Redacted) {
        if !text.as_str().trim().is_empty() {
            self.request.messages.push(Message::assistant(text));
        }
    }

    /// Adds a report.
    pub(super) fn push_report(&mut self, text: Redacted) {
        self.reports.push(self.request.messages.len());
        self.request.messages.push(Message::user(text));
    }

    /// Returns true when there are reports to leave out.
    pub(super) fn can_shorten(&self) -> bool {
        self.reports.len() > REPORTS_KEPT
    }

    /// Leaves out all reports but the last ones.
    pub(super) fn shorten(&mut self) {
        let count = self.reports.len().saturating_sub(REPORTS_KEPT);
        let text = Redacted::default().map(|_: String| LEFT_OUT.to_owned());
        for index in self.reports.drain(..count) {
            if let Some(message) = self.request.messages.get_mut(index) {
                message.text = text.clone();
            }
        }
    }

    /// Replaces all messages by one, which tells what was in them.
    pub(super) fn fold(&mut self, summary: Redacted) {
        let messages = std::mem::take(&mut self.request.messages);
        let first = messages.iter().take(self.first);
        self.request.messages = first.cloned().collect();
        self.folded.push(FoldedPart {
            messages,
            reports: std::mem::take(&mut self.reports),
            turns: std::mem::take(&mut self.turns),
        });
        self.push_told(summary);
    }

    /// Brings the messages before the last compaction back; the later ones follow them.
    pub(super) fn unfold(&mut self) {
        let Some(part) = self.folded.pop() else {
            return;
        };
        // The summary goes.
        let skipped = self.first + 1;
        let moved = |index: usize| (index + part.messages.len()).saturating_sub(skipped);
        for report in &mut self.reports {
            *report = moved(*report);
        }
        for turn in &mut self.turns {
            turn.index = moved(turn.index);
        }
        let (reports, turns) = (part.reports.into_iter(), part.turns.into_iter());
        self.reports = reports.chain(std::mem::take(&mut self.reports)).collect();
        self.turns = turns.chain(std::mem::take(&mut self.turns)).collect();
        let later = std::mem::replace(&mut self.request.messages, part.messages);
        self.request
            .messages
            .extend(later.into_iter().skip(skipped));
    }

    /// Removes a text of the user and all that follows it. A text before a compaction brings the messages back.
    pub(super) fn rewind(&mut self, turn: usize) {
        while turn < self.earlier_turns()
            && let Some(part) = self.folded.pop()
        {
            self.request.messages = part.messages;
            self.reports = part.reports;
            self.turns = part.turns;
        }
        let turn = turn.saturating_sub(self.earlier_turns());
        let Some(start) = self.turns.get(turn).map(|turn| turn.index) else {
            return;
        };
        self.turns.truncate(turn);
        self.reports.retain(|report| *report < start);
        self.request.messages.truncate(start);
    }

    /// Replaces what the conversation began with, and keeps what was said since.
    pub(super) fn replace_start(&mut self, start: ModelRequest) {
        let (before, after) = (self.first, start.messages.len());
        let moved = |index: usize| (index + after).saturating_sub(before);
        let current = (
            &mut self.request.messages,
            &mut self.reports,
            &mut self.turns,
        );
        let folded = self.folded.iter_mut();
        let folded = folded.map(|part| (&mut part.messages, &mut part.reports, &mut part.turns));
        for (messages, reports, turns) in folded.chain([current]) {
            let end = before.min(messages.len());
            messages.splice(..end, start.messages.iter().cloned());
            reports
                .iter_mut()
                .for_each(|report| *report = moved(*report));
            turns
                .iter_mut()
                .for_each(|turn| turn.index = moved(turn.index));
        }
        let messages = std::mem::take(&mut self.request.messages);
        self.first = after;
        self.request = ModelRequest { messages, ..start };
    }

    fn earlier_turns(&self) -> usize {
        self.folded.iter().map(|part| part.turns.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_vault::redact::Redactor;
    use karyi_vault::session::Secrets;

    fn history(steps: &str) -> History {
        let redactor = Redactor::new(&Secrets::default());
        let text = |text: &str| redactor.redact(text);
        let system = text("system");
        let mut history = History::new(ModelRequest {
            system,
            messages: vec![Message::user(text("example"))],
            ..ModelRequest::default()
        });
        for step in steps.split_whitespace() {
            match step.split_at(1) {
                ("u", name) => history.push_user(text(name), Redacted::default()),
                ("a", name) => history.push_answer(text(name)),
                ("r", name) => history.push_report(text(name)),
                ("s", _) => history.shorten(),
                ("c", name) => history.fold(text(name)),
                ("b", _) => history.unfold(),
                ("w", turn) => history.rewind(turn.parse().unwrap()),
                other => unreachable!("{other:?}"),
            }
        }
        history
    }

    fn check(steps: &str, messages: &str, turns: &str) {
        let history = history(steps);
        let text = |message: &Message| match message.text.as_str() {
            LEFT_OUT => "-".to_owned(),
            text => text.to_owned(),
        };
        let found: Vec<String> = history.request().messages.iter().map(text).collect();
        assert_eq!(found.join(" "), messages, "{steps}");
        let texts = history.user_texts();
        assert!(texts.iter().enumerate().all(|(at, (turn, _))| at == *turn));
        let texts: Vec<String> = texts
            .into_iter()
            .map(|(_, text)| text.into_string())
            .collect();
        assert_eq!(texts.join(" "), turns, "{steps}");
        assert_eq!(history.turn_count(), texts.len());
        assert_eq!(history.request().system.as_str(), "system");
    }

    #[test]
    fn another_start_keeps_what_was_said() {
        let redactor = Redactor::new(&Secrets::default());
        let text = |text: &str| redactor.redact(text);
        for (steps, examples, messages) in [
            ("u1 a2 r3", "", "1 2 3"),
            ("u1 a2 r3", "x y", "x y 1 2 3"),
            ("u1 a2 cS u3 a4", "x y", "x y S 3 4"),
            ("u1 a2 cS u3 a4", "", "S 3 4"),
        ] {
            let mut history = history(steps);
            let texts = history.user_texts();
            let examples = examples.split_whitespace();
            history.replace_start(ModelRequest {
                system: text("other"),
                messages: examples.map(|word| Message::user(text(word))).collect(),
                temperature: Some(0.0),
                ..ModelRequest::default()
            });
            let request = history.request().clone();
            let found: Vec<&str> = request.messages.iter().map(|m| m.text.as_str()).collect();
            assert_eq!(found.join(" "), messages, "{steps}");
            assert_eq!(history.user_texts(), texts, "{steps}");
            assert_eq!(
                (request.system.as_str(), request.temperature),
                ("other", Some(0.0))
            );
            let count = history.message_count();
            history.unfold();
            assert!(history.message_count() >= count);
            history.rewind(0);
            assert_eq!(history.message_count(), 0, "{steps}");
        }
    }

    #[test]
    fn compactions_and_rewinds_keep_what_they_say() {
        check("u1 a2 r3 a4", "example 1 2 3 4", "1");
        check("u1 a2 cS", "example S", "1");
        check("u1 a2 cS u3 a4 b", "example 1 2 3 4", "1 3");
        check("u1 cS u2 cT u3 b", "example S 2 3", "1 2 3");
        check("u1 cS u2 cT u3 b b", "example 1 2 3", "1 2 3");
        check("u1 a2 u3 a4 w1", "example 1 2", "1");
        check("u1 a2 u3 a4 w0", "example", "");
        check("u1 a2 u3 a4 w2", "example 1 2 3 4", "1 3");
        check("u1 a2 u3 cS u4 a5 w2", "example S", "1 3");
        check("u1 a2 u3 cS u4 a5 w1", "example 1 2", "1");
        check("u1 a2 u3 cS u4 a5 w1 u6", "example 1 2 6", "1 6");
        check(
            "u1 r2 r3 r4 s cS r5 b r6 r7 s",
            "example 1 - - - - 6 7",
            "1",
        );
        check("b w0", "example", "");
    }
}
