//! Runs one call: resolves its placeholders, runs the tool, caps its result, which is masked, and masks what is added to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::exec::Event;
use crate::exec::call_title::title;
use crate::exec::cancel::Cancel;
use crate::exec::consent;
use crate::exec::decoder::{Approval, PreparedCall};
use crate::exec::edit_trial::{self, ChangedFile};
use crate::exec::interruption::{self, StopKind};
use crate::exec::jobs::JobTarget;
use crate::exec::output::{Ending, LiveOutput, OutputOwner, OutputPipeline, WatcherStyle};
use crate::exec::output_log::LogLifetime;
use crate::exec::resolve;
use crate::exec::run_context::RunContext;
use crate::exec::shorten;
use crate::tool::context::blocking;
use crate::tool::sessions::JOB_PREFIX;
use crate::tool::{Answer, Context, Effect, Seconds, Spec};
use crate::tools::{Call, counted_texts};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::head_tail::{Cap, ShortenedText};
use karyi_core::limits;
use karyi_core::outcome::{Outcome, Status};
use karyi_files::edit::Diffs;
use karyi_files::transaction::Recorder;
use karyi_vault::redact::Redacted;

/// Result of a tool.
type ToolResult = Result<Answer<Redacted<Map<String, Value>>>, ToolError>;

/// Result of a call, in parts.
struct CallResult {
    /// Facts, and fields beside those of the tool; not yet masked.
    outcome: Outcome,
    error: Option<Redacted<ToolError>>,
    fields: Redacted<Map<String, Value>>,
    output: Option<Redacted<ShortenedText>>,
    /// Note for the model about the approval of the call.
    note: Option<String>,
}

/// Metadata of a call.
struct CallInfo {
    index: u64,
    id: String,
    spec: Spec,
    title: String,
    line_count: usize,
    label: Option<String>,
    since: Instant,
    /// True if the call names its time limit.
    is_limited: bool,
    /// Its approval so far.
    approved: Approval,
    /// Set when the next call types into this one.
    hand_over: Cancel,
}

/// Runs one call and returns its outcome. `hand_over` is set when the next call types into it.
pub async fn run(run: RunContext, prepared: PreparedCall, hand_over: Cancel) -> Redacted<Outcome> {
    let timeout = prepared.call.timeout().map(Seconds::duration);
    let info = CallInfo {
        index: prepared.index,
        id: prepared.id,
        spec: prepared.call.spec(),
        title: title(&prepared.call),
        line_count: line_count(&prepared.call),
        label: label(&prepared.call),
        since: Instant::now(),
        is_limited: timeout.is_some(),
        approved: prepared.approved,
        hand_over,
    };
    run.emit(started_event(&info)).await;
    let mut call = prepared.call;
    let mut warnings = run.policy_gate.warnings(&mut call, &run.context.secrets);
    warnings.extend(timeout.and_then(long_timeout_warning));
    warnings.extend(prepared.notes);
    let secrets = &run.context.secrets;
    let resolved = check_role(&run, info.spec.name).await;
    let resolved = resolved.and_then(|()| run.policy_gate.check_expiry(&mut call, secrets));
    let resolved = resolved.and_then(|()| resolve::resolve(&mut call, secrets));
    let mut result = match resolved {
        // The message is karyi's own, and its placeholders are the model's.
        Err(error) => {
            let (id, tool) = (info.id.clone(), info.spec.name.into());
            CallResult::new(Outcome::failed(id, tool, error))
        }
        Ok(()) if matches!(call.effect(), Effect::Session) => {
            run_in_session(&run, &info, call).await
        }
        Ok(()) => run_without_session(&run, &info, call).await,
    };
    result.outcome.repairs = prepared.repairs;
    let duration = info.since.elapsed();
    result.outcome.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    warnings.extend(result.note.take());
    if !warnings.is_empty() {
        let fields = &mut result.outcome.fields;
        fields.insert("warnings".into(), warnings.into());
    }
    let outcome = result.seal(&run);
    log_call(&run, outcome.get());
    outcome
}

/// Checks that the role of the session has a tool; a session without a role has those that its calls can name.
async fn check_role(run: &RunContext, tool: &'static str) -> Result<(), ToolError> {
    match run.context.supervision.clone() {
        None => Ok(()),
        Some(session) if session.has_tool(tool) => Ok(()),
        Some(session) => blocking(move || session.check_tool(tool)).await,
    }
}

/// Adds a line about the call to the log.
fn log_call(run: &RunContext, outcome: &Outcome) {
    if let Some(log) = &run.context.log {
        let (id, tool, status) = (&outcome.id, &outcome.tool, outcome.status);
        let code = outcome.error.as_ref().map(|error| error.code.as_str());
        let code = code.map_or_else(String::new, |code| format!(" {code}"));
        let (status, time) = (status.as_str(), outcome.duration_ms);
        log(&format!("call {id}: {tool} {status}{code} in {time} ms"));
    }
}

impl CallResult {
    fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            error: None,
            fields: Redacted::default(),
            output: None,
            note: None,
        }
    }

    /// Takes the result of a tool.
    fn of(run: &RunContext, info: &CallInfo, result: ToolResult) -> Self {
        let (id, tool) = (info.id.clone(), info.spec.name.to_owned());
        let (mut result, error) = match result {
            Err(error) => {
                let mut outcome = Outcome::failed(id, tool, error);
                let error = outcome.error.take();
                (Self::new(outcome), error)
            }
            Ok(answer) => {
                let error = answer.problem.map(|error| error.of_tool(&tool));
                let mut result = Self::new(Outcome::empty(id, tool, answer.status));
                result.fields = answer.output;
                (result, error)
            }
        };
        let redactor = &run.context.redactor;
        result.error = error.map(|error| redactor.redact_error(error));
        result
    }

    /// Shortens the result of the tool, and adds it to the masked rest.
    fn seal(self, run: &RunContext) -> Redacted<Outcome> {
        let counted = counted_texts(&self.outcome.tool);
        let shown = (run.context.shown, counted);
        let fields = self.fields.map_by(shown, |mut fields, (shown, counted)| {
            shorten::shorten_files(&mut fields, counted, &shown);
            fields
        });
        let mut outcome = run.context.redactor.seal(self.outcome);
        outcome.change(fields, |outcome, fields| {
            let mut added = std::mem::replace(&mut outcome.fields, fields);
            // A tool may have warnings of its own.
            if let Some(Value::Array(own)) = outcome.fields.get_mut("warnings")
                && let Some(Value::Array(more)) = added.shift_remove("warnings")
            {
                own.extend(more);
            }
            outcome.fields.extend(added);
        });
        if let Some(error) = self.error {
            outcome.change(error, |outcome, error| outcome.error = Some(error));
        }
        if let Some(output) = self.output {
            outcome.change(output, |outcome, output| outcome.output = Some(output));
        }
        outcome
    }
}

async fn run_without_session(run: &RunContext, info: &CallInfo, call: Call) -> CallResult {
    let of = (info.id.as_str(), info.approved);
    let note = match consent::check_outside_session(run, of, &call).await {
        Ok(note) => note,
        Err(error) => return CallResult::of(run, info, Err(error)),
    };
    // The call may read the output file of a job.
    run.jobs.write_files();
    let context = Context {
        recorder: Recorder {
            call: run.masked(&info.id).into_string(),
            tool: info.spec.name.to_owned(),
            ..run.context.recorder.clone()
        },
        ..run.context.clone()
    };
    let is_outside = matches!(call.effect(), Effect::Outside { is_write: true, .. });
    let patience = match is_outside {
        true => limits::NO_GRACE,
        false => limits::CANCEL_GRACE,
    };
    let changes = unseen_changes(run, info, &call).await;
    let result = match call.output_cap(&context.settings) {
        Some(cap) => run_printing(run, info, call, (context, cap)).await,
        None => CallResult::of(run, info, execute(run, call, context, patience).await),
    };
    if result.error.is_none()
        && let Some(files) = changes
    {
        let index = info.index;
        run.emit(Event::Changes { index, files }).await;
    }
    let mut result = CallResult { note, ..result };
    let code = result.error.as_ref().map(|error| error.get().code);
    if is_outside && code == Some(ErrorCode::Cancelled) {
        let fields = &mut result.outcome.fields;
        fields.insert("outcome".into(), "unknown".into());
        let hint = "it may have taken effect: look before you send it again";
        let error = interrupted_error().with_hint(hint);
        result.error = Some(run.context.redactor.redact_error(error));
    }
    result
}

/// Runs a call that prints, and shows its output as that of a command.
async fn run_printing(
    run: &RunContext,
    info: &CallInfo,
    call: Call,
    (context, cap): (Context, Cap),
) -> CallResult {
    let output = OutputPipeline::new(&run.context.redactor, cap, None, None);
    let owner = OutputOwner {
        index: info.index,
        id: run.masked(&info.id),
    };
    // Nothing was printed before.
    let _ = output.attach(owner, watcher_style(run));
    let (live, printed) = (live_output(run), output.clone());
    let context = Context {
        sink: Arc::new(move || printed.sink(live.clone())),
        ..context
    };
    let result = execute(run, call, context, limits::NO_GRACE);
    let result = show_idle_until(run, &output, result).await;
    let mut result = CallResult::of(run, info, result);
    let ending = match result.error {
        Some(_) => Ending::Broken,
        None => Ending::Whole,
    };
    let (view, rest) = output.detach(ending);
    if let Some(rest) = rest.filter(|_| run.is_live) {
        run.emit_sealed(rest).await;
    }
    let is_shown = result.error.is_none() || !view.get().text.is_empty();
    result.output = Some(view).filter(|_| is_shown);
    result
}

/// Returns what an edit is about to change, for a person who watches and has not seen it in a question. The report has
/// only what the model does not know.
async fn unseen_changes(
    run: &RunContext,
    info: &CallInfo,
    call: &Call,
) -> Option<Vec<ChangedFile>> {
    let is_shown = run.is_watched && run.context.shown.diffs == Diffs::Changed;
    if !is_shown || info.approved == Approval::ByPerson {
        return None;
    }
    edit_trial::changes(&run.context, call).await
}

/// Runs a call that uses a shell.
async fn run_in_session(run: &RunContext, info: &CallInfo, call: Call) -> CallResult {
    let target = match find_target(run, info, &call).await {
        Ok(target) => target,
        Err(error) => return CallResult::of(run, info, Err(error)),
    };
    let of = (info.id.as_str(), info.approved);
    let note = match consent::check_in_session(run, of, &call, &target).await {
        Ok(note) => note,
        Err(error) => return CallResult::of(run, info, Err(error)),
    };
    let owner = OutputOwner {
        index: info.index,
        id: run.masked(&info.id),
    };
    if let Some(earlier) = target.output.attach(owner, watcher_style(run)) {
        run.emit_sealed(earlier).await;
    }
    let is_answered = run.has_keyboard && info.spec.starts_job;
    let answers = is_answered.then(|| info.hand_over.flag());
    target.terminal.session.set_answers(answers);
    let result = execute(run, call, call_context(run, &target), limits::NO_GRACE);
    let result = hand_over_in_time(info, &target, result);
    let result = show_idle_until(run, &target.output, result).await;
    let is_cancelled = matches!(&result, Err(error) if error.code == ErrorCode::Cancelled);
    let is_stopped = info.spec.starts_job && run.cancel.has_spared_session();
    let is_stopped = is_stopped && matches!(&result, Ok(answer) if answer.status == Status::Failed);
    let mut result = CallResult::of(run, info, result);
    result.note = note;
    if info.spec.starts_job && is_cancelled {
        result.outcome.status = Status::Killed;
    }
    record_output(run, info, &mut result, &target).await;
    if is_stopped {
        result.outcome.status = Status::Killed;
        result.error = Some(run.context.redactor.redact_error(interrupted_error()));
    }
    result
}

/// Waits for the result. A command without a time limit goes on as a job when the next call has waited long enough to
/// type into it.
async fn hand_over_in_time(
    info: &CallInfo,
    target: &JobTarget,
    result: impl Future<Output = ToolResult>,
) -> ToolResult {
    let mut result = std::pin::pin!(result);
    let is_due = async {
        info.hand_over.cancelled().await;
        let at = info.since + limits::HAND_OVER_AFTER;
        tokio::time::sleep_until(at.into()).await;
    };
    tokio::select! {
        biased;
        result = &mut result => return result,
        () = is_due, if info.spec.starts_job && !info.is_limited => {}
    }
    loop {
        // Again, if the shell had not begun the command.
        target.terminal.session.hand_over();
        tokio::select! {
            biased;
            result = &mut result => return result,
            () = tokio::time::sleep(limits::HAND_OVER_AFTER) => {}
        }
    }
}

/// Returns a warning about a time limit that was probably meant in another unit.
fn long_timeout_warning(timeout: Duration) -> Option<String> {
    let seconds = timeout.as_secs_f64();
    let hours = seconds / 3600.0;
    let text = format!("timeout is in seconds: {seconds} are {hours:.1} hours");
    (timeout > limits::LONG_TIMEOUT).then_some(text)
}

/// Waits for the result; meanwhile shows a watcher withheld output when no more arrives, and a person the line that is
/// not finished.
async fn show_idle_until(
    run: &RunContext,
    output: &OutputPipeline,
    result: impl Future<Output = ToolResult>,
) -> ToolResult {
    let mut result = std::pin::pin!(result);
    let mut shown_at: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            result = &mut result => return result,
            () = tokio::time::sleep(limits::SHOW_HELD_AFTER), if run.is_live => {}
        }
        if let Some(event) = output.show_idle(run.is_watched) {
            run.emit_sealed(event).await;
        }
        let is_due = shown_at.is_none_or(|at| at.elapsed() >= limits::SPINNER_STEP);
        if run.is_watched
            && is_due
            && let Ok(place) = run.events.try_reserve()
            && let Some(event) = output.show_unfinished()
        {
            place.send(event);
            shown_at = Some(Instant::now());
        }
    }
}

/// Returns the watcher's style. Colours can split a value, so they are kept only while no secret is known.
fn watcher_style(run: &RunContext) -> Option<WatcherStyle> {
    let has_colour = run.has_colour && run.context.redactor.is_idle();
    run.is_live.then_some(if has_colour {
        WatcherStyle::InColour
    } else {
        WatcherStyle::Plain
    })
}

/// Finds the shell and the job of a call. The start of a new shell is not cancelled, so that the shell
/// can be closed again.
async fn find_target(
    run: &RunContext,
    info: &CallInfo,
    call: &Call,
) -> Result<JobTarget, ToolError> {
    if info.spec.starts_job {
        let limit = call.timeout().map(crate::tool::Seconds::duration);
        let limit = limit.or(run.context.command_timeout);
        tokio::select! {
            () = run.jobs.wait_for_work(limit) => {}
            () = run.cancel.cancelled() => {}
        }
        let target = run.jobs.for_command(&info.id, run.cap).await?;
        Ok(JobTarget { limit, ..target })
    } else if call.ends_job() {
        run.jobs.for_end(call.job())
    } else {
        run.jobs.for_input(call.job())
    }
}

/// Returns the way to a watcher, if there is one.
fn live_output(run: &RunContext) -> Option<LiveOutput> {
    run.is_live.then(|| LiveOutput {
        events: run.events.clone(),
        cancel: run.cancel.clone(),
    })
}

fn call_context(run: &RunContext, target: &JobTarget) -> Context {
    let live = live_output(run);
    let (output, rest) = (target.output.clone(), target.output.clone());
    Context {
        terminal: Some(target.terminal.clone()),
        background: target.background.clone(),
        sink: Arc::new(move || output.sink(live.clone())),
        idle_sink: Arc::new(move || rest.sink(None)),
        ..run.context.clone()
    }
}

/// Adds the printed output to the outcome and records whether the job goes on.
async fn record_output(
    run: &RunContext,
    info: &CallInfo,
    result: &mut CallResult,
    target: &JobTarget,
) {
    let outcome = &mut result.outcome;
    if target.background.is_some() {
        record_background_output(run, outcome, target).await;
        return;
    }
    let has_failed = result.error.is_some();
    let fields = result.fields.get();
    let is_killed = outcome.status == Status::Killed;
    let goes_on = is_killed || target.terminal.session.job().is_some();
    let leaves_jobs = target.terminal.session.has_unclaimed_background();
    let is_broken = has_failed || was_ended_by_signal(fields);
    let ending = if goes_on {
        Ending::Cut
    } else if is_broken || target.output.may_continue_line(leaves_jobs) {
        Ending::Broken
    } else {
        Ending::Whole
    };
    if leaves_jobs {
        target.output.log_everything();
    }
    let (view, rest) = target.output.detach(ending);
    if let Some(rest) = rest.filter(|_| run.is_live) {
        run.emit_sealed(rest).await;
    }
    let is_shown = !has_failed || !view.get().text.is_empty();
    if view.get().omitted_bytes > 0 {
        name_file(outcome, target);
    }
    result.output = Some(view).filter(|_| is_shown);
    if goes_on && !target.job.is_empty() && target.job != outcome.id {
        outcome
            .fields
            .insert("job".into(), target.job.clone().into());
    }
    if goes_on && let Some(program) = target.terminal.session.full_screen_program() {
        outcome.fields.insert("screen".into(), program.into());
    }
    // A job that was stopped and returned the terminal to the shell is a background job from now on.
    let status = match outcome.status {
        Status::Killed => Status::Running,
        _ if fields.contains_key("exit_code") => Status::Ok,
        status => status,
    };
    if !has_failed || is_killed {
        run.jobs
            .record(&first_line(&info.title), target, status, info.since);
        let waits = outcome.status == Status::AwaitingInput;
        outcome.job_waits = Some(waits || run.jobs.has_question(&target.job).await);
    }
}

/// Names the background job the call was for; its output is in its file.
async fn record_background_output(run: &RunContext, outcome: &mut Outcome, target: &JobTarget) {
    let _ = target.output.detach(Ending::Whole);
    outcome
        .fields
        .insert("job".into(), target.job.clone().into());
    outcome.job_waits = Some(run.jobs.has_question(&target.job).await);
}

/// Exit statuses that stand for a signal: 128 plus its number.
const SIGNAL_EXIT_CODES: std::ops::RangeInclusive<i64> = 129..=192;

/// Returns true when a signal ended the job or the program that set its exit status.
fn was_ended_by_signal(fields: &Map<String, Value>) -> bool {
    let code = fields.get("exit_code").and_then(Value::as_i64);
    code.is_some_and(|code| SIGNAL_EXIT_CODES.contains(&code))
}

/// Says where the whole output is: in a file that the run keeps, and in the output of the job.
fn name_file(outcome: &mut Outcome, target: &JobTarget) {
    match target.output.file() {
        Some(Ok((path, lifetime))) => {
            let hint = match lifetime {
                // The next message finds no job and no file of this one.
                LogLifetime::Message => {
                    "write long output to a file, and `read` or search it".to_owned()
                }
                LogLifetime::Session => {
                    let job = &target.job;
                    format!("`read` {JOB_PREFIX}{job} with lines=\"-50\", or search it")
                }
                LogLifetime::Kept => {
                    outcome.fields.insert("output_file".into(), path.into());
                    "`read` the `output_file` with lines=\"-50\", or search it".to_owned()
                }
            };
            shorten::add_hint(&mut outcome.fields, &hint);
        }
        Some(Err(problem)) => {
            let problem = problem.into();
            outcome.fields.insert("output_file_problem".into(), problem);
        }
        None => {}
    }
}

fn started_event(info: &CallInfo) -> Event {
    Event::Started {
        index: info.index,
        id: info.id.clone(),
        tool: info.spec.name,
        heading: info.spec.heading,
        title: info.title.clone(),
        line_count: info.line_count,
        label: info.label.clone(),
    }
}

/// Runs a call whose secrets are resolved. When the run is cancelled, a session call is abandoned at once, a
/// question gets a moment to clear the terminal, and file operations run to completion. A session call of a cancelled
/// part of the run is stopped.
async fn execute(run: &RunContext, call: Call, context: Context, patience: Duration) -> ToolResult {
    if matches!(call.effect(), Effect::Files(_)) {
        return call.run(&context).await;
    }
    let kind = match call.spec().starts_job {
        true => StopKind::End,
        false => StopKind::Press,
    };
    let mut result = std::pin::pin!(call.run(&context));
    tokio::select! {
        biased;
        result = &mut result => return result,
        () = run.cancel.cancelled_for(patience) => {}
    }
    let stopped = match &context.terminal {
        Some(terminal) if run.cancel.spares_session() => {
            interruption::stop(terminal, kind, result).await
        }
        Some(_) | None => None,
    };
    stopped.unwrap_or_else(|| Err(interrupted_error()))
}

fn interrupted_error() -> ToolError {
    let message = "the run was interrupted while the call ran";
    ToolError::new(ErrorCode::Cancelled, message)
}

/// Returns the number of lines of what a call runs.
fn line_count(call: &Call) -> usize {
    call.title().trim_matches('\n').trim_end().lines().count()
}

/// Returns the name that the model gave a command.
fn label(call: &Call) -> Option<String> {
    match call {
        Call::Command(args) => args.name.as_ref().map(|name| name.source().to_owned()),
        _ => None,
    }
}

/// Returns the first line of a script that is not blank.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("").trim();
    let mut short: String = first.chars().take(limits::MAX_TITLE_CHARS).collect();
    if short.len() < first.len() || lines.next().is_some() {
        short.push_str(" ...");
    }
    short
}

/// Returns the outcome of a call of a dry run: what it would run and, for an edit, what it would change. If the
/// files may be others by then, an edit that would fail now is only a note.
pub async fn planned(
    run: &RunContext,
    prepared: PreparedCall,
    is_current: bool,
) -> Redacted<Outcome> {
    let (title, label) = (title(&prepared.call), label(&prepared.call));
    let tool = prepared.call.spec().name;
    let plan = ToolError::new(ErrorCode::DryRun, "nothing is run");
    let failed = |error| Outcome::failed(prepared.id, tool.into(), error);
    let mut outcome = match edit_trial::trial(&run.context, prepared.call).await {
        None => failed(plan),
        Some(Err(error)) if is_current => failed(error),
        Some(Err(problem)) => {
            let note = format!("now it would fail: {}", problem.message);
            let mut outcome = failed(plan);
            outcome.fields.insert("note".into(), note.into());
            outcome
        }
        Some(Ok(files)) => {
            let mut outcome = failed(plan);
            outcome.fields.insert("files".into(), files);
            outcome
        }
    };
    outcome.repairs = prepared.repairs;
    outcome.fields.insert("title".into(), title.into());
    if let Some(label) = label {
        outcome.fields.insert("label".into(), label.into());
    }
    run.context.redactor.seal(outcome)
}

/// Returns the outcome of a call whose task panicked.
#[must_use]
pub fn panicked(run: &RunContext, id: String, tool: &'static str) -> Redacted<Outcome> {
    let error = ToolError::new(
        ErrorCode::Internal,
        format!("the tool {tool} stopped unexpectedly"),
    );
    let outcome = Outcome::failed(id, tool.into(), error);
    run.context.redactor.seal(outcome)
}

/// Returns the outcome of a call that was not started.
#[must_use]
pub fn not_started(
    run: &RunContext,
    id: String,
    call: &Call,
    error: ToolError,
) -> Redacted<Outcome> {
    run.context.redactor.seal(Outcome {
        title: Some(title(call)),
        ..Outcome::failed(id, call.spec().name.into(), error)
    })
}
