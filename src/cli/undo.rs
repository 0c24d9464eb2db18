//! `karyi undo`: takes changes of files back.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::args::UndoArgs;
use crate::cli::history::{compare_bytes, describe};
use crate::cli::{USAGE, fail, journal, print, say, screen};
use crate::error::{ErrorCode, ToolError};
use crate::files::transaction::Recorder;
use crate::files::undo::{self, Conflict, Content, Restored, UndoError, Undone, Which};
use crate::render::paint::{Colour, Ink, safe_line};

/// Exit status when nothing could be taken back.
const FAILED: u8 = 1;

/// Runs `karyi undo`.
pub(super) fn undo(args: &UndoArgs) -> ExitCode {
    let recorder = journal::recorder();
    let journal = match (&recorder.journal, journal::open()) {
        (Some(journal), _) => Arc::clone(journal),
        (None, Ok(journal)) => Arc::new(journal),
        (None, Err(error)) => return fail(&format!("{error:#}")),
    };
    let recorder = Recorder {
        tool: "undo".into(),
        ..recorder
    };
    let which = which(args);
    let result = match args.dry_run {
        true => undo::dry_run(&recorder, &journal, &which),
        false => undo::undo(&recorder, &journal, &which),
    };
    match args.json {
        true => print_json(result, args.dry_run),
        false => print_text(result, args.dry_run),
    }
}

fn which(args: &UndoArgs) -> Which {
    match (args.number, args.last, &args.session) {
        (Some(number), ..) => Which::Number(number),
        (None, _, Some(session)) => Which::Session(session.clone()),
        (None, last, None) => Which::Last(usize::try_from(last.unwrap_or(1)).unwrap_or(usize::MAX)),
    }
}

fn print_text(result: Result<Undone, UndoError>, is_dry: bool) -> ExitCode {
    let colour = screen::colour(&io::stdout());
    match result {
        Ok(undone) => print(&done_text(&undone, is_dry, colour)),
        Err(UndoError::Other(error)) => {
            say(&format!("{}: {}", error.code.as_str(), error.message));
            say(&format!("hint: {}", error.hint));
            ExitCode::from(status(&error))
        }
        Err(UndoError::Conflicts(conflicts)) => {
            let text: String = conflicts.iter().map(|c| conflict_text(c, colour)).collect();
            let _ = print(&text);
            say("undo_conflict: files changed since karyi wrote them; nothing was undone");
            say(&format!("hint: {}", ErrorCode::UndoConflict.hint()));
            ExitCode::from(FAILED)
        }
    }
}

/// A change that is not there is a wrong argument.
fn status(error: &ToolError) -> u8 {
    match error.code {
        ErrorCode::NotFound => USAGE,
        _ => FAILED,
    }
}

fn numbers(undone: &Undone) -> String {
    let numbers: Vec<String> = undone.numbers.iter().map(u64::to_string).collect();
    let noun = if numbers.len() == 1 {
        "change"
    } else {
        "changes"
    };
    format!("{noun} {}", numbers.join(", "))
}

fn done_text(undone: &Undone, is_dry: bool, colour: Colour) -> String {
    let mut text = String::new();
    for file in &undone.files {
        let line = format!(
            "{} {}",
            verb(file),
            safe_line(&file.path.display().to_string())
        );
        let _ = writeln!(text, "{}", colour.paint(Ink::Heading, &line));
        text.push_str(&describe(&restored_diff(file), colour));
    }
    let end = match (is_dry, undone.number) {
        (true, _) => format!("would undo {}; nothing was changed", numbers(undone)),
        (false, Some(number)) => {
            format!(
                "undid {}; `karyi undo {number}` takes that back",
                numbers(undone)
            )
        }
        (false, None) => format!("undid {}", numbers(undone)),
    };
    text + &colour.paint(Ink::Good, &end) + "\n"
}

fn verb(file: &Restored) -> &'static str {
    match (&file.now, &file.restored) {
        (_, None) => "remove",
        (None, Some(_)) => "recreate",
        (Some(_), Some(_)) => "restore",
    }
}

fn restored_diff(file: &Restored) -> Option<crate::files::diff::Diff> {
    let bytes = |content: &Option<Vec<u8>>| content.clone().unwrap_or_default();
    compare_bytes(&bytes(&file.now), &bytes(&file.restored))
}

fn content_diff(old: &Content, new: &Content) -> Option<crate::files::diff::Diff> {
    let bytes = |content: &Content| match content {
        Content::Missing => Some(Vec::new()),
        Content::Unknown => None,
        Content::Bytes(bytes) => Some(bytes.clone()),
    };
    compare_bytes(&bytes(old)?, &bytes(new)?)
}

/// Shows the three contents of a file: what karyi wrote, what is there, what would be restored.
fn conflict_text(conflict: &Conflict, colour: Colour) -> String {
    let path = conflict.path.display().to_string();
    let mut text = format!("{}\n", colour.paint(Ink::Heading, &safe_line(&path)));
    let changed = match (&conflict.wrote, &conflict.now) {
        (_, Content::Missing) => "karyi wrote it, and it is not there any more".to_owned(),
        (Content::Missing, _) => "karyi removed it, and it is there again".to_owned(),
        _ => "what changed since karyi wrote it:".to_owned(),
    };
    let _ = writeln!(text, "{}", colour.paint(Ink::Warning, &changed));
    text.push_str(&describe(
        &content_diff(&conflict.wrote, &conflict.now),
        colour,
    ));
    let would = match conflict.restored {
        Content::Missing => "undo would remove it:",
        Content::Unknown | Content::Bytes(_) => "what undo would make of what is there now:",
    };
    let _ = writeln!(text, "{}", colour.paint(Ink::Warning, would));
    text.push_str(&describe(
        &content_diff(&conflict.now, &conflict.restored),
        colour,
    ));
    text
}

fn print_json(result: Result<Undone, UndoError>, is_dry: bool) -> ExitCode {
    let (value, code) = match result {
        Ok(undone) => (done_json(&undone, is_dry), 0),
        Err(UndoError::Other(error)) => (
            json!({"status": "error", "code": error.code.as_str(), "message": error.message, "hint": error.hint}),
            status(&error),
        ),
        Err(UndoError::Conflicts(conflicts)) => {
            let code = ErrorCode::UndoConflict;
            let files: Vec<Value> = conflicts.iter().map(conflict_json).collect();
            let message = "files changed since karyi wrote them; nothing was undone";
            (
                json!({"status": "error", "code": code.as_str(), "message": message, "hint": code.hint(), "files": files}),
                FAILED,
            )
        }
    };
    let _ = print(&format!("{value}\n"));
    ExitCode::from(code)
}

fn done_json(undone: &Undone, is_dry: bool) -> Value {
    let files = undone.files.iter().map(|file| {
        let mut value = json!({"path": file.path.to_string_lossy(), "change": verb(file)});
        if let Some(found) = restored_diff(file) {
            value["diff"] = json!(found.text);
        }
        value
    });
    let files: Vec<Value> = files.collect();
    let mut value = json!({"status": "ok", "undone": undone.numbers, "files": files});
    if is_dry {
        value["dry_run"] = json!(true);
    }
    if let Some(number) = undone.number {
        value["number"] = json!(number);
    }
    value
}

fn conflict_json(conflict: &Conflict) -> Value {
    let mut value = json!({"path": conflict.path.to_string_lossy()});
    let contents = [
        ("wrote", &conflict.wrote),
        ("now", &conflict.now),
        ("restored", &conflict.restored),
    ];
    for (key, content) in contents {
        value[key] = match content {
            Content::Missing => Value::Null,
            Content::Unknown => json!({"is_kept": false}),
            Content::Bytes(bytes) => json!({"bytes": bytes.len()}),
        };
    }
    if let Some(found) = content_diff(&conflict.wrote, &conflict.now) {
        value["changed_since"] = json!(found.text);
    }
    if let Some(found) = content_diff(&conflict.now, &conflict.restored) {
        value["would_restore"] = json!(found.text);
    }
    value
}
