//! Runs one answer of a model: shows its prose and runs its calls while it arrives.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc};

use crate::chat::answer_end::{AnswerEnd, Ending};
use crate::chat::call_results::{AnswerResults, ResultCollector};
use crate::chat::observer::{ChatEvent, Observer, show_reasoning};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::decoder::{MessageDecoder, PreparedCall};
use crate::exec::message_runner::{Chunk, MessageRunner, Pace, Unreadable};
use crate::exec::run_context::RunContext;
use crate::tool::plan_board::PlanBoard;
use crate::tool::{Registry, Tool as _};
use crate::tools::Call;
use crate::tools::core::plan::Plan;
use karyi_core::limits;
use karyi_core::outcome::{JobNews, Status};
use karyi_model::{Answer, ModelError, ModelErrorKind, ModelEvent, Retry, Usage};
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

    /// Returns the plan of the session.
    pub(super) fn plan(&self) -> &PlanBoard {
        &self.run.context.plan
    }

    /// Returns the jobs that go on.
    pub(super) async fn open_jobs(&self) -> Vec<JobNews> {
        self.run.jobs.open().await
    }

    /// Replaces the cancellation of the calls that follow.
    pub fn replace_cancel(&mut self, cancel: &Cancel) {
        self.run.replace_cancel(cancel.clone());
        self.runner.replace_cancel(cancel.clone());
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

    /// Runs a call that no model wrote, and returns its results.
    pub async fn run_call(&mut self, call: Call) -> AnswerResults {
        self.run_one(call, &mut Unseen).await
    }

    /// Runs a call that no model wrote, shows its events, and returns its report.
    pub async fn run_shown_call(
        &mut self,
        call: Call,
        observer: &mut dyn Observer,
    ) -> Option<Redacted> {
        self.run_one(call, observer).await.report
    }

    async fn run_one(&mut self, call: Call, observer: &mut dyn Observer) -> AnswerResults {
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
        let work = async {
            let call = PreparedCall::standalone("0".to_owned(), call);
            runner.run_call(call).await;
            end_message(runner, run).await;
        };
        let ((), results) = tokio::join!(work, collect(events, run, &halt, &show));
        results
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
    // A value may arrive in pieces.
    let mut reasoning = run.context.redactor.stream();
    let ending = loop {
        let event = tokio::select! {
            biased;
            () = run.cancel.interrupted() => break Ending::Cancelled,
            () = halt.notified() => break Ending::Halted,
            event = answer.next() => event,
        };
        match event {
            Some(Ok(ModelEvent::Text(piece))) => {
                show_reasoning(show, |out| reasoning.flush(out));
                let room = limits::MAX_CHAT_ANSWER_BYTES.saturating_sub(text.len());
                let end = piece.floor_char_boundary(room);
                text.push_str(piece.get(..end).unwrap_or_default());
                // The receiver waits for the end.
                let _ = chunks.send(Ok(piece.into_bytes())).await;
            }
            Some(Ok(ModelEvent::Reasoning(piece))) => {
                show_reasoning(show, |out| reasoning.push(&piece, out));
            }
            Some(Ok(ModelEvent::Usage(later))) => usage = usage.updated_by(later),
            Some(Ok(ModelEvent::Retry(Retry { error, delay }))) => {
                let error = error.masked(&run.context.redactor);
                show(&ChatEvent::Retry(&Retry { error, delay }));
            }
            Some(Ok(ModelEvent::Stop(stop))) => break Ending::Stopped(stop),
            Some(Err(error)) => break Ending::Failed(error.masked(&run.context.redactor)),
            None => {
                let message = "the answer ended without a reason";
                break Ending::Failed(ModelError::new(ModelErrorKind::Protocol, message));
            }
        }
    };
    // The connection closes before the calls have ended.
    drop(answer);
    show_reasoning(show, |out| reasoning.cut(out));
    if ending.is_broken() {
        let _ = chunks.send(Err(Unreadable)).await;
    }
    Received {
        text,
        usage,
        ending,
    }
}

/// Observer of a call that nobody watches.
struct Unseen;

impl Observer for Unseen {
    fn event(&mut self, _: &ChatEvent<'_>) {}
}

/// Returns true when a call has replaced the plan.
fn is_new_plan(event: &Event) -> bool {
    let Event::Finished { outcome, .. } = event else {
        return false;
    };
    let outcome = outcome.get();
    outcome.tool == Plan::SPEC.name && outcome.status == Status::Ok
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
        if is_new_plan(event.get()) {
            show(&ChatEvent::Plan(&run.context.plan.steps()));
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
