//! `karyi chats`: lists, shows, exports and removes the transcripts of chats.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::chat::transcript::export;
use crate::chat::transcript::file::Transcript;
use crate::chat::transcript::store::{ChatStore, ChatSummary};
use crate::cli::state_dir::state_dir;
use crate::cli::{fail_any, print, say};
use crate::render::paint::{safe, safe_json, safe_line};
use karyi_core::error::ToolError;
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

const CHATS_HELP: &str = "\
An id may be shortened as long as it fits one chat only. Times are in UTC. Nothing that a chat holds is run.

Examples:
  karyi chats list --all
  karyi chats export 20261128-1157 > chat.md";

/// Arguments of `karyi chats`.
#[derive(Debug, Args)]
#[command(after_help = CHATS_HELP)]
pub(super) struct ChatsArgs {
    #[command(subcommand)]
    topic: ChatsTopic,
}

/// A topic of `karyi chats`.
#[derive(Debug, Subcommand)]
enum ChatsTopic {
    /// List the chats of this directory, newest first
    List {
        /// Those of all directories
        #[arg(long)]
        all: bool,
        /// As a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Show the texts and answers of a chat, with a line for each call
    Show {
        /// The chat
        #[arg(value_name = "ID")]
        id: String,
        /// As one JSON object, with every record
        #[arg(long)]
        json: bool,
    },
    /// Print a whole chat, with the results of its calls
    Export {
        /// The chat
        #[arg(value_name = "ID")]
        id: String,
        /// Format
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: ExportFormat,
    },
    /// Remove chats
    Rm {
        /// The chats
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

/// Format of an exported chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ExportFormat {
    /// Markdown
    #[default]
    Md,
    /// One JSON object
    Json,
}

/// Returns the store of the chats. Texts that are read are redacted again.
///
/// # Errors
/// There is no directory for karyi's state.
pub(super) fn store(redactor: Redactor) -> Result<ChatStore, ToolError> {
    Ok(ChatStore::new(state_dir()?.join("chats"), redactor))
}

/// Runs `karyi chats`.
pub(super) fn chats(args: &ChatsArgs) -> ExitCode {
    let result = match &args.topic {
        ChatsTopic::List { all, json } => list(*all, *json),
        ChatsTopic::Show { id, json } => show(id, *json),
        ChatsTopic::Export { id, format } => export(id, *format),
        ChatsTopic::Rm { ids } => remove(ids),
    };
    result.unwrap_or_else(|error| fail_any(&error))
}

/// Opens the store without the vault: what is in a transcript was redacted when it was written.
fn open() -> Result<ChatStore, ToolError> {
    store(Redactor::new(&Secrets::default()))
}

fn list(is_all: bool, is_json: bool) -> anyhow::Result<ExitCode> {
    let cwd = match is_all {
        true => None,
        false => Some(std::env::current_dir().context("finding the current directory")?),
    };
    let chats = open()?.list(cwd.as_deref())?;
    if is_json {
        let list: Vec<Value> = chats.iter().map(as_json).collect();
        return Ok(print_json(&Value::Array(list)));
    }
    if chats.is_empty() {
        say(match is_all {
            true => "there are no chats",
            false => "there are no chats of this directory; --all lists the others",
        });
    }
    let lines: String = chats.iter().map(|chat| line(chat, is_all)).collect();
    Ok(print(&lines))
}

fn as_json(chat: &ChatSummary) -> Value {
    json!({
        "id": chat.id,
        "started": chat.started.to_string(),
        "changed": chat.changed.to_string(),
        "title": chat.title,
        "cwd": chat.cwd,
        "model": chat.model,
        "turns": chat.turns,
        "damage": chat.damage,
    })
}

fn line(chat: &ChatSummary, has_directory: bool) -> String {
    let ChatSummary {
        id, title, turns, ..
    } = chat;
    let time = chat.changed.strftime("%Y-%m-%d %H:%M");
    let turns = match turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    };
    let mut line = format!(
        "{}  {time}  {turns:>8}  {}",
        safe_line(id),
        safe_line(title)
    );
    if has_directory {
        line.push_str(&format!("  ({})", safe_line(&chat.cwd)));
    }
    if chat.damage.is_some() {
        line.push_str("  [damaged]");
    }
    line.push('\n');
    line
}

fn show(id: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let (id, transcript) = read(id)?;
    Ok(match is_json {
        true => print_json(&export::json(&id, &transcript)),
        false => print_text(&export::text(&id, &transcript)),
    })
}

fn export(id: &str, format: ExportFormat) -> anyhow::Result<ExitCode> {
    let (id, transcript) = read(id)?;
    Ok(match format {
        ExportFormat::Md => print_text(&export::markdown(&id, &transcript)),
        ExportFormat::Json => print_json(&export::json(&id, &transcript)),
    })
}

/// Reads a chat, and says what is wrong with its file.
fn read(id: &str) -> anyhow::Result<(String, Transcript)> {
    let store = open()?;
    let id = store.find(id)?;
    let transcript = store.read(&id)?;
    if let Some(damage) = transcript.damage.sentence() {
        say(&format!("{}: {damage}", safe_line(&id)));
    }
    Ok((id, transcript))
}

/// Prints a JSON value; characters that a terminal would act on are escaped.
fn print_json(value: &Value) -> ExitCode {
    print(&format!("{}\n", safe_json(&value.to_string())))
}

/// Prints a text; a terminal gets nothing of it that it would act on.
fn print_text(text: &str) -> ExitCode {
    match io::stdout().is_terminal() {
        true => print(&safe(text)),
        false => print(text),
    }
}

fn remove(ids: &[String]) -> anyhow::Result<ExitCode> {
    let store = open()?;
    let found = ids.iter().map(|id| store.find(id));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    for id in &found {
        store.remove(id)?;
    }
    Ok(ExitCode::SUCCESS)
}
