//! `karyi tell` and `karyi answer`: texts of a person for the Teller of a supervisor.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use crate::cli::supervisor_args::StateDirArgs;
use crate::cli::tasks::say_broken;
use crate::cli::vault::{self, GivenArgs, VaultFlags};
use crate::cli::{fail_as_given, print};
use crate::render::paint::{safe_json, safe_line};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::{inbox, question};
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Arguments of `karyi tell`.
#[derive(Debug, Args)]
pub(super) struct TellArgs {
    /// Text
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    state_dir: StateDirArgs,
    /// Print the id of the message as a JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `karyi answer`.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// The question, where it matters that it is still that one; then the answer: an option, its number, or any text
    /// where there are no options
    #[arg(value_name = "[ID] TEXT", required = true, num_args = 1..=2)]
    words: Vec<String>,
    #[command(flatten)]
    state_dir: StateDirArgs,
    /// Print the answer as a JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `karyi tell`.
pub(super) fn tell(args: &TellArgs) -> ExitCode {
    let told = args.state_dir.path().and_then(|path| {
        let state = StateDirectory::open(&path)?;
        // Asked first: an error after the message is there would have it told twice.
        let is_supervised = InstanceLock::is_taken(&state)?;
        let id = inbox::add(&state, &masked(&args.text)?, Timestamp::now())?;
        Ok((id, is_supervised))
    });
    finish(told, |(id, is_supervised)| {
        match (args.json, is_supervised) {
            (true, _) => json!({"id": id}).to_string(),
            (false, true) => format!("message {id} waits for the Teller"),
            (false, false) => format!("message {id} waits for the next `karyi supervise`"),
        }
    })
}

/// Runs `karyi answer`.
pub(super) fn answer(args: &AnswerArgs) -> ExitCode {
    let answered = args.state_dir.open_used().and_then(|state| {
        let (id, text) = match args.words.as_slice() {
            [id, text] => (Some(TaskId::parse(id)?), text.as_str()),
            words => (None, words.first().map_or("", String::as_str)),
        };
        let answered = question::answer(&state, id.as_ref(), &masked(text)?, Timestamp::now());
        say_broken(&state.newly_broken());
        answered.map_err(|error| match (error.code, id) {
            (ErrorCode::NotFound, Some(id)) => error.with_hint(format!(
                "`{id}` was taken for the id of a question; put an answer of several words in quotes"
            )),
            _ => error,
        })
    });
    finish(answered, |answer| match args.json {
        true => safe_json(&json!({"answer": answer}).to_string()).into_owned(),
        false => format!("answered: {}", safe_line(answer)),
    })
}

/// Masks the values of stored secrets in a text: it is kept, and goes to a model.
fn masked(text: &str) -> Result<String, ToolError> {
    let secrets = Secrets::default();
    vault::prepare(
        &secrets,
        &VaultFlags::default(),
        None,
        &GivenArgs::default(),
    )?;
    Ok(Redactor::new(&secrets).redact_str(text).into_owned())
}

/// Prints the line of a result, or its error.
fn finish<T>(result: Result<T, ToolError>, line: impl Fn(&T) -> String) -> ExitCode {
    match result {
        Ok(value) => print(&format!("{}\n", line(&value))),
        Err(error) => fail_as_given(&error),
    }
}
