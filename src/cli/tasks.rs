//! `karyi tasks`: lists, shows, cancels and stops the tasks of a supervisor, whether it runs or not.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::config::Settings;
use crate::cli::supervisor_args::StateDirArgs;
use crate::cli::{fail_any, fail_as_given, print, say};
use crate::render::paint::{safe_json, safe_line};
use crate::supervisor::announcer::question_fields;
use crate::supervisor::settings::SupervisorSettings;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_tasks::BrokenFile;
use karyi_tasks::cancellation::{CancelReason, cancel, dependents};
use karyi_tasks::inbox;
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::stop;
use karyi_tasks::listing::{ListOptions, TaskSummary, find, list};
use karyi_tasks::question::{self, PendingQuestion};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::Aging;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_log::{self, LogReader};

const TASKS_HELP: &str = "\
Exit status of cancel and stop: 0 if the task was cancelled or will be stopped, 1 if there is
no such task to cancel or stop, 2 for wrong usage.

Examples:
  karyi tasks                  what runs, what waits, which triggers there are
  karyi tasks cancel ID        take a waiting task or a trigger back
  karyi tasks stop ID          end a running task for good";

/// Arguments of `karyi tasks`.
#[derive(Debug, Args)]
#[command(after_help = TASKS_HELP)]
pub(super) struct TasksArgs {
    #[command(subcommand)]
    topic: Option<TasksTopic>,
    #[command(flatten)]
    state_dir: StateDirArgs,
    /// As one JSON object
    #[arg(long, global = true)]
    json: bool,
}

/// A topic of `karyi tasks`.
#[derive(Debug, Clone, Subcommand)]
enum TasksTopic {
    /// List running tasks, waiting ones in the order in which they run, triggers, and the open question
    List,
    /// Show a task, a trigger or a result
    Show {
        /// The task or trigger
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Cancel a waiting task or a trigger
    Cancel {
        /// The task or trigger
        #[arg(value_name = "ID")]
        id: String,
    },
    /// End a running task for good; a supervisor does so at once, or when it starts
    Stop {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Show the last lines of the log, and those that follow until you interrupt
    Tail,
}

/// Text or JSON, and the exit status.
type TaskReport = (String, ExitCode);

/// Runs `karyi tasks`.
pub(super) fn tasks(args: &TasksArgs) -> ExitCode {
    let topic = args.topic.clone().unwrap_or(TasksTopic::List);
    // A mistake in the settings keeps nobody from stopping a task.
    let settings = matches!(topic, TasksTopic::List).then(Settings::load);
    let settings = match settings.transpose() {
        Ok(settings) => settings.map_or_else(SupervisorSettings::default, |all| all.supervisor()),
        Err(error) => return fail_any(&error.into()),
    };
    match run(args, topic, &settings) {
        Ok((text, code)) => {
            let printed = print(&format!("{text}\n"));
            match printed == ExitCode::SUCCESS {
                true => code,
                false => printed,
            }
        }
        Err(error) => fail_as_given(&error),
    }
}

fn run(
    args: &TasksArgs,
    topic: TasksTopic,
    settings: &SupervisorSettings,
) -> Result<TaskReport, ToolError> {
    let state = args.state_dir.open_used()?.with_pauses(settings.pauses);
    match topic {
        TasksTopic::List => list_all(&state, settings.aging, args.json),
        TasksTopic::Show { id } => show(&state, &TaskId::parse(&id)?, args.json),
        TasksTopic::Cancel { id } => cancel_one(&state, &TaskId::parse(&id)?, args.json),
        TasksTopic::Stop { id } => stop_one(&state, &TaskId::parse(&id)?, args.json),
        TasksTopic::Tail => tail(&state, args.json),
    }
}

fn list_all(state: &StateDirectory, aging: Aging, is_json: bool) -> Result<TaskReport, ToolError> {
    let now = Timestamp::now();
    let options = ListOptions {
        aging,
        ..ListOptions::default()
    };
    let open = question::pending(state)?;
    say_broken(&state.set_broken_aside()?);
    let tasks = list(state, options, now)?;
    let failure = task_log::model_failure(state)?;
    let messages = inbox::count(state)?;
    let is_supervised = InstanceLock::is_taken(state)?;
    if is_json {
        let question = open.as_ref().map(|open| {
            let mut fields = question_fields(open);
            fields["expired"] = json!(open.is_expired(now));
            fields
        });
        let whole = json!({
            "tasks": tasks, "messages": messages, "question": question, "model_failure": failure,
            "supervisor_running": is_supervised,
        });
        return Ok((
            safe_json(&whole.to_string()).into_owned(),
            ExitCode::SUCCESS,
        ));
    }
    let mut lines: Vec<String> = tasks.iter().map(line).collect();
    if tasks.is_empty() {
        lines.push("there are no tasks".to_owned());
    }
    match messages {
        0 => {}
        1 => lines.push("1 message waits for the Teller".to_owned()),
        count => lines.push(format!("{count} messages wait for the Teller")),
    }
    if let Some(failure) = failure {
        lines.push(format!("the model failed: {}", safe_line(&failure)));
    }
    lines.extend(open.iter().flat_map(|open| question_lines(open, now)));
    let has_work = !tasks.is_empty() || messages > 0 || open.is_some();
    if has_work && !is_supervised {
        lines.push("no supervisor runs: `karyi supervise` starts one".to_owned());
    }
    Ok((lines.join("\n"), ExitCode::SUCCESS))
}

/// Tells which files were set aside, a line each.
pub(super) fn say_broken(files: &[BrokenFile]) {
    for BrokenFile { path, reason } in files {
        say(&safe_line(&format!("moved {path} to corrupt: {reason}")));
    }
}

fn line(task: &TaskSummary) -> String {
    let mut notes = String::new();
    if let Some(due_at) = task.due_at {
        notes += &format!("  [due {due_at:.0}]");
    }
    if task.blocked {
        notes += "  [blocked]";
    }
    let role = task.role.unwrap_or(task.kind);
    format!(
        "{}  {:7}  {role:11}  {}{notes}",
        task.id,
        task.status,
        safe_line(&task.prompt)
    )
}

/// Returns the lines of a question; the supervisor ends one whose time is up.
fn question_lines(open: &PendingQuestion, now: Timestamp) -> Vec<String> {
    let (id, time) = (&open.question_id, open.expires_at);
    let (state, last) = match (open.is_expired(now), &open.default) {
        (false, _) => (
            "open until",
            "answer it with `karyi answer TEXT`".to_owned(),
        ),
        (true, Some(default)) => {
            let last = format!("the answer will be its default: {}", safe_line(default));
            ("expired at", last)
        }
        (true, None) => ("expired at", "it will end without an answer".to_owned()),
    };
    let mut lines = vec![format!("question {id}, {state} {time}:")];
    let text = open.text();
    lines.extend(text.lines().map(|line| format!("  {}", safe_line(line))));
    lines.push(last);
    lines
}

fn show(state: &StateDirectory, id: &TaskId, is_json: bool) -> Result<TaskReport, ToolError> {
    let Some(found) = find(state, id)? else {
        let message = format!("expected a task, trigger or result, found none with the id {id}");
        return Err(ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi tasks`"));
    };
    let whole = json!({"folder": found.folder, "content": found.content});
    if is_json {
        return Ok((
            safe_json(&whole.to_string()).into_owned(),
            ExitCode::SUCCESS,
        ));
    }
    let mut lines = vec![format!("in {}", found.folder)];
    for (name, value) in found.content.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let text: Vec<_> = text.lines().map(safe_line).collect();
        lines.push(format!("{name}: {}", text.join("\n  ")));
    }
    Ok((lines.join("\n"), ExitCode::SUCCESS))
}

fn cancel_one(state: &StateDirectory, id: &TaskId, is_json: bool) -> Result<TaskReport, ToolError> {
    let waiting = dependents(state, id)?;
    let reason = cancel(state, id)?;
    let is_done = reason == CancelReason::Cancelled;
    let text = match is_json {
        true => json!({"success": is_done, "reason": reason.as_str(), "dependents": waiting})
            .to_string(),
        false => {
            let waiting: Vec<String> = waiting.iter().map(TaskId::to_string).collect();
            let mut text = format!("{id}: {}", reason.as_str().replace('_', " "));
            if reason == CancelReason::Running {
                text += &format!("; `karyi tasks stop {id}` ends it for good");
            }
            if is_done && !waiting.is_empty() {
                text += &format!(
                    "; these wait for it, and are blocked: {}",
                    waiting.join(", ")
                );
            }
            text
        }
    };
    Ok((text, ExitCode::from(u8::from(!is_done))))
}

/// Follows the log until nobody reads the output.
fn tail(state: &StateDirectory, is_json: bool) -> Result<TaskReport, ToolError> {
    let mut reader = LogReader::default();
    let mut lines = reader.lines(state)?;
    lines.drain(..lines.len().saturating_sub(limits::TASK_LOG_LINES));
    loop {
        let mut out = io::stdout().lock();
        for line in &lines {
            let shown = match is_json {
                true => safe_json(line).into_owned(),
                false => log_line(line),
            };
            if writeln!(out, "{shown}").is_err() {
                return Ok((String::new(), ExitCode::SUCCESS));
            }
        }
        if out.flush().is_err() {
            return Ok((String::new(), ExitCode::SUCCESS));
        }
        drop(out);
        std::thread::sleep(limits::TASK_LOG_STEP);
        lines = reader.lines(state)?;
    }
}

/// Returns a line of the log for people: time, event, and the other fields.
fn log_line(line: &str) -> String {
    let mut fields: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    let mut text = |name: &str| match fields.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => "?".to_owned(),
    };
    let mut shown = format!("{}  {}", text("timestamp"), text("event"));
    for (name, value) in &fields {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        shown += &format!("  {name}={value}");
    }
    safe_line(&shown).into_owned()
}

fn stop_one(state: &StateDirectory, id: &TaskId, is_json: bool) -> Result<TaskReport, ToolError> {
    let is_done = stop(state, id)?;
    let text = match (is_json, is_done) {
        (true, _) => json!({"success": is_done}).to_string(),
        (false, true) => format!("{id}: the supervisor ends it, and it does not run again"),
        (false, false) => {
            format!("{id} is not running; `karyi tasks cancel {id}` takes a waiting task back")
        }
    };
    Ok((text, ExitCode::from(u8::from(!is_done))))
}
