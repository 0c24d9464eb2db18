//! One call with the stages around it: resolve, run, redact, cap.

use std::time::Instant;

use serde_json::{Map, Value};

use crate::error::{ErrorCode, ToolError};
use crate::exec::Event;
use crate::exec::intake::Job;
use crate::exec::output::{Ending, Live, Output, Owner};
use crate::exec::resolve;
use crate::exec::stage::{Stage, redact_result};
use crate::limits;
use crate::outcome::{Outcome, Status};
use crate::tool::{Answer, Effect};
use crate::tools::Call;

/// What a tool came to.
type Answered = Result<Answer<Map<String, Value>>, ToolError>;

/// Runs one call and returns its outcome, redacted.
pub async fn run(stage: Stage, job: Job) -> Outcome {
    let since = Instant::now();
    let spec = job.call.spec();
    let is_of_session = matches!(job.call.effect(), Effect::Session);
    stage.tell(started(&job)).await;
    let output = output(&stage, &job);
    if is_of_session && !spec.starts_job {
        output.resume(&stage.screen);
    }
    let answered = answer(&stage, job.call, &output).await;
    let ending = match &answered {
        Ok(answer) if answer.status.goes_on() => Ending::Cut,
        Ok(_) | Err(_) => Ending::Whole,
    };
    let (view, rest) = output.finish(ending);
    if let Some(rest) = rest {
        stage.tell(rest).await;
    }
    let goes_on = match &answered {
        Ok(answer) => answer.status.goes_on(),
        Err(_) => !spec.starts_job,
    };
    if is_of_session && goes_on {
        output.leave(&stage.screen);
    }
    let mut outcome = outcome(job.id, spec.name, answered);
    if spec.starts_job
        && outcome
            .error
            .as_ref()
            .is_some_and(|error| error.code == ErrorCode::Cancelled)
    {
        outcome.status = Status::Killed;
        stage.job.note(&outcome.id, &spec, Status::Running);
    }
    let is_shown = outcome.error.is_none() || !view.text.is_empty();
    outcome.output = Some(view).filter(|_| is_of_session && is_shown);
    if is_of_session && outcome.error.is_none() {
        outcome.job_waits = Some(outcome.status == Status::AwaitingInput);
        stage.job.note(&outcome.id, &spec, outcome.status);
    }
    outcome.duration_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome.repairs = job.repairs;
    redact_result(&stage.redactor, &mut outcome);
    outcome
}

fn started(job: &Job) -> Event {
    let spec = job.call.spec();
    Event::Started {
        index: job.index,
        id: job.id.clone(),
        tool: spec.name,
        heading: spec.heading,
        title: title(&job.call),
    }
}

fn output(stage: &Stage, job: &Job) -> Output {
    let owner = Owner {
        index: job.index,
        id: stage.masked(&job.id),
    };
    let live = stage.is_live.then(|| Live {
        events: stage.events.clone(),
        cancel: stage.cancel.clone(),
    });
    Output::new(owner, &stage.redactor, stage.cap, live)
}

/// Resolves and runs. When the run is cancelled a call of the session is left alone, and a question
/// gets a moment to clear the terminal; work on files comes to its own end.
async fn answer(stage: &Stage, mut call: Call, output: &Output) -> Answered {
    resolve::resolve(&mut call, &stage.context.secrets)?;
    let mut context = stage.context.clone();
    context.sink = output.sinks();
    let patience = match call.effect() {
        Effect::Session => {
            if call.spec().starts_job {
                // A shell that is being started is waited for, so that it can be closed again.
                context.session.get().await?;
            }
            limits::NO_GRACE
        }
        Effect::Alone => limits::CANCEL_GRACE,
        Effect::Files(_) => return call.run(&context).await,
    };
    tokio::select! {
        biased;
        result = call.run(&context) => result,
        () = stage.cancel.cancelled_for(patience) => {
            Err(ToolError::new(ErrorCode::Cancelled, "the run was interrupted while the call ran"))
        }
    }
}

fn outcome(id: String, tool: &str, answered: Answered) -> Outcome {
    match answered {
        Err(error) => Outcome::failed(id, tool.into(), error),
        Ok(answer) => Outcome {
            id,
            tool: tool.into(),
            status: answer.status,
            error: answer.problem,
            fields: answer.output,
            output: None,
            duration_ms: 0,
            repairs: Vec::new(),
            job_waits: None,
        },
    }
}

/// Says in one short line what a call is about. Placeholders are shown, never values.
#[must_use]
pub fn title(call: &Call) -> String {
    let text = call.title();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("").trim();
    let mut short: String = first.chars().take(limits::MAX_TITLE_CHARS).collect();
    if short.len() < first.len() || lines.next().is_some() {
        short.push_str(" ...");
    }
    short
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
