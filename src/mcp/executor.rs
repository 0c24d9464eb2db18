//! Executes the calls of one connection on this machine, in one session like `karyi run`.
//!
//! Nothing opens before the first call: neither the secret store nor a shell.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore, mpsc};

use crate::approval::Approver;
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::decoder::PreparedCall;
use crate::exec::message_runner::MessageRunner;
use crate::exec::resolve;
use crate::exec::run_context::RunContext;
use crate::exec::session_context::SessionContext;
use crate::exec::shorten;
use crate::mcp::call_queue::CallQueue;
use crate::mcp::elicitation::{self, ElicitationPrompter};
use crate::mcp::listing;
use crate::mcp::progress::Progress;
use crate::mcp::server::McpContext;
use crate::mcp::tool_result;
use crate::reference::prompt;
use crate::tool::context::{Prompter, blocking};
use crate::tool::registry::Entry;
use crate::tool::{Effect, Registry, decode, lenient};
use crate::tools::Call;
use crate::tools::offer::Offer;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::{JobNews, Outcome};
use karyi_pty::Session;
use karyi_vault::redact::Redacted;
use karyi_vault::session::{Need, Secrets};
use karyi_vault::substitute;

/// Creates the session; may wait for a keyring.
pub type PrepareSession = Arc<dyn Fn() -> Result<SessionContext, ToolError> + Send + Sync>;

/// Executor of the calls of one connection.
pub struct Executor {
    offer: Offer,
    registry: OnceLock<Registry<Call>>,
    prepare: PrepareSession,
    session: OnceCell<PreparedSession>,
    slots: Semaphore,
    next_id: AtomicU64,
    ending: Cancel,
    elicitation: Arc<elicitation::ElicitationState>,
}

/// Session with its queue of calls.
struct PreparedSession {
    work: SessionContext,
    queue: Arc<CallQueue>,
    /// Warnings already reported in a result.
    reported: Mutex<BTreeSet<String>>,
    /// Directory in the latest result.
    shown_cwd: Mutex<String>,
}

impl Executor {
    /// Creates an executor of the offered tools; `ending` cancels its calls.
    #[must_use]
    pub fn new(offer: Offer, prepare: PrepareSession, ending: Cancel) -> Self {
        Self {
            offer,
            registry: OnceLock::new(),
            prepare,
            session: OnceCell::new(),
            slots: Semaphore::new(limits::MAX_MCP_CALLS),
            next_id: AtomicU64::new(1),
            ending,
            elicitation: Arc::default(),
        }
    }

    fn registry(&self) -> &Registry<Call> {
        self.registry.get_or_init(|| self.offer.registry())
    }

    /// Returns the rules of the tools of an assistant that are offered.
    pub fn own_rules(&self) -> String {
        prompt::own_rules(self.registry())
    }

    /// Returns the listings of all tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.registry()
            .entries()
            .iter()
            .map(listing::tool)
            .collect()
    }

    /// Tells whether a tool exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.registry().get(name).is_some()
    }

    /// Prepares the session at once instead of at the first call.
    ///
    /// # Errors
    /// The error that every call would return.
    pub async fn open(&self) -> Result<(), ToolError> {
        self.session().await.map(drop)
    }

    async fn session(&self) -> Result<&PreparedSession, ToolError> {
        let prepare = || async {
            let prepare = Arc::clone(&self.prepare);
            let work = blocking(move || prepare()).await?;
            Ok(PreparedSession::new(work))
        };
        self.session.get_or_try_init(prepare).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The tool does not exist, or the call was cancelled.
    pub async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: &McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.registry().get(&request.name) else {
            return Err(self.unknown_tool(&request.name).await);
        };
        let Ok(_slot) = self.slots.try_acquire() else {
            return Ok(tool_result::from_error(&too_many()).into());
        };
        let session = match self.session().await {
            Ok(session) => session,
            Err(error) => return Ok(tool_result::from_error(&error).into()),
        };
        let arguments = Value::Object(request.arguments.take().unwrap_or_default());
        let call = match decode_call(entry, arguments) {
            Ok(call) => call,
            Err(error) => return Ok(tool_result::from_error(&session.masked(error).await).into()),
        };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed).to_string();
        let ticket = session.queue.enter(call.effect());
        let turn = tokio::select! {
            biased;
            () = context.ct.cancelled() => None,
            () = self.ending.cancelled() => None,
            turn = ticket.turn() => turn,
        };
        let _turn = turn.ok_or_else(cancelled)?;
        let cancel = Cancel::default();
        let secrets = (&session.work.context.secrets, &cancel);
        let shared = Arc::clone(&self.elicitation);
        let prompter = Arc::new(ElicitationPrompter::new(
            shared,
            context,
            &mut request,
            secrets,
        ));
        let running = RunningCall::new(
            session,
            (context, &self.ending),
            Arc::clone(&prompter),
            cancel,
        );
        let result = running.run(call, id).await?;
        Ok(match prompter.input_required() {
            Some(required) => required.into(),
            None => result.into(),
        })
    }

    /// Returns the current secrets of the session.
    ///
    /// # Errors
    /// The error that every call would return.
    pub async fn secrets(&self) -> Result<Secrets, ToolError> {
        let session = self.session().await?;
        Ok(session.secrets().await.clone())
    }

    /// Builds the error for an unknown tool. Its name is omitted if it cannot be masked.
    async fn unknown_tool(&self, name: &str) -> ErrorData {
        if self.registry().not_offered().contains(&name) {
            return tool_result::tool_not_offered(name);
        }
        match self.session().await {
            Ok(session) => {
                session.secrets().await;
                let redactor = &session.work.context.redactor;
                tool_result::unknown_tool(&redactor.redact_again(name))
            }
            Err(_) => tool_result::unknown_tool(""),
        }
    }

    /// Ends the session: shells, jobs and output files.
    pub async fn close(&self) {
        if let Some(session) = self.session.get() {
            session.work.close().await;
        }
    }
}

impl PreparedSession {
    fn new(work: SessionContext) -> Self {
        Self {
            queue: CallQueue::new(
                Arc::clone(&work.context.sessions),
                Arc::clone(&work.context.settings),
            ),
            reported: Mutex::default(),
            shown_cwd: Mutex::new(work.context.sessions.cwd().display().to_string()),
            work,
        }
    }

    /// Returns the secrets, up to date with their store.
    async fn secrets(&self) -> &Secrets {
        let secrets = &self.work.context.secrets;
        resolve::refresh(secrets, Need::Listed).await;
        secrets
    }

    async fn masked(&self, error: ToolError) -> ToolError {
        self.secrets().await;
        self.work.context.redactor.redact_error(error).into_inner()
    }
}

/// Call in progress.
struct RunningCall<'a> {
    session: &'a PreparedSession,
    context: &'a McpContext,
    ending: &'a Cancel,
    prompter: Arc<ElicitationPrompter>,
    cancel: Cancel,
    progress: Progress,
    collected: CollectedEvents,
}

/// Events of a call, for its result.
#[derive(Default)]
struct CollectedEvents {
    outcome: Option<Box<Outcome>>,
    jobs: Vec<JobNews>,
    warnings: Vec<String>,
}

impl<'a> RunningCall<'a> {
    fn new(
        session: &'a PreparedSession,
        (context, ending): (&'a McpContext, &'a Cancel),
        prompter: Arc<ElicitationPrompter>,
        cancel: Cancel,
    ) -> Self {
        Self {
            prompter,
            session,
            context,
            ending,
            cancel,
            progress: Progress::new(context),
            collected: CollectedEvents::default(),
        }
    }

    fn stage(&self, events: mpsc::Sender<Redacted<Event>>) -> RunContext {
        let mut stage = self.session.work.run_context(events, self.cancel.clone());
        stage.context.prompter = Arc::clone(&self.prompter) as Arc<dyn Prompter>;
        let approver = Arc::clone(&self.prompter) as Arc<dyn Approver>;
        let approvals = stage.policy_gate.approvals().with_approver(approver);
        stage.policy_gate = stage.policy_gate.with_approvals(approvals);
        stage.is_live = self.progress.is_requested();
        stage
    }

    async fn run(
        mut self,
        call: Call,
        id: String,
    ) -> Result<rmcp::model::CallToolResult, ErrorData> {
        let (events, mut received) = mpsc::channel(limits::CHANNEL_DEPTH);
        let runner = MessageRunner::new(self.stage(events));
        let stop = Stop::of(&call, self.session);
        let job = PreparedCall::standalone(id, call);
        let mut work = pin!(async {
            runner.run_call(job).await;
            runner.emit_jobs().await;
        });
        let (session, cancel) = (self.session, self.cancel.clone());
        let (context, ending) = (self.context, self.ending);
        let mut stopping = pin!(stop.when(session, (context, ending), &cancel));
        let mut is_stopped = false;
        loop {
            tokio::select! {
                biased;
                () = &mut work => break,
                Some(event) = received.recv() => self.collect(event),
                () = self.progress.due() => self.progress.notify(),
                () = &mut stopping, if !is_stopped => is_stopped = true,
            }
        }
        while let Ok(event) = received.try_recv() {
            self.collect(event);
        }
        if self.cancel.is_cancelled() {
            // The job may have started at the last moment.
            stop.interrupt(self.session);
        }
        self.progress.end().await;
        let mut outcome = self.collected.outcome.ok_or_else(cancelled)?;
        adapt_hint(&mut outcome);
        let mut left = self.session.work.context.shown.report_bytes;
        shorten::fit(&mut outcome, &mut left);
        let shown_cwd = self.session.shown_cwd.lock();
        Ok(tool_result::from_outcome(
            &outcome,
            (&self.collected.jobs, &self.collected.warnings),
            // A poisoned lock only means that another thread panicked between two changes.
            &mut shown_cwd.unwrap_or_else(PoisonError::into_inner),
        ))
    }

    fn collect(&mut self, event: Redacted<Event>) {
        match event.into_inner() {
            Event::Output { text, .. } => self.progress.push_output(&text),
            Event::Finished { outcome, .. } => self.collected.outcome = Some(outcome.into_inner()),
            Event::Jobs { news, .. } => self.collected.jobs = news,
            Event::Warning(warning) => {
                let reported = self.session.reported.lock();
                // A poisoned lock only means that another thread panicked between two changes.
                let mut reported = reported.unwrap_or_else(PoisonError::into_inner);
                if reported.insert(warning.message.clone()) {
                    let hint = &warning.hint;
                    self.collected
                        .warnings
                        .push(format!("{}; {hint}", warning.message));
                }
            }
            Event::Started { .. }
            | Event::Changes { .. }
            | Event::Unfinished { .. }
            | Event::Refused(_)
            | Event::Unreadable
            | Event::Prose(_)
            | Event::Tick
            | Event::MessageEnded { .. } => {}
        }
    }
}

/// Way to stop a call.
enum Stop {
    /// Interrupts its command.
    Command,
    /// Interrupts the job that it writes to.
    Job(Session),
    /// Cancels its token.
    Token,
}

impl Stop {
    fn of(call: &Call, session: &PreparedSession) -> Self {
        if !matches!(call.effect(), Effect::Session) {
            return Self::Token;
        }
        if call.spec().starts_job {
            return Self::Command;
        }
        match session.work.jobs.for_input(call.job()) {
            Ok(target) => Self::Job(target.terminal.session),
            Err(_) => Self::Token,
        }
    }

    /// Presses Ctrl+C; returns false if there was no job.
    fn interrupt(&self, session: &PreparedSession) -> bool {
        match self {
            Self::Command => session.work.context.sessions.interrupt(),
            Self::Job(session) => session.interrupt(),
            Self::Token => false,
        }
    }

    /// Waits for a cancellation and stops the call. A command gets Ctrl+C first; if it goes on, it
    /// becomes a job.
    async fn when(
        &self,
        session: &PreparedSession,
        (context, ending): (&McpContext, &Cancel),
        cancel: &Cancel,
    ) {
        let is_polite = tokio::select! {
            biased;
            () = ending.cancelled() => false,
            () = context.ct.cancelled() => !matches!(self, Self::Token),
        };
        if is_polite {
            // The shell may still be starting, without a job yet.
            let interrupted = async {
                while !self.interrupt(session) {
                    tokio::time::sleep(limits::INTERRUPT_PAUSE).await;
                }
                std::future::pending::<()>().await;
            };
            let _ = tokio::time::timeout(limits::CANCEL_GRACE, interrupted).await;
        }
        cancel.cancel();
    }
}

/// Decodes JSON arguments into a typed call.
fn decode_call(entry: &Entry<Call>, mut arguments: Value) -> Result<Call, ToolError> {
    let name = entry.spec.name;
    let hint = "see the input schema of the tool for its arguments and their types";
    let bad = |message: String| ToolError::new(ErrorCode::BadArguments, message).with_hint(hint);
    lenient::convert(&mut arguments, entry.schema.annotated());
    let arguments = decode::json_arguments(arguments, &entry.schema).map_err(|mismatch| {
        let error = bad(mismatch.message(name));
        match mismatch.hint {
            Some(own) => error.with_hint(format!("{own}; {hint}")),
            None => error,
        }
    })?;
    (entry.from_json)(arguments)
        .map_err(|error| bad(format!("an argument of {name} is not valid: {error}")))
}

/// Returns the secret that an error is about, or a placeholder for its name.
fn secret_name(error: &ToolError) -> &str {
    error.names.first().map_or("NAME", String::as_str)
}

/// Replaces hints that do not apply to MCP clients.
fn adapt_hint(outcome: &mut Outcome) {
    let Some(error) = &mut outcome.error else {
        return;
    };
    error.hint = match error.code {
        ErrorCode::SecretPromptUnavailable => {
            let words = ("no user is available to enter it", "the client cannot ask");
            error.message = error.message.replace(words.0, words.1);
            format!(
                "the client cannot open a page for it (elicitation in URL mode); let the user store it with `karyi var \
                 set {}`, or start karyi mcp with --vars-fd",
                secret_name(error)
            )
        }
        ErrorCode::ApprovalRequired => {
            "the client cannot ask the user (elicitation); start karyi mcp with --allow NAME".into()
        }
        // Other causes have hints of their own.
        ErrorCode::UndefinedVariable if error.hint.starts_with(substitute::ASK_FIRST) => format!(
            "{}: call get_value with the key {}, and use it from the next call on",
            substitute::ASK_FIRST,
            secret_name(error)
        ),
        _ => return,
    };
}

fn too_many() -> ToolError {
    let message = format!("{} calls are in progress", limits::MAX_MCP_CALLS);
    ToolError::new(ErrorCode::SessionBusy, message).with_hint("wait for one of them to end")
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
