//! One call with the stages around it: resolve, run, redact, cap.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::exec::Event;
use crate::exec::intake::Job;
use crate::exec::jobs::Target;
use crate::exec::output::{Ending, Live, Output, Owner, Watcher};
use crate::exec::resolve;
use crate::exec::stage::{Stage, redact_result};
use crate::tool::{Answer, Context, Effect, Spec};
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::{Outcome, Status};
use karyi_files::transaction::Recorder;

/// What a tool came to.
type Answered = Result<Answer<Map<String, Value>>, ToolError>;

/// What is known of a call beside its arguments.
struct About {
    index: u64,
    id: String,
    spec: Spec,
    title: String,
    since: Instant,
}

/// Runs one call and returns its outcome, redacted.
pub async fn run(stage: Stage, job: Job) -> Outcome {
    let about = About {
        index: job.index,
        id: job.id,
        spec: job.call.spec(),
        title: title(&job.call),
        since: Instant::now(),
    };
    stage.tell(started(&about)).await;
    let mut call = job.call;
    let warnings = stage.permits.warnings(&mut call, &stage.context.secrets);
    let secrets = &stage.context.secrets;
    let resolved = stage.permits.check_ends(&mut call, secrets);
    let resolved = resolved.and_then(|()| resolve::resolve(&mut call, secrets));
    let is_resolved = resolved.is_ok();
    let mut outcome = match resolved {
        Err(error) => outcome(&about, Err(error)),
        Ok(()) if matches!(call.effect(), Effect::Session) => {
            of_session(&stage, &about, call).await
        }
        Ok(()) => of_its_own(&stage, &about, call).await,
    };
    outcome.repairs = job.repairs;
    let duration = about.since.elapsed();
    outcome.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // What karyi itself says of placeholders, here and in the warnings, is no text of a program: it is
    // masked as it leaves, and its placeholders stay as they are.
    if is_resolved {
        redact_result(&stage.redactor, &mut outcome);
    }
    if !warnings.is_empty() {
        outcome.fields.insert("warnings".into(), warnings.into());
    }
    outcome
}

async fn of_its_own(stage: &Stage, about: &About, call: Call) -> Outcome {
    // A job's output may be what is read.
    stage.jobs.write_files();
    let context = Context {
        recorder: Recorder {
            call: stage.masked(&about.id),
            tool: about.spec.name.to_owned(),
            ..stage.context.recorder.clone()
        },
        ..stage.context.clone()
    };
    let answered = answer(stage, call, context, limits::CANCEL_GRACE).await;
    outcome(about, answered)
}

/// Runs a call that speaks to a shell.
async fn of_session(stage: &Stage, about: &About, call: Call) -> Outcome {
    let target = match target(stage, about, &call).await {
        Ok(target) => target,
        Err(error) => return outcome(about, Err(error)),
    };
    let owner = Owner {
        index: about.index,
        id: stage.masked(&about.id),
    };
    if let Some(earlier) = target.output.attach(owner, watcher(stage)) {
        stage.pass_on(earlier).await;
    }
    let answered = answer(stage, call, context(stage, &target), limits::NO_GRACE);
    let answered = while_shown(stage, &target, answered).await;
    let mut outcome = outcome(about, answered);
    if about.spec.starts_job && outcome.is_cancelled() {
        outcome.status = Status::Killed;
    }
    settle(stage, about, &mut outcome, &target).await;
    outcome
}

/// Waits for an answer; a watcher sees meanwhile what is held back, should nothing come after it.
async fn while_shown(
    stage: &Stage,
    target: &Target,
    answered: impl Future<Output = Answered>,
) -> Answered {
    let mut answered = std::pin::pin!(answered);
    loop {
        tokio::select! {
            biased;
            answered = &mut answered => return answered,
            () = tokio::time::sleep(limits::SHOW_HELD_AFTER), if stage.is_live => {}
        }
        if let Some(event) = target.output.show_idle(stage.is_watched) {
            stage.pass_on(event).await;
        }
    }
}

/// Returns who watches. A value may be hidden between colours, so they stay only while there is none.
fn watcher(stage: &Stage) -> Option<Watcher> {
    let has_colour = stage.has_colour && stage.redactor.is_idle();
    stage.is_live.then_some(if has_colour {
        Watcher::InColour
    } else {
        Watcher::Plain
    })
}

/// Finds the shell and the job a call speaks to. A shell that is being started is waited for, so
/// that it can be closed again.
async fn target(stage: &Stage, about: &About, call: &Call) -> Result<Target, ToolError> {
    if about.spec.starts_job {
        stage.jobs.for_command(&about.id, stage.cap).await
    } else if call.ends_job() {
        stage.jobs.for_end(call.job())
    } else {
        stage.jobs.for_input(call.job())
    }
}

fn context(stage: &Stage, target: &Target) -> Context {
    let live = stage.is_live.then(|| Live {
        events: stage.events.clone(),
        cancel: stage.cancel.clone(),
    });
    let (output, rest) = (target.output.clone(), target.output.clone());
    Context {
        terminal: Some(target.terminal.clone()),
        background: target.background.clone(),
        sink: Arc::new(move || output.sink(live.clone())),
        rest: Arc::new(move || rest.sink(None)),
        ..stage.context.clone()
    }
}

/// Adds what the call printed to its outcome, and notes whether its job goes on.
async fn settle(stage: &Stage, about: &About, outcome: &mut Outcome, target: &Target) {
    if target.background.is_some() {
        settle_background(stage, outcome, target).await;
        return;
    }
    let is_killed = outcome.status == Status::Killed;
    let goes_on = is_killed || target.terminal.session.job().is_some();
    let leaves_jobs = target.terminal.session.has_unclaimed_background();
    let is_broken = outcome.error.is_some() || was_ended_by_signal(outcome);
    let ending = if goes_on {
        Ending::Cut
    } else if is_broken || target.output.may_go_on(leaves_jobs) {
        Ending::Broken
    } else {
        Ending::Whole
    };
    if leaves_jobs {
        target.output.keep_whole();
    }
    let (view, rest) = target.output.detach(ending);
    if let Some(rest) = rest.filter(|_| stage.is_live) {
        stage.pass_on(rest).await;
    }
    let is_shown = outcome.error.is_none() || !view.text.is_empty();
    if view.omitted_bytes > 0 {
        name_file(outcome, &target.output);
    }
    outcome.output = Some(view).filter(|_| is_shown);
    if goes_on && !target.job.is_empty() && target.job != outcome.id {
        outcome
            .fields
            .insert("job".into(), target.job.clone().into());
    }
    if goes_on && let Some(program) = target.terminal.session.full_screen_program() {
        outcome.fields.insert("screen".into(), program.into());
    }
    // One that was stopped and left the terminal to the shell is in the background from now on.
    let status = match outcome.status {
        Status::Killed => Status::Running,
        _ if outcome.fields.contains_key("exit_code") => Status::Ok,
        status => status,
    };
    if outcome.error.is_none() || is_killed {
        stage.jobs.note(&about.title, target, status, about.since);
        let waits = outcome.status == Status::AwaitingInput;
        outcome.job_waits = Some(waits || stage.jobs.has_question(&target.job).await);
    }
}

/// Names the job in the background that the call was for; what it printed is in its file.
async fn settle_background(stage: &Stage, outcome: &mut Outcome, target: &Target) {
    let _ = target.output.detach(Ending::Whole);
    outcome
        .fields
        .insert("job".into(), target.job.clone().into());
    outcome.job_waits = Some(stage.jobs.has_question(&target.job).await);
}

/// Exit statuses that tell of a signal: 128 and its number.
const SIGNAL_EXIT_CODES: std::ops::RangeInclusive<i64> = 129..=192;

/// Whether a signal has ended the job, or the program that gave it its exit status.
fn was_ended_by_signal(outcome: &Outcome) -> bool {
    let code = outcome.fields.get("exit_code").and_then(Value::as_i64);
    code.is_some_and(|code| SIGNAL_EXIT_CODES.contains(&code))
}

fn name_file(outcome: &mut Outcome, output: &Output) {
    let (key, value) = match output.file() {
        Some(Ok(path)) => ("output_file", path),
        Some(Err(problem)) => ("output_file_problem", problem),
        None => return,
    };
    outcome.fields.insert(key.into(), value.into());
}

fn started(about: &About) -> Event {
    Event::Started {
        index: about.index,
        id: about.id.clone(),
        tool: about.spec.name,
        heading: about.spec.heading,
        title: about.title.clone(),
    }
}

/// Runs a call whose secrets are resolved. When the run is cancelled a call of the session is left alone, and a question
/// gets a moment to clear the terminal; work on files comes to its own end.
async fn answer(stage: &Stage, call: Call, context: Context, patience: Duration) -> Answered {
    if matches!(call.effect(), Effect::Files(_)) {
        return call.run(&context).await;
    }
    tokio::select! {
        biased;
        result = call.run(&context) => result,
        () = stage.cancel.cancelled_for(patience) => {
            Err(ToolError::new(ErrorCode::Cancelled, "the run was interrupted while the call ran"))
        }
    }
}

fn outcome(about: &About, answered: Answered) -> Outcome {
    let (id, tool) = (about.id.clone(), about.spec.name);
    match answered {
        Err(error) => Outcome::failed(id, tool.into(), error),
        Ok(answer) => Outcome {
            id,
            tool: tool.into(),
            status: answer.status,
            error: answer.problem.map(|error| error.of_tool(tool)),
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
