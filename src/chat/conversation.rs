//! A conversation: asks the model, runs its answer and gives the report back, until an answer has no call.

use std::path::PathBuf;
use std::sync::Arc;

use crate::chat::answer_end::{AnswerEnd, Ending};
use crate::chat::answer_run::AnswerRunner;
use crate::chat::call_results::AnswerResults;
use crate::chat::compaction::{self, CompactionEnd};
use crate::chat::context_use::{self, ContextUse};
use crate::chat::guards::Guards;
use crate::chat::history::History;
use crate::chat::memory::Memory;
use crate::chat::notes::deeper_notes::DeeperNotes;
use crate::chat::notes::note_files::LoadedNote;
use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::recorder::Recorder;
use crate::chat::steering::Steering;
use crate::chat::time_limit::TimeLimit;
use crate::chat::transcript::file::TranscriptWriter;
use crate::chat::transcript::record::{Record, TurnEndRecord, UsageRecord};
use crate::chat::transcript::state::ChatState;
use crate::chat::turn::{Prompt, TurnEnd, TurnLimits, TurnReport, UsageSum};
use crate::exec::cancel::Cancel;
use karyi_model::{Effort, Model, ModelError, ModelErrorKind, ModelRequest, Usage};
use karyi_vault::redact::{Redacted, Redactor};

/// Messages below which a compaction gains nothing.
const LEAST_MESSAGES: usize = 4;

/// Conversation with a model.
pub struct Conversation {
    model: Arc<dyn Model>,
    runner: AnswerRunner,
    memory: Memory,
    limits: TurnLimits,
    cancel: Cancel,
    /// Tokens that the context of the model has.
    window: Option<u64>,
    /// Texts that join a turn.
    steering: Steering,
    /// Notes of directories that calls come to, if the model is told of them.
    notes: Option<DeeperNotes>,
}

/// State of a turn.
#[derive(Default)]
struct Turn {
    steps: u64,
    usage: UsageSum,
    guards: Guards,
    answer: String,
    needs_approval: bool,
    /// True when the last answer was asked for again.
    is_repeated: bool,
    is_shortened: bool,
    /// Files and directories that the last calls used.
    touched: Vec<PathBuf>,
    /// True when no further compaction is tried.
    is_compaction_off: bool,
    /// Estimated tokens of the answers for which the server counted none.
    estimated_tokens: u64,
}

impl Turn {
    /// Returns the tokens so far.
    fn tokens(&self) -> u64 {
        self.usage.tokens().saturating_add(self.estimated_tokens)
    }
}

impl Conversation {
    /// Starts a conversation. The cancellation is that of the runner's calls.
    #[must_use]
    pub fn new(
        model: Arc<dyn Model>,
        runner: AnswerRunner,
        history: History,
        limits: TurnLimits,
        cancel: Cancel,
    ) -> Self {
        Self {
            model,
            runner,
            memory: Memory::new(history),
            limits,
            cancel,
            window: None,
            steering: Steering::default(),
            notes: None,
        }
    }

    /// Sets the tokens of the model's context: when it is nearly full, the conversation is compacted.
    #[must_use]
    pub fn with_window(self, window: Option<u64>) -> Self {
        Self { window, ..self }
    }

    /// Lets these texts join a turn at its next request.
    #[must_use]
    pub fn with_steering(self, steering: Steering) -> Self {
        Self { steering, ..self }
    }

    /// Tells the model the notes of directories when its calls first come there.
    #[must_use]
    pub fn with_notes(self, notes: Option<DeeperNotes>) -> Self {
        Self { notes, ..self }
    }

    /// Returns the notes of directories that the model has got so far.
    #[must_use]
    pub fn deeper_notes(&self) -> &[LoadedNote] {
        let notes = self.notes.as_ref();
        notes.map(DeeperNotes::files).unwrap_or_default()
    }

    /// Replaces what the conversation remembers: a new chat, or one to go on with. Its records are saved from here on;
    /// nothing of it runs again. The shell and its jobs stay.
    pub fn enter_chat(&mut self, state: ChatState, writer: Option<TranscriptWriter>) {
        let interruption = state.interruption();
        self.runner.plan().replace(state.plan().to_vec());
        self.memory = Memory::resume(state, writer);
        self.forget_notes();
        if let Some(text) = interruption {
            self.tell(&text);
            self.record_end("interrupted", 0);
        }
    }

    /// Returns everything that the chat knows.
    #[must_use]
    pub fn state(&self) -> &ChatState {
        self.memory.state()
    }

    /// Returns the id of the chat; nothing when it is not saved.
    #[must_use]
    pub fn chat_id(&self) -> Option<&str> {
        self.memory.chat_id()
    }

    /// Returns the redactor of the session.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.runner.redactor()
    }

    /// Returns the part of the context that the conversation takes.
    #[must_use]
    pub fn context_use(&self) -> ContextUse {
        self.memory.state().context_use(self.window)
    }

    /// Returns a cancellation for one turn: it stops the model and the calls that run, and the shell lives on. The
    /// cancellation of the conversation cancels the turn, too.
    #[must_use]
    pub fn turn_cancel(&self) -> Cancel {
        self.cancel.of_part()
    }

    /// Works on a text of the user until the model is done, or a limit is reached.
    pub async fn turn(&mut self, text: &str, observer: &mut dyn Observer) -> TurnReport {
        let cancel = self.cancel.clone();
        self.turn_until(Prompt::of(text), &cancel, observer).await
    }

    /// As [`Conversation::turn`], until it is cancelled. The model learns in the next turn which calls ran.
    pub async fn turn_until(
        &mut self,
        prompt: Prompt<'_>,
        cancel: &Cancel,
        observer: &mut dyn Observer,
    ) -> TurnReport {
        self.runner.replace_cancel(cancel);
        let mut turn = Turn::default();
        self.compact_if_full(&mut turn, cancel, observer).await;
        // A placeholder that the user typed is meant as one.
        let redactor = self.runner.redactor();
        self.memory.record(&Record::User {
            text: redactor.redact_whole_again(prompt.text),
            attached: redactor.redact_whole_again(prompt.attached),
        });
        let time_limit = TimeLimit::start(&self.limits, cancel);
        let end = loop {
            if let Some(end) = self.limit(&turn) {
                break end;
            }
            if turn.steps > 0 {
                self.compact_if_full(&mut turn, cancel, observer).await;
                self.tell_notes(&turn.touched, observer);
                self.join_texts(observer);
            }
            turn.steps += 1;
            observer.event(&ChatEvent::Request(turn.steps));
            let ended = self.answer(&mut turn, observer).await;
            let is_repeated = turn.is_repeated;
            match self.take(&mut turn, ended) {
                Some(TurnEnd::Done) if !self.steering.is_empty() => {}
                Some(end) => break end,
                None => {}
            }
            if turn.is_repeated && !is_repeated {
                observer.event(&ChatEvent::Note("the answer is asked for again"));
            }
        };
        let end = match end {
            TurnEnd::Cancelled if time_limit.is_over() => TurnEnd::Time,
            end => end,
        };
        self.record_end(end.as_str(), turn.steps);
        self.tell_problem(observer);
        TurnReport {
            end,
            tokens: turn.tokens(),
            answer: turn.answer,
            steps: turn.steps,
            usage: turn.usage.total,
            cost: turn.usage.cost(),
            needs_approval: turn.needs_approval,
        }
    }

    /// Tells the notes of directories again when calls come there: the model does not have them any more.
    fn forget_notes(&mut self) {
        if let Some(notes) = &mut self.notes {
            notes.forget();
        }
    }

    /// Tells the notes of directories to which calls came for the first time.
    fn tell_notes(&mut self, touched: &[PathBuf], observer: &mut dyn Observer) {
        let Some(notes) = &mut self.notes else {
            return;
        };
        let notes = notes.of(touched);
        for problem in &notes.problems {
            observer.event(&ChatEvent::Note(problem));
        }
        for file in &notes.files {
            observer.event(&ChatEvent::Note(&format!("notes: {}", file.path.display())));
        }
        if !notes.text.is_empty() {
            self.tell(&format!(
                "Notes of directories that your calls came to:\n\n{}",
                notes.text.trim_end()
            ));
        }
    }

    /// Adds the texts that the user wrote meanwhile.
    fn join_texts(&mut self, observer: &mut dyn Observer) {
        for text in self.steering.take_all() {
            let text = self.runner.redactor().redact_whole_again(&text);
            observer.event(&ChatEvent::Joined(text.as_str()));
            let attached = Redacted::default();
            self.memory.record(&Record::User { text, attached });
        }
    }

    /// Adds a text for the model that the user did not type, such as the report of a call of the user. The model gets it
    /// with the next text.
    pub fn tell(&mut self, text: &str) {
        let text = self.runner.redactor().redact_whole_again(text);
        self.memory.record(&Record::Told(text));
    }

    /// Gives the chat a title.
    pub fn rename(&mut self, title: &str) {
        let title = self.runner.redactor().redact(title.trim());
        self.memory.record(&Record::Title(title));
    }

    /// Takes back a text of the user, by its number in [`History::user_texts`], and all that follows it. The transcript
    /// keeps everything; files and the shell stay as they are.
    pub fn rewind(&mut self, turn: usize) {
        self.memory.record(&Record::Rewind(turn));
    }

    /// Asks for another effort from the next request on; the server's own without a level.
    pub fn set_effort(&mut self, effort: Option<Effort>) {
        self.memory.set_effort(effort);
    }

    /// Goes on with another model, under its name, and the tokens of its context.
    pub fn replace_model(&mut self, model: Arc<dyn Model>, name: &str, window: Option<u64>) {
        self.model = model;
        self.window = window;
        let name = self.runner.redactor().redact_whole_again(name);
        self.memory.record(&Record::Model(name));
    }

    /// Goes on with another start of the requests: the system text, examples and limits, which a model may need.
    pub fn replace_start(&mut self, start: ModelRequest) {
        self.memory.replace_start(start);
    }

    /// Lets the model sum the conversation up, and goes on with the summary; `focus` says what matters most, and may be
    /// empty.
    pub async fn compact(
        &mut self,
        focus: &str,
        cancel: &Cancel,
        observer: &mut dyn Observer,
    ) -> CompactionEnd {
        let mut usage = UsageSum::default();
        self.compact_counted(focus, cancel, observer, &mut usage)
            .await
    }

    async fn compact_counted(
        &mut self,
        focus: &str,
        cancel: &Cancel,
        observer: &mut dyn Observer,
        sum: &mut UsageSum,
    ) -> CompactionEnd {
        if self.memory.history().message_count() < LEAST_MESSAGES {
            return CompactionEnd::Nothing;
        }
        observer.event(&ChatEvent::CompactionStarted);
        let redactor = self.runner.redactor();
        let asked = (self.memory.history(), focus);
        let model = self.model.as_ref();
        let summary = compaction::summarize(model, asked, redactor, cancel, observer).await;
        if summary.text.is_ok() || summary.usage != Usage::default() {
            let cost = self.record_usage(summary.usage);
            sum.add(summary.usage, cost);
        }
        let summary = match summary.text {
            Ok(text) => text,
            Err(end) => return end,
        };
        let jobs = self.runner.open_jobs().await;
        let plan = self.runner.plan().steps();
        let message = compaction::message(&summary, &plan, &jobs, self.memory.history());
        let message = self.runner.redactor().redact_whole_again(&message);
        self.memory.record(&Record::Compaction(message));
        self.forget_notes();
        observer.event(&ChatEvent::Compacted(summary.as_str()));
        CompactionEnd::Done
    }

    /// Brings the messages before the last compaction back. Returns false when there was none.
    pub fn undo_compaction(&mut self) -> bool {
        let is_compacted = self.memory.history().is_compacted();
        if is_compacted {
            self.memory.record(&Record::CompactionUndo);
        }
        is_compacted
    }

    /// Ends the session.
    pub async fn close(self) {
        self.runner.close().await;
    }

    async fn compact_if_full(
        &mut self,
        turn: &mut Turn,
        cancel: &Cancel,
        observer: &mut dyn Observer,
    ) {
        if turn.is_compaction_off || !self.context_use().is_nearly_full() {
            return;
        }
        let end = self
            .compact_counted("", cancel, observer, &mut turn.usage)
            .await;
        turn.is_compaction_off = end != CompactionEnd::Done;
        let reason = match &end {
            CompactionEnd::Failed(error) => error.message.as_str(),
            CompactionEnd::Cut => compaction::CUT,
            CompactionEnd::Done | CompactionEnd::Nothing | CompactionEnd::Cancelled => return,
        };
        let note = format!("the conversation could not be summed up: {reason}");
        observer.event(&ChatEvent::Note(&note));
    }

    /// Asks the model and runs its answer.
    async fn answer(&mut self, turn: &mut Turn, observer: &mut dyn Observer) -> AnswerEnd {
        let answer = self.model.answer(self.memory.history().request());
        let redactor = self.runner.redactor().clone();
        let mut recorder = Recorder::new(&mut self.memory, observer, redactor);
        let mut ended = self.runner.run(answer, &mut recorder).await;
        turn.touched = std::mem::take(&mut ended.results.touched);
        let cost = self.record_usage(ended.usage);
        turn.usage.add(ended.usage, cost);
        if ended.usage.input.is_none() && ended.usage.output.is_none() {
            let answer = context_use::tokens_of(&ended.text);
            let tokens = self.context_use().tokens.saturating_add(answer);
            turn.estimated_tokens = turn.estimated_tokens.saturating_add(tokens);
        }
        self.tell_problem(observer);
        ended
    }

    /// Records the tokens of an answer; returns their cost.
    fn record_usage(&mut self, usage: Usage) -> Option<f64> {
        let price = self.model.config().price;
        let cost = price.and_then(|price| usage.cost(price));
        let record = UsageRecord { usage, cost };
        self.memory.record(&Record::Usage(record));
        cost
    }

    fn record_answer(&mut self, text: &str) {
        if !text.trim().is_empty() {
            // Placeholders in it are the model's own.
            let text = self.runner.redactor().redact_whole_again(text);
            self.memory.record(&Record::Answer(text));
        }
    }

    fn record_report(&mut self, text: &str) {
        let text = self.runner.redactor().redact_whole_again(text);
        self.memory.record(&Record::Report(text));
    }

    fn record_end(&mut self, end: &str, steps: u64) {
        let end = self.runner.redactor().redact_whole_again(end);
        let record = TurnEndRecord { end, steps };
        self.memory.record(&Record::TurnEnd(record));
    }

    fn tell_problem(&mut self, observer: &mut dyn Observer) {
        if let Some(problem) = self.memory.take_problem() {
            observer.event(&ChatEvent::Note(&problem));
        }
    }

    fn limit(&self, turn: &Turn) -> Option<TurnEnd> {
        if self.runner.is_interrupted() {
            return Some(TurnEnd::Cancelled);
        }
        if turn.steps >= self.limits.steps {
            return Some(TurnEnd::Steps);
        }
        let is_over = |most: u64| turn.tokens() >= most;
        self.limits
            .tokens
            .filter(|most| is_over(*most))
            .map(|_| TurnEnd::Tokens)
    }

    /// Takes an answer into the history; returns the end of the turn.
    fn take(&mut self, turn: &mut Turn, mut ended: AnswerEnd) -> Option<TurnEnd> {
        if !ended.results.calls.is_empty() {
            let mut calls = ended.results.calls.iter();
            turn.needs_approval = calls.any(|call| call.needs_approval);
        }
        turn.answer = std::mem::take(&mut ended.results.prose).trim().to_owned();
        if turn.answer.is_empty() && ended.results.calls.is_empty() {
            // A JSON object that holds no block is no prose, and is the answer all the same.
            let text = self.runner.redactor().redact_again(ended.text.trim());
            turn.answer = text.into_owned();
        }
        if matches!(ended.ending, Ending::Cancelled) {
            self.take_interrupted(&ended);
            return Some(TurnEnd::Cancelled);
        }
        match ended.error() {
            Some(error) => self.take_broken(turn, &ended, error),
            None => self.take_whole(turn, &ended),
        }
    }

    /// Takes an answer that the user interrupted, with the results of its calls for the next turn.
    fn take_interrupted(&mut self, ended: &AnswerEnd) {
        self.record_answer(&ended.interrupted());
        let mut told = format!("{}\nThe user interrupted you here.", ended.report());
        if ended.progress.calls > 0 {
            told.push_str(" Of your calls only those with a result have run.");
        }
        self.record_report(told.trim_start());
    }

    fn take_whole(&mut self, turn: &mut Turn, ended: &AnswerEnd) -> Option<TurnEnd> {
        let results = &ended.results;
        let is_last = results.calls.is_empty() && results.report.is_none();
        if is_last && ended.text.trim().is_empty() {
            if turn.is_repeated {
                let message = "the model gave an empty answer twice";
                return Some(failed(ModelError::new(ModelErrorKind::NoAnswer, message)));
            }
            turn.is_repeated = true;
            return None;
        }
        turn.is_repeated = false;
        self.record_answer(ended.counting());
        // A warning beside a last answer concerns nobody.
        if is_last || results.calls.is_empty() && !results.is_refused && !ended.is_invented() {
            return Some(match ended.is_too_long() {
                true => TurnEnd::AnswerLength,
                false => TurnEnd::Done,
            });
        }
        self.record_report(ended.report());
        self.guard(turn, results)
    }

    /// Takes an answer that broke off. Without a call it is asked for again, else the model gets the results.
    fn take_broken(
        &mut self,
        turn: &mut Turn,
        ended: &AnswerEnd,
        error: ModelError,
    ) -> Option<TurnEnd> {
        let has_calls = ended.progress.calls > 0;
        if error.kind == ModelErrorKind::Context && !turn.is_shortened && !has_calls {
            turn.is_shortened = true;
            if !self.memory.history().can_shorten() {
                return Some(failed(error));
            }
            self.memory.record(&Record::Shortening);
            return None;
        }
        let is_cut = matches!(ended.ending, Ending::Stopped(_));
        if !has_calls && (turn.is_repeated || !(is_cut || error.is_transient()))
            || error.kind == ModelErrorKind::Content
        {
            return Some(failed(error));
        }
        if !has_calls {
            turn.is_repeated = true;
            return None;
        }
        turn.is_repeated = false;
        self.record_answer(&ended.closed());
        let report = ended.report();
        let told = format!(
            "{report}\nYour answer broke off here ({error}). The calls above have run, and nothing after them has; go on."
        );
        self.record_report(&told);
        self.guard(turn, &ended.results)
    }

    /// Ends a turn that does not get on. What an interruption skipped is no failure.
    fn guard(&self, turn: &mut Turn, results: &AnswerResults) -> Option<TurnEnd> {
        if self.runner.is_interrupted() {
            return None;
        }
        turn.guards.check(results).map(TurnEnd::Refused)
    }
}

fn failed(error: ModelError) -> TurnEnd {
    TurnEnd::ModelFailed(Box::new(error))
}
