//! The conversation as the screen shows it: history lines that were not printed yet, and what is under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::Notify;

use crate::chat::observer::{ChatEvent, Observer};
use crate::exec::{ChangedFile, Event};
use crate::tool::plan_board::{PlanStep, StepState};
use karyi_core::error::Code;
use karyi_core::outcome::{Outcome, Status};
use karyi_screen::card::{Card, CardEnd, elapsed_text};
use karyi_screen::diff;
use karyi_screen::markdown::MarkdownStream;
use karyi_screen::safe_text::{safe, safe_line};
use karyi_screen::styled_line::{Line, Palette, Span, Style, fit, wrap};
use karyi_screen::theme;

/// A view that the conversation writes and the screen reads.
#[derive(Clone)]
pub(super) struct SharedView {
    view: Arc<Mutex<ChatView>>,
    /// Told of each change.
    pub(super) changed: Arc<Notify>,
}

/// Work of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Asking,
    Thinking,
    Answering,
}

/// Kind of the last lines of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Card,
    Other,
}

/// The conversation as the screen shows it.
pub(super) struct ChatView {
    /// Columns that lines may take.
    columns: usize,
    /// Lines for the history that were not printed yet.
    history: Vec<Line<'static>>,
    last: Kind,
    answer: MarkdownStream,
    cards: BTreeMap<u64, (Card, Instant)>,
    activity: Option<(Activity, Instant)>,
    /// True while the user is asked about calls.
    pub(super) is_asking: bool,
    /// Steps of the model's plan.
    plan: Vec<Line<'static>>,
    /// Exit status of the last command that ended.
    pub(super) last_exit: Option<i64>,
}

impl SharedView {
    /// Creates an empty view.
    pub(super) fn new(columns: usize, palette: Palette) -> Self {
        let answer = MarkdownStream::new(columns);
        let view = ChatView {
            columns,
            history: Vec::new(),
            last: Kind::Other,
            answer: match palette {
                Palette::Ansi => answer.with_highlighting(),
                Palette::Plain => answer,
            },
            cards: BTreeMap::new(),
            activity: None,
            is_asking: false,
            plan: Vec::new(),
            last_exit: None,
        };
        Self {
            view: Arc::new(Mutex::new(view)),
            changed: Arc::default(),
        }
    }

    /// Locks the view.
    pub(super) fn lock(&self) -> MutexGuard<'_, ChatView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for SharedView {
    fn event(&mut self, event: &ChatEvent<'_>) {
        self.lock().event(event);
        self.changed.notify_one();
    }
}

impl ChatView {
    /// Sets the columns that lines may take.
    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        self.answer.set_columns(columns);
    }

    /// Takes the lines that were not printed yet.
    pub(super) fn take_history(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.history)
    }

    /// Adds lines to the history, long ones wrapped between words.
    pub(super) fn say(&mut self, text: &str, style: Style) {
        for line in text.lines() {
            let line = Span::styled(safe_line(line).into_owned(), style);
            self.history.extend(wrap(&[line], self.columns, &[], &[]));
        }
    }

    /// Adds lines to the history.
    pub(super) fn extend(&mut self, lines: Vec<Line<'static>>) {
        self.history.extend(lines);
    }

    /// Adds the texts of calls that the user is asked about to the history.
    pub(super) fn ask(&mut self, texts: Vec<Line<'static>>) {
        self.end_answer();
        self.add(Kind::Card, texts);
    }

    /// Adds a text of the user to the history.
    pub(super) fn user(&mut self, text: &str) {
        self.last = Kind::Other;
        self.history.push(Line::default());
        let text = safe(text);
        for (number, line) in text.lines().enumerate() {
            let mark = if number == 0 { "> " } else { "  " };
            let line = Line::from(vec![
                Span::styled(mark, theme::USER),
                Span::styled(line.to_owned(), theme::STRONG),
            ]);
            self.history.push(line);
        }
        self.history.push(Line::default());
    }

    /// Ends what is under way.
    pub(super) fn end_turn(&mut self) {
        self.end_answer();
        self.cards.clear();
        self.activity = None;
    }

    /// Returns the lines of what is under way, at most `most` of them.
    pub(super) fn live_lines(&self, now: Instant, most: usize) -> Vec<Line<'static>> {
        let mut lines = self.answer.preview();
        for (card, since) in self.cards.values() {
            lines.extend(card.running_lines(now.duration_since(*since), self.columns));
        }
        if let Some((activity, since)) = self
            .activity
            .filter(|_| self.cards.is_empty() && !self.is_asking)
        {
            let word = match activity {
                Activity::Asking => "waiting for the model",
                Activity::Thinking => "thinking",
                Activity::Answering => "answering",
            };
            let time = elapsed_text(now.duration_since(since));
            let text = format!("● {word}  {time}  (Esc interrupts)");
            lines.push(Line::from(Span::styled(text, theme::FAINT)));
        }
        let room = most.saturating_sub(lines.len());
        let is_working = self.activity.is_some() || !self.cards.is_empty();
        let plan = self.plan.iter().filter(|_| is_working).take(room);
        lines.extend(plan.map(|line| fit(line, self.columns)));
        let start = lines.len().saturating_sub(most);
        lines.split_off(start)
    }

    /// Returns true while a call runs.
    pub(super) fn has_calls(&self) -> bool {
        !self.cards.is_empty()
    }

    /// Returns the lines of the model's plan.
    pub(super) fn plan(&self) -> Vec<Line<'static>> {
        self.plan.clone()
    }

    /// Sets the steps of the model's plan.
    pub(super) fn set_plan(&mut self, steps: &[PlanStep]) {
        self.plan = plan_lines(steps);
    }

    /// Notes that a call which runs waits for the user.
    pub(super) fn set_wait(&mut self, wait: Option<&str>) {
        if let Some((card, _)) = self.cards.values_mut().next_back() {
            card.set_note(wait.map(str::to_owned));
        }
    }

    fn event(&mut self, event: &ChatEvent<'_>) {
        match event {
            ChatEvent::Request(_) => self.activity = Some((Activity::Asking, Instant::now())),
            ChatEvent::Reasoning(_) => self.is_at(Activity::Thinking),
            ChatEvent::Text(text) => {
                self.is_at(Activity::Answering);
                let lines = self.answer.push(text);
                self.add(Kind::Text, lines);
            }
            ChatEvent::Retry(retry) => {
                let seconds = retry.delay.as_secs_f64();
                let message = &retry.error.message;
                let text = format!("{message}; asking again in {seconds:.1} s");
                self.say(&text, theme::WARNING);
            }
            ChatEvent::Call(event) => self.call(event),
            ChatEvent::Joined(text) => self.user(text),
            ChatEvent::Plan(steps) => self.set_plan(steps),
            ChatEvent::CompactionStarted => {
                self.say(
                    "the conversation is being summed up to make room",
                    theme::FAINT,
                );
            }
            ChatEvent::Compacted(summary) => {
                self.say(
                    "this summary takes the place of what was said so far:",
                    theme::FAINT,
                );
                self.say(summary, theme::FAINT);
            }
            ChatEvent::Note(note) => self.say(note, theme::WARNING),
            ChatEvent::StepEnded(_) => {
                self.end_answer();
                self.activity = None;
            }
        }
    }

    fn end_answer(&mut self) {
        let rest = self.answer.finish();
        self.add(Kind::Text, rest);
    }

    /// Adds lines to the history, with a blank one between text and cards.
    fn add(&mut self, kind: Kind, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if self.last != Kind::Other && self.last != kind {
            self.history.push(Line::default());
        }
        self.last = kind;
        self.history.extend(lines);
    }

    fn is_at(&mut self, activity: Activity) {
        if self.activity.is_none_or(|(known, _)| known != activity) {
            self.activity = Some((activity, Instant::now()));
        }
    }

    fn call(&mut self, event: &Event) {
        match event {
            Event::Started {
                index, tool, title, ..
            } => {
                self.end_answer();
                let card = Card::new(tool, title);
                self.cards.insert(*index, (card, Instant::now()));
            }
            Event::Output { index, text, .. } => {
                if let Some((card, _)) = self.cards.get_mut(index) {
                    card.push_output(text.as_str());
                }
            }
            Event::Unfinished { index, line } => {
                if let Some((card, _)) = self.cards.get_mut(index) {
                    card.set_open_line(line.as_str());
                }
            }
            Event::Changes { index, files } => {
                if let Some((card, _)) = self.cards.get_mut(index) {
                    card.set_changes(change_lines(files));
                }
            }
            Event::Finished { index, outcome } => self.finished(*index, outcome.get()),
            // An answer without calls is an ordinary one.
            Event::Warning(warning) if warning.code == Code::NoBlock => {}
            Event::Warning(warning) => self.say(&warning.message, theme::WARNING),
            Event::Refused(error) => {
                self.say(&format!("refused: {}", error.message), theme::BAD);
            }
            Event::Prose(_)
            | Event::Jobs { .. }
            | Event::Unreadable
            | Event::Tick
            | Event::MessageEnded { .. } => {}
        }
    }

    fn finished(&mut self, index: u64, outcome: &Outcome) {
        let own = || Card::new(&outcome.tool, outcome.title.as_deref().unwrap_or_default());
        let card = self.cards.remove(&index).map(|(card, _)| card);
        let mut card = card.unwrap_or_else(|| {
            // It was not started: what stands before it may still be open.
            self.end_answer();
            own()
        });
        let exit = outcome.fields.get("exit_code").and_then(Value::as_i64);
        self.last_exit = exit.or(self.last_exit);
        let end = match outcome.status {
            Status::Ok | Status::Provided | Status::Saved | Status::Exists => CardEnd::Good,
            status if status.goes_on() => CardEnd::Open,
            Status::Skipped => CardEnd::Open,
            _ => CardEnd::Bad,
        };
        if !card.has_changes() {
            card.set_changes(diffs(outcome).flat_map(diff::lines).collect());
        }
        let lines = card.ended_lines(end, &status_text(outcome, exit), self.columns);
        self.add(Kind::Card, lines);
    }
}

/// Returns the lines of what an edit has changed; a change that the title does not tell has a heading.
fn change_lines(files: &[ChangedFile]) -> Vec<Line<'static>> {
    let faint = |text: String| Line::styled(text, theme::FAINT);
    let mut lines = Vec::new();
    for file in files {
        if files.len() > 1 || !file.heading.ends_with("(edited)") {
            lines.push(faint(format!("  {}", safe_line(&file.heading))));
        }
        lines.extend(diff::lines(&file.diff));
        if file.omitted_lines > 0 {
            let omitted = file.omitted_lines;
            lines.push(faint(format!("       … {omitted} more changed lines")));
        }
    }
    lines
}

/// Returns the lines of a plan.
fn plan_lines(steps: &[PlanStep]) -> Vec<Line<'static>> {
    let line = |step: &PlanStep| {
        let style = match step.state {
            StepState::Done => theme::GOOD,
            StepState::Active => theme::STRONG,
            StepState::Open => theme::FAINT,
        };
        let text = format!("{} {}", step.state.mark(), safe_line(step.text.as_str()));
        Line::from(Span::styled(text, style))
    };
    steps.iter().map(line).collect()
}

/// Returns the state of an ended call and its time, unless it was short and good.
fn status_text(outcome: &Outcome, exit: Option<i64>) -> String {
    let mut parts = Vec::new();
    match (outcome.status, exit) {
        (Status::Ok, _) => {}
        (Status::Failed, Some(code)) => parts.push(format!("exit {code}")),
        (status, _) => parts.push(status.as_str().replace('_', " ")),
    }
    if let Some(error) = &outcome.error {
        parts.push(error.message.clone());
    }
    if outcome.duration_ms >= karyi_core::limits::SHORT_CALL_MS {
        let time = std::time::Duration::from_millis(outcome.duration_ms);
        parts.push(elapsed_text(time));
    }
    parts.join(", ")
}

/// Returns the diffs of the files that a call changed.
fn diffs(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let files = outcome.fields.get("files").and_then(Value::as_array);
    let files = files.into_iter().flatten();
    files.filter_map(|file| file.get("diff")?.as_str())
}
