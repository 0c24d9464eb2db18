//! A conversation: asks the model, runs its answer and gives the report back, until an answer has no call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;

use crate::chat::answer_run::{AnswerEnd, AnswerRunner, Ending};
use crate::chat::guards::Guards;
use crate::chat::history::History;
use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::turn::{TurnEnd, TurnLimits, TurnReport, UsageSum};
use crate::exec::cancel::Cancel;
use karyi_model::{Model, ModelError, ModelErrorKind, Stop, StopReason};

/// Conversation with a model.
pub struct Conversation {
    model: Arc<dyn Model>,
    runner: AnswerRunner,
    history: History,
    limits: TurnLimits,
    cancel: Cancel,
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
            history,
            limits,
            cancel,
        }
    }

    /// Works on a text of the user until the model is done, or a limit is reached.
    pub async fn turn(&mut self, text: &str, observer: &mut dyn Observer) -> TurnReport {
        self.history.push_user(text, self.runner.redactor());
        let time_limit = TimeLimit::start(&self.limits, &self.cancel);
        let mut turn = Turn::default();
        let end = loop {
            if let Some(end) = self.limit(&turn) {
                break end;
            }
            turn.steps += 1;
            observer.event(&ChatEvent::Request(turn.steps));
            let answer = self.model.answer(self.history.request());
            let ended = self.runner.run(answer, observer).await;
            turn.usage.add(ended.usage, self.model.config().price);
            if let Some(end) = self.take(&mut turn, ended) {
                break end;
            }
        };
        let end = match end {
            TurnEnd::Cancelled if time_limit.is_over() => TurnEnd::Time,
            end => end,
        };
        TurnReport {
            end,
            answer: turn.answer,
            steps: turn.steps,
            usage: turn.usage.total,
            cost: turn.usage.cost(),
            needs_approval: turn.needs_approval,
        }
    }

    /// Ends the session.
    pub async fn close(self) {
        self.runner.close().await;
    }

    fn limit(&self, turn: &Turn) -> Option<TurnEnd> {
        if self.runner.is_interrupted() {
            return Some(TurnEnd::Cancelled);
        }
        if turn.steps >= self.limits.steps {
            return Some(TurnEnd::Steps);
        }
        let is_over = |most: u64| turn.usage.tokens() >= most;
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
        match broken(&ended) {
            Some(error) => self.take_broken(turn, &ended, error),
            None => self.take_whole(turn, &ended),
        }
    }

    fn take_whole(&mut self, turn: &mut Turn, ended: &AnswerEnd) -> Option<TurnEnd> {
        let AnswerEnd { text, results, .. } = ended;
        let redactor = self.runner.redactor();
        if matches!(ended.ending, Ending::Cancelled) {
            self.history.push_answer(text, redactor);
            return Some(TurnEnd::Cancelled);
        }
        let is_last = results.calls.is_empty() && results.report.is_none();
        if is_last && text.trim().is_empty() {
            if turn.is_repeated {
                let message = "the model gave an empty answer twice";
                return Some(failed(ModelError::new(ModelErrorKind::Protocol, message)));
            }
            turn.is_repeated = true;
            return None;
        }
        turn.is_repeated = false;
        self.history.push_answer(counting(ended), redactor);
        // A warning beside a last answer concerns nobody.
        if is_last || results.calls.is_empty() && !results.is_refused && !is_invented(ended) {
            return Some(TurnEnd::Done);
        }
        let report = results.report.as_ref().map_or("", |report| report.as_str());
        self.history.push_report(report, redactor);
        turn.guards.check(results).map(TurnEnd::Refused)
    }

    /// Takes an answer that broke off. Without a call it is asked for again, else the model gets the results.
    fn take_broken(
        &mut self,
        turn: &mut Turn,
        ended: &AnswerEnd,
        error: ModelError,
    ) -> Option<TurnEnd> {
        let redactor = self.runner.redactor();
        let has_calls = ended.progress.calls > 0;
        if error.kind == ModelErrorKind::Context && !turn.is_shortened && !has_calls {
            turn.is_shortened = true;
            return match self.history.shorten(redactor) {
                true => None,
                false => Some(failed(error)),
            };
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
        let end = usize::try_from(ended.progress.calls_end).unwrap_or(usize::MAX);
        let whole = ended.text.get(..end).unwrap_or(&ended.text);
        self.history
            .push_answer(&format!("{whole}\n</tools>"), redactor);
        let report = ended.results.report.as_ref();
        let report = report.map_or("", |report| report.as_str());
        let told = format!(
            "{report}\nYour answer broke off here ({error}). The calls above have run, and nothing after them has; go on."
        );
        self.history.push_report(&told, redactor);
        turn.guards.check(&ended.results).map(TurnEnd::Refused)
    }
}

fn failed(error: ModelError) -> TurnEnd {
    TurnEnd::ModelFailed(Box::new(error))
}

fn is_invented(ended: &AnswerEnd) -> bool {
    ended.results.invented_at.is_some()
}

/// Returns the part of an answer that counts: what the model made up does not.
fn counting(ended: &AnswerEnd) -> &str {
    let end = ended.results.invented_at.unwrap_or(u64::MAX);
    let end = usize::try_from(end).unwrap_or(usize::MAX);
    ended.text.get(..end).unwrap_or(&ended.text)
}

/// Returns the error of an answer that broke off.
fn broken(ended: &AnswerEnd) -> Option<ModelError> {
    let error = |kind, message: String| Some(ModelError::new(kind, message));
    match &ended.ending {
        Ending::Failed(error) => Some(error.clone()),
        Ending::Stopped(Stop { reason, raw }) => match reason {
            StopReason::Content => error(
                ModelErrorKind::Content,
                format!("the provider stopped the answer: {raw}"),
            ),
            StopReason::Context => error(
                ModelErrorKind::Context,
                format!("the context window is full: {raw}"),
            ),
            StopReason::Length if ended.progress.is_in_block => error(
                ModelErrorKind::Request,
                format!("the answer reached its most tokens inside a block: {raw}"),
            ),
            StopReason::Length | StopReason::End | StopReason::Other => None,
        },
        Ending::Halted | Ending::Cancelled => None,
    }
}

/// Cancels a turn that takes too long.
struct TimeLimit {
    is_over: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl TimeLimit {
    fn start(limits: &TurnLimits, cancel: &Cancel) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let task = limits.time.map(|time| {
            let (is_over, cancel) = (Arc::clone(&is_over), cancel.clone());
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                is_over.store(true, Ordering::SeqCst);
                cancel.cancel();
            })
        });
        Self { is_over, task }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
