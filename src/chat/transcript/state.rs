//! Everything a chat knows, made of its records.

use crate::chat::context_use::{ContextUse, TokenCount, context_use};
use crate::chat::history::History;
use crate::chat::transcript::file::Transcript;
use crate::chat::transcript::record::{CallRecord, Record};
use crate::chat::turn::UsageSum;
use crate::tool::plan_board::PlanStep;
use karyi_core::limits;
use karyi_model::{Effort, ModelRequest, Usage};
use karyi_vault::redact::Redacted;

/// State of a chat.
#[derive(Debug, Clone, Default)]
pub struct ChatState {
    history: History,
    /// Title that the user gave.
    title: Option<Redacted>,
    model: Redacted,
    plan: Vec<PlanStep>,
    usage: UsageSum,
    /// Tokens that the last answer was counted with.
    count: Option<TokenCount>,
    is_turn_open: bool,
    /// Calls of the open turn that no report is about yet.
    open_calls: Vec<CallRecord>,
}

impl ChatState {
    /// Starts with a history.
    #[must_use]
    pub fn new(history: History) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    /// Makes the state of a transcript. The front end gives the start of the request, which is not in it: the system
    /// text, examples and limits.
    #[must_use]
    pub fn replay(request: ModelRequest, transcript: &Transcript) -> Self {
        let mut state = Self::new(History::new(request));
        state.model = transcript.start.model.clone();
        for timed in &transcript.records {
            state.apply(&timed.record);
        }
        state
    }

    /// Applies a record.
    pub(in crate::chat) fn apply(&mut self, record: &Record) {
        match record {
            Record::Start(start) => self.model = start.model.clone(),
            Record::User { text, attached } => {
                self.begin_turn(true);
                self.history.push_user(text.clone(), attached.clone());
            }
            Record::Told(text) => self.history.push_told(text.clone()),
            Record::Answer(text) => self.history.push_answer(text.clone()),
            Record::Call(call) => self.open_calls.push(call.clone()),
            Record::Report(text) => {
                self.open_calls.clear();
                self.history.push_report(text.clone());
            }
            Record::Usage(record) => {
                let messages = self.history.request().messages.len();
                self.count = TokenCount::of_answer(record.usage, messages).or(self.count);
                self.usage.add(record.usage, record.cost);
            }
            Record::Shortening => self.change(History::shorten),
            Record::Compaction(text) => self.change(|history| history.fold(text.clone())),
            Record::CompactionUndo => self.change(History::unfold),
            Record::Rewind(turn) => {
                self.begin_turn(false);
                self.change(|history| history.rewind(*turn));
            }
            Record::Title(text) => self.title = Some(text.clone()),
            Record::Plan(steps) => self.plan.clone_from(steps),
            Record::Model(name) => self.model = name.clone(),
            Record::TurnEnd(_) => self.begin_turn(false),
            Record::Changes(_) => {}
        }
    }

    /// Replaces the start of the requests.
    pub(in crate::chat) fn replace_start(&mut self, start: ModelRequest) {
        self.change(|history| history.replace_start(start));
    }

    fn begin_turn(&mut self, is_open: bool) {
        self.is_turn_open = is_open;
        self.open_calls.clear();
    }

    /// Asks for another effort from the next request on.
    pub(in crate::chat) fn set_effort(&mut self, effort: Option<Effort>) {
        self.history.set_effort(effort);
    }

    /// Changes earlier messages, so that no count fits any more.
    fn change(&mut self, change: impl FnOnce(&mut History)) {
        change(&mut self.history);
        self.count = None;
    }

    /// Returns the part of the context that the conversation takes.
    #[must_use]
    pub fn context_use(&self, window: Option<u64>) -> ContextUse {
        context_use(self.history.request(), self.count, window)
    }

    /// Returns the messages.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the steps of the plan.
    #[must_use]
    pub fn plan(&self) -> &[PlanStep] {
        &self.plan
    }

    /// Returns the name of the model that answered last.
    #[must_use]
    pub fn model(&self) -> &Redacted {
        &self.model
    }

    /// Returns the tokens of all answers.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage.total
    }

    /// Returns the cost of all answers, unless that of one is unknown.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.usage.cost()
    }

    /// Returns the title that the user gave, else the first line of the first text.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        if let Some(title) = &self.title {
            return Some(title.as_str().to_owned());
        }
        let (_, text) = self.history.user_texts().into_iter().next()?;
        let line = text.as_str().lines().find(|line| !line.trim().is_empty())?;
        let line = line.trim();
        let end = line.char_indices().nth(limits::MAX_CHAT_TITLE_CHARS);
        Some(match end {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
            None => line.to_owned(),
        })
    }

    /// Returns the text that tells the model of a turn that a dying program left open; nothing when none was.
    #[must_use]
    pub fn interruption(&self) -> Option<String> {
        if !self.is_turn_open {
            return None;
        }
        let mut text = String::from(
            "karyi ended while you worked on this. The shell and its jobs are gone; files are as they were left.",
        );
        if !self.open_calls.is_empty() {
            text.push_str(" These calls had ended, and others may have begun:");
            for call in &self.open_calls {
                let CallRecord {
                    id,
                    tool,
                    title,
                    status,
                } = call;
                text.push_str(&format!("\n- {id}: {tool} {title} ({status})"));
            }
            text.push('\n');
        }
        text.push_str(" Nothing was run again: look at what is there before you go on.");
        Some(text)
    }
}
