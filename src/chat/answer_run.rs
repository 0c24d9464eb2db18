//! Runs one answer of a model: shows its prose and runs its calls while it arrives.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc};

use crate::chat::call_results::{AnswerResults, ResultCollector};
use crate::chat::observer::{ChatEvent, Observer};
use crate::exec::Event;
use crate::exec::decoder::{MessageDecoder, MessageProgress, PreparedCall};
use crate::exec::message_runner::{Chunk, MessageRunner, Pace, Unreadable};
use crate::exec::run_context::RunContext;
use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::limits;
use karyi_model::{Answer, ModelError, ModelErrorKind, ModelEvent, Stop, StopReason, Usage};
use karyi_pty::Session;
use karyi_syntax::Mode;
use karyi_syntax::grammar::Grammar;
use karyi_vault::redact::{Redacted, Redactor};

/// Runs the answers of one conversation, in one session.
pub struct AnswerRunner {
    run: RunContext,
    runner: MessageRunner,
    events: mpsc::Receiver<Redacted<Event>>,
    registry: Arc<Registry<Call>>,
    grammar: Arc<Grammar>,
}

/// An answer that has ended, with its calls.
#[derive(Debug)]
pub struct AnswerEnd {
    /// Text of the answer, blocks included.
    pub text: String,
    /// Reason for its end.
    pub ending: Ending,
    /// Tokens.
    pub usage: Usage,
    /// How far its calls were read.
    pub progress: MessageProgress,
    /// Results of its calls.
    pub results: AnswerResults,
}

/// Reason for the end of an answer.
#[derive(Debug)]
pub enum Ending {
    /// The model ended it.
    Stopped(Stop),
    /// The rest does not count: a block was refused, or the model made results up.
    Halted,
    /// The model failed, or its answer broke off.
    Failed(ModelError),
    /// The user interrupted it.
    Cancelled,
}

impl Ending {
    /// Returns true when text may be missing at the end.
    fn is_broken(&self) -> bool {
        match self {
            Self::Stopped(stop) => !matches!(stop.reason, StopReason::End | StopReason::Other),
            Self::Halted => false,
            Self::Failed(_) | Self::Cancelled => true,
        }
    }
}

/// Text, usage and ending of an answer.
struct Received {
    text: String,
    usage: Usage,
    ending: Ending,
}

impl AnswerRunner {
    /// Creates a runner; `context` makes the context of the calls from the receiver of their events.
    pub fn new(
        registry: Arc<Registry<Call>>,
        context: impl FnOnce(mpsc::Sender<Redacted<Event>>) -> RunContext,
    ) -> Self {
        let (sender, events) = mpsc::channel(limits::CHANNEL_DEPTH);
        let run = context(sender);
        Self {
            runner: MessageRunner::new(run.clone()),
            run,
            events,
            grammar: Arc::new(registry.grammar()),
            registry,
        }
    }

    /// Returns the redactor of the session.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.run.context.redactor
    }

    /// Returns true when no further call may start.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.run.cancel.is_interrupted()
    }

    /// Runs an answer. Returns once its calls have their results.
    pub async fn run(&mut self, answer: Answer, observer: &mut dyn Observer) -> AnswerEnd {
        let (chunks, receiver) = mpsc::channel(limits::CHANNEL_DEPTH);
        let decoder = MessageDecoder::new(
            Arc::clone(&self.registry),
            Arc::clone(&self.grammar),
            Mode::Repair,
        );
        let observer = Mutex::new(observer);
        let show = |event: &ChatEvent<'_>| {
            let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
            observer.event(event);
        };
        let halt = Notify::new();
        let Self {
            run,
            runner,
            events,
            ..
        } = self;
        let receive = receive(answer, chunks, run, &halt, &show);
        let work = async {
            let decoder = decoder.with_prose();
            let progress = runner.run_message(decoder, receiver, Pace::Stream).await;
            end_message(runner, run).await;
            progress
        };
        let collect = collect(events, run, &halt, &show);
        let (received, progress, results) = tokio::join!(receive, work, collect);
        show(&ChatEvent::StepEnded(received.usage));
        AnswerEnd {
            text: received.text,
            ending: received.ending,
            usage: received.usage,
            progress,
            results,
        }
    }

    /// Runs a call that no model wrote, and returns its report.
    pub async fn run_call(&mut self, call: Call) -> Option<Redacted> {
        let halt = Notify::new();
        let Self {
            run,
            runner,
            events,
            ..
        } = self;
        let work = async {
            let call = PreparedCall::standalone("0".to_owned(), call);
            runner.run_call(call).await;
            end_message(runner, run).await;
        };
        let ((), results) = tokio::join!(work, collect(events, run, &halt, &|_| {}));
        results.report
    }

    /// Ends the session: its shells and jobs.
    pub async fn close(mut self) {
        let close = self.runner.close();
        tokio::pin!(close);
        loop {
            tokio::select! {
                () = &mut close => return,
                _ = self.events.recv() => {}
            }
        }
    }
}

/// Emits the events at the end of a message.
async fn end_message(runner: &MessageRunner, run: &RunContext) {
    runner.emit_jobs().await;
    let terminal = run.context.sessions.current();
    let session = terminal.as_ref().map(|terminal| &terminal.session);
    let ended = Event::MessageEnded {
        is_interrupted: false,
        shell: session.map(Session::shell_name),
        note: session.and_then(Session::fallback),
    };
    runner.emit(ended).await;
}

/// Receives an answer and passes its text on.
async fn receive(
    mut answer: Answer,
    chunks: mpsc::Sender<Chunk>,
    run: &RunContext,
    halt: &Notify,
    show: &(dyn Fn(&ChatEvent<'_>) + Sync),
) -> Received {
    let (mut text, mut usage) = (String::new(), Usage::default());
    let ending = loop {
        let event = tokio::select! {
            biased;
            () = run.cancel.interrupted() => break Ending::Cancelled,
            () = halt.notified() => break Ending::Halted,
            event = answer.next() => event,
        };
        match event {
            Some(Ok(ModelEvent::Text(piece))) => {
                let room = limits::MAX_CHAT_ANSWER_BYTES.saturating_sub(text.len());
                let end = piece.floor_char_boundary(room);
                text.push_str(piece.get(..end).unwrap_or_default());
                // The receiver waits for the end.
                let _ = chunks.send(Ok(piece.into_bytes())).await;
            }
            Some(Ok(ModelEvent::Reasoning(piece))) => {
                show(&ChatEvent::Reasoning(
                    &run.context.redactor.redact_str(&piece),
                ));
            }
            Some(Ok(ModelEvent::Usage(later))) => usage = usage.updated_by(later),
            Some(Ok(ModelEvent::Retry(retry))) => show(&ChatEvent::Retry(&retry)),
            Some(Ok(ModelEvent::Stop(stop))) => break Ending::Stopped(stop),
            Some(Err(error)) => break Ending::Failed(error),
            None => {
                let message = "the answer ended without a reason";
                break Ending::Failed(ModelError::new(ModelErrorKind::Protocol, message));
            }
        }
    };
    // The connection closes before the calls have ended.
    drop(answer);
    if ending.is_broken() {
        let _ = chunks.send(Err(Unreadable)).await;
    }
    Received {
        text,
        usage,
        ending,
    }
}

/// Collects the results of a message up to its end.
async fn collect(
    events: &mut mpsc::Receiver<Redacted<Event>>,
    run: &RunContext,
    halt: &Notify,
    show: &(dyn Fn(&ChatEvent<'_>) + Sync),
) -> AnswerResults {
    let cwd = run.context.sessions.cwd().to_string_lossy().into_owned();
    let mut collector = ResultCollector::new(cwd, run.context.shown.report_bytes);
    while let Some(event) = events.recv().await {
        let is_last = matches!(event.get(), Event::MessageEnded { .. });
        match event.get() {
            Event::Prose(text) => show(&ChatEvent::Text(text)),
            other => show(&ChatEvent::Call(other)),
        }
        if collector.event(event, limits::MAX_CHAT_ANSWER_BYTES) {
            halt.notify_one();
        }
        if is_last {
            break;
        }
    }
    collector.finish(&run.context.redactor)
}
