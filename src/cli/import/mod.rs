//! `karyi import`: takes over what the settings of another assistant say about permissions and the model.

mod codex_rules;
mod foreign_settings;
mod sources;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::approval::RuleKind;
use crate::chat::notes::note_files::project_root;
use crate::cli::config::{self, ImportResult};
use crate::cli::import::foreign_settings::ForeignSettings;
use crate::cli::import::sources::Places;
use crate::cli::{fail_any, print};
use crate::render::paint::safe_line;

const IMPORT_HELP: &str = "\
Rules about commands and edits go into [approval] of config.toml, the model into `model` unless one is set. Of a file in
the project only rules that ask or deny are taken. Logins such as auth.json are not opened; MCP servers are only listed,
and what may be a key is not shown.";

/// Arguments of `karyi import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub(super) struct ImportArgs {
    /// The assistant
    #[arg(value_enum, value_name = "ASSISTANT")]
    assistant: Assistant,
    /// Show what would be taken over; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// An assistant whose settings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Assistant {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
}

/// Runs `karyi import`.
pub(super) fn import(args: &ImportArgs) -> ExitCode {
    let done = imported(args);
    done.unwrap_or_else(|error| fail_any(&error))
}

fn imported(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let places = places()?;
    let found = match args.assistant {
        Assistant::ClaudeCode => sources::claude_code(&places),
        Assistant::Codex => sources::codex(&places),
        Assistant::Opencode => sources::opencode(&places),
        Assistant::Gemini => sources::gemini(&places),
    }?;
    if found.files.is_empty() {
        return Ok(print("no settings were found\n"));
    }
    let lists = RuleKind::ALL.map(|list| (list.as_str(), found.list(list)));
    let imported = config::import(&lists, found.model.as_deref(), args.dry_run)?;
    Ok(print(&shown(&found, &imported, args.dry_run)))
}

fn places() -> anyhow::Result<Places> {
    let variable = |name| std::env::var_os(name).filter(|text: &OsString| !text.is_empty());
    let home = variable("HOME").context("expected HOME in the environment, found none")?;
    let home = PathBuf::from(home);
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.filter(|path| path.is_absolute());
    let cwd = std::env::current_dir().context("finding the current directory")?;
    Ok(Places {
        config: config.unwrap_or_else(|| home.join(".config")),
        home,
        project: project_root(&cwd),
    })
}

/// Returns what was found and what became of it, one line each.
fn shown(found: &ForeignSettings, imported: &ImportResult, is_dry_run: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for file in &found.files {
        lines.push(format!("read {}", file.display()));
    }
    for (list, rule) in &imported.rules {
        lines.push(format!("{list}: {rule}"));
    }
    match (&imported.model, &found.model) {
        (Some(model), _) => lines.push(format!("model: {model}")),
        (None, Some(model)) => lines.push(format!("not taken over: model {model}: one is set")),
        (None, None) => {}
    }
    for text in &found.skipped {
        lines.push(format!("not taken over: {text}"));
    }
    for server in &found.servers {
        lines.push(format!("MCP server, not taken over: {server}"));
    }
    let file = imported.file.display();
    lines.push(match (imported.is_nothing(), is_dry_run) {
        (true, _) => "nothing new".to_owned(),
        (false, true) => format!("nothing is written: without --dry-run it goes into {file}"),
        (false, false) => format!("written to {file}"),
    });
    let lines = lines.iter().map(|line| format!("{}\n", safe_line(line)));
    lines.collect()
}
