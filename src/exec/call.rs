//! One call with the stages around it: resolve, run, redact, cap.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::capped::Cap;
use crate::error::{ErrorCode, ToolError};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::intake::Job;
use crate::exec::output::{Ending, Output, Owner};
use crate::exec::resolve;
use crate::outcome::{Outcome, Status};
use crate::tool::{Answer, Context, Effect};
use crate::tools::Call;
use crate::vault::redact::Redactor;

/// What every call of a run shares.
#[derive(Clone)]
pub struct Stage {
    /// What the tools may use.
    pub context: Context,
    /// How much of a command's output a result keeps.
    pub cap: Cap,
    /// Whether output is shown while it comes.
    pub is_live: bool,
    /// Whether calls are only described.
    pub is_dry_run: bool,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The command that holds the session's terminal.
    pub job: CurrentJob,
}

/// Remembers which command still runs, so that its end can be reported under its id.
#[derive(Debug, Clone, Default)]
pub struct CurrentJob(Arc<Mutex<Option<String>>>);

impl CurrentJob {
    /// Takes the id of the command that still runs.
    #[must_use]
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes how a call of the session ended.
    fn note(&self, id: &str, call: &'static str, status: Status) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Status::AwaitingInput | Status::AcceptsInput | Status::Stopped | Status::Running => {
                if call == "command" {
                    *current = Some(id.to_owned());
                }
            }
            _ => *current = None,
        }
    }
}

impl Stage {
    /// Sends an event; a watcher that is gone is no reason to stop.
    pub async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    /// Runs one call and returns its outcome, redacted.
    pub async fn run(self, job: Job) -> Outcome {
        let started = Instant::now();
        let tool = job.call.spec().name;
        let redactor = Redactor::new(&self.context.secrets);
        self.tell(Event::Started {
            index: job.index,
            id: job.id.clone(),
            tool,
            title: title(&job.call),
        })
        .await;
        let has_output = matches!(job.call.effect(), Effect::Session);
        let owner = Owner {
            index: job.index,
            id: job.id.clone(),
        };
        let live = self.is_live.then(|| self.events.clone());
        let output = Output::new(owner, &redactor, self.cap, live);
        let result = self.clone().call(job.call, &output).await;
        let ending = match &result {
            Ok(answer) if !matches!(answer.status, Status::Ok | Status::Failed) => Ending::Cut,
            _ => Ending::Whole,
        };
        let (view, rest) = output.finish(ending);
        if let Some(rest) = rest {
            self.tell(rest).await;
        }
        let mut outcome = Outcome {
            id: job.id,
            tool: tool.into(),
            status: Status::Ok,
            error: None,
            fields: Map::new(),
            output: None,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            repairs: job.repairs,
            job_waits: None,
        };
        match result {
            Ok(answer) => {
                if has_output {
                    outcome.job_waits = Some(answer.status == Status::AwaitingInput);
                    self.job.note(&outcome.id, tool, answer.status);
                }
                outcome.status = answer.status;
                outcome.fields = answer.output;
                outcome.error = answer.problem;
                outcome.output = has_output.then_some(view);
            }
            Err(error) => {
                outcome.status = Status::of_error(error.code);
                outcome.error = Some(error);
                outcome.output = Some(view).filter(|view| !view.text.is_empty());
            }
        }
        redact(&mut outcome, &self.context);
        outcome
    }

    /// Resolves and runs; a call of the session is left alone when the run is cancelled.
    async fn call(
        self,
        mut call: Call,
        output: &Output,
    ) -> Result<Answer<Map<String, Value>>, ToolError> {
        resolve::resolve(&mut call, &self.context.secrets)?;
        let mut context = self.context;
        context.sink = output.sinks();
        let is_abandoned = matches!(call.effect(), Effect::Session | Effect::Alone);
        tokio::select! {
            biased;
            result = call.run(&context) => result,
            () = self.cancel.cancelled(), if is_abandoned => {
                Err(ToolError::new(ErrorCode::Cancelled, "the run was interrupted while the call ran"))
            }
        }
    }
}

/// Masks values in everything of an outcome that is text. The values are read anew: the call may
/// have brought one.
fn redact(outcome: &mut Outcome, context: &Context) {
    let redactor = Redactor::new(&context.secrets);
    for value in outcome.fields.values_mut() {
        redactor.redact_json(value);
    }
    if let Some(error) = &mut outcome.error {
        error.message = redactor.redact_str(&error.message).into_owned();
        error.hint = redactor.redact_str(&error.hint).into_owned();
    }
}

/// Says in one line what a call is about. Placeholders are shown, never values.
#[must_use]
pub fn title(call: &Call) -> String {
    let line = match call {
        Call::Command(args) => args
            .name
            .clone()
            .unwrap_or_else(|| args.text.source().to_owned()),
        Call::Edit(args) => list(args.files.iter().map(|file| file.src.source())),
        Call::Read(args) => {
            let files = args.files.iter().map(|file| file.src.source());
            list(files.chain(args.searches.iter().map(|search| search.pattern.source())))
        }
        Call::GetValue(args) => args.key.clone(),
        Call::Input(args) => args.text.source().to_owned(),
        Call::Ctrl(args) => args.key.clone(),
    };
    let mut lines = line.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("").trim();
    let mut short: String = first.chars().take(100).collect();
    if short.len() < first.len() || lines.next().is_some() {
        short.push_str(" ...");
    }
    short
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Makes the outcome of a call whose task panicked.
#[must_use]
pub fn panicked(id: String, tool: &'static str) -> Outcome {
    let error = ToolError::new(
        ErrorCode::Internal,
        format!("the tool {tool} stopped unexpectedly"),
    );
    Outcome::failed(id, tool.into(), error)
}

/// Makes the outcome of a call that was not started.
#[must_use]
pub fn not_started(id: String, call: &Call, error: ToolError) -> Outcome {
    Outcome::failed(id, call.spec().name.into(), error)
}
