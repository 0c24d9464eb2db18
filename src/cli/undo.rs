//! `karyi undo`: undoes changes of files.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::args::UndoArgs;
use crate::cli::history::{compare_bytes, describe};
use crate::cli::{
    USAGE, fail_any, fail_as_given, fail_with, history_view, print, runtime, say, screen,
    undo_journal,
};
use crate::render::paint::{Colour, Ink, safe_line};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_files::diff::{Diff, DiffCaps};
use karyi_files::journal::Journal;
use karyi_files::recover::FileRecovery;
use karyi_files::transaction::Recorder;
use karyi_files::undo::{
    self, Conflict, ConflictContent, RestoredFile, UndoError, UndoOutcome, UndoSelection,
    UndoTarget,
};
use karyi_vault::redact::Redactor;

/// Exit status when nothing could be undone.
const FAILED: u8 = 1;

/// Runs `karyi undo`.
pub(super) fn undo(args: &UndoArgs) -> ExitCode {
    // The signals stay caught from here on.
    if let Ok(runtime) = runtime::runtime(false) {
        runtime.shutdown_background();
    }
    if let Err(error) = args.vault.check() {
        return fail_as_given(&error);
    }
    let listed = match listed(args) {
        Ok(listed) => listed,
        Err(error) => return fail_any(&error),
    };
    // A missing change is reported below.
    let chosen = listed.chosen().unwrap_or_default();
    let shown = match history_view::open(&args.vault, &chosen) {
        Ok(shown) => shown,
        Err(refused) => {
            refuse(&refused.error, args.json, &listed.recovered);
            return refused.exit_code();
        }
    };
    let mut recovered = listed.recovered.clone();
    let result = take_back(args, &listed, shown.journal, &mut recovered);
    let later = match &result {
        Err(UndoError::Conflicts(conflicts)) => listed.later(conflicts),
        _ => Vec::new(),
    };
    let view = View {
        redactor: shown.redactor,
        is_dry: args.dry_run,
        conflict_hint: hint_of(&result, &later),
        missing: result.as_ref().map_or(0, |undone| missing(args, undone)),
        colour: screen::colour(&io::stdout()),
    };
    match args.json {
        true => view.print_json(result, &recovered),
        false => {
            report_recovered(&recovered, |text| {
                view.redactor.redact_again(text).into_owned()
            });
            view.print_text(result)
        }
    }
}

/// Undoes a change of the running session, with its journal. Returns what a person reads about it.
pub(super) fn in_session(recorder: &Recorder, redactor: &Redactor, number: u64) -> String {
    let Some(journal) = &recorder.journal else {
        return String::new();
    };
    let recorder = Recorder {
        tool: "undo".into(),
        ..recorder.clone()
    };
    let mut later = Vec::new();
    let listed = UndoSelection::for_undo(journal, UndoTarget::Number(number));
    let result = listed.map_err(UndoError::Other).and_then(|listed| {
        let mut recovered = listed.recovered.clone();
        let undone = undo::take_back(&recorder, journal, &listed, &mut recovered);
        if let Err(UndoError::Conflicts(conflicts)) = &undone {
            later = listed.later(conflicts);
        }
        undone
    });
    let view = View {
        redactor: redactor.clone(),
        is_dry: false,
        colour: Colour::Off,
        conflict_hint: hint_of(&result, &later),
        missing: 0,
    };
    let text = view.text(result);
    text.shown + &text.said.join("\n") + "\n"
}

/// Finds the changes to undo and warns about an unreadable part of the list.
fn listed(args: &UndoArgs) -> anyhow::Result<UndoSelection> {
    let journal = undo_journal::open(None)?;
    let listed = match args.dry_run {
        true => UndoSelection::for_dry_run(&journal, which(args))?,
        false => UndoSelection::for_undo(&journal, which(args))?,
    };
    undo_journal::warn_of(&journal, listed.damage);
    Ok(listed)
}

/// Reports files that a killed karyi left half changed.
fn report_recovered(recovered: &[FileRecovery], mask: impl Fn(&str) -> String) {
    for file in recovered {
        let (path, became) = (file.path.display().to_string(), file.outcome.as_str());
        let text = match &file.why {
            Some(why) => {
                format!("warning: {path}: half changed by a killed karyi: {became}: {why}")
            }
            None => format!("{path}: half changed by a killed karyi: {became}"),
        };
        say(&safe_line(&mask(&text)));
    }
}

fn recovered_json(recovered: &[FileRecovery]) -> Value {
    let file = |file: &FileRecovery| {
        let mut value =
            json!({"path": file.path.to_string_lossy(), "change": file.outcome.as_str()});
        if let Some(why) = &file.why {
            value["warning"] = json!(why);
        }
        value
    };
    recovered.iter().map(file).collect()
}

fn take_back(
    args: &UndoArgs,
    listed: &UndoSelection,
    journal: Arc<Journal>,
    recovered: &mut Vec<FileRecovery>,
) -> Result<UndoOutcome, UndoError> {
    if args.dry_run {
        return undo::dry_run(&journal, listed);
    }
    let recorder = Recorder {
        journal: Some(Arc::clone(&journal)),
        tool: "undo".into(),
        ..undo_journal::recorder()
    };
    let undone = undo::take_back(&recorder, &journal, listed, recovered)?;
    // Older damage is found when a change is recorded.
    undo_journal::warn_of(&journal, undone.damage.filter(|_| listed.damage.is_none()));
    Ok(undone)
}

fn which(args: &UndoArgs) -> UndoTarget {
    match (args.number, args.last, &args.session) {
        (Some(number), ..) => UndoTarget::Number(number),
        (None, _, Some(session)) => UndoTarget::Session(session.clone()),
        (None, last, None) => {
            UndoTarget::Last(usize::try_from(last.unwrap_or(1)).unwrap_or(usize::MAX))
        }
    }
}

/// Returns the exit status; a missing change is a wrong argument.
fn status(error: &ToolError) -> u8 {
    match error.code {
        ErrorCode::NotFound => USAGE,
        _ => FAILED,
    }
}

/// Reports why the changes cannot be read.
fn refuse(error: &ToolError, is_json: bool, recovered: &[FileRecovery]) {
    if !is_json {
        report_recovered(recovered, str::to_owned);
        fail_with(error);
        return;
    }
    let mut value = error_json(error);
    if !recovered.is_empty() {
        value["recovered"] = recovered_json(recovered);
    }
    let _ = print(&format!("{value}\n"));
}

fn error_json(error: &ToolError) -> Value {
    json!({"status": "error", "code": error.code.as_str(), "message": error.message, "hint": error.hint})
}

fn numbers(undone: &UndoOutcome) -> String {
    let numbers: Vec<String> = undone.numbers.iter().map(u64::to_string).collect();
    let noun = if numbers.len() == 1 {
        "change"
    } else {
        "changes"
    };
    format!("{noun} {}", numbers.join(", "))
}

/// Returns the hint for a conflict; `later` are the changes to undo first, newest first.
fn hint_of(result: &Result<UndoOutcome, UndoError>, later: &[u64]) -> String {
    let Err(UndoError::Conflicts(conflicts)) = result else {
        return String::new();
    };
    if conflicts.iter().all(|found| found.now == found.restored) {
        return "the files are already as undo would make them, so nothing is left to undo"
            .to_owned();
    }
    if later.is_empty() {
        return "another program changed them: restore the lines by hand, or undo another change by its \
                number (`karyi history`)"
            .to_owned();
    }
    undo::later_changes_hint(later)
}

/// Conflicts that a message names.
const NAMED_CONFLICTS: usize = 5;

/// Names the files in conflict and their lines.
fn conflict_message(conflicts: &[Conflict]) -> String {
    let named = conflicts.iter().take(NAMED_CONFLICTS).map(|conflict| {
        let path = conflict.path.display();
        match conflict.lines.is_empty() {
            true => format!("{path} changed since karyi wrote it"),
            false => {
                let lines = line_ranges(&conflict.lines);
                let noun = match lines.parse::<usize>() {
                    Ok(_) => "line",
                    Err(_) => "lines",
                };
                format!("{path} changed since in {noun} {lines}")
            }
        }
    });
    let mut parts: Vec<String> = named.collect();
    match conflicts.len().saturating_sub(NAMED_CONFLICTS) {
        0 => {}
        more => parts.push(format!("and {more} more files changed")),
    }
    format!("{}; nothing was undone", parts.join(", "))
}

/// Writes ranges of lines as `3-5, 9`.
fn line_ranges(lines: &[(usize, usize)]) -> String {
    let range = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    lines.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// Returns how many changes fewer than `--last` were undone.
fn missing(args: &UndoArgs, undone: &UndoOutcome) -> u64 {
    let found = undone.numbers.len() as u64;
    args.last.map_or(0, |last| last.saturating_sub(found))
}

/// Returns the displayable bytes of a content; `None` when it was not stored.
fn shown_bytes(content: &ConflictContent) -> Option<&[u8]> {
    match content {
        ConflictContent::Missing | ConflictContent::Other(_) => Some(&[]),
        ConflictContent::Unknown => None,
        ConflictContent::Bytes(bytes) => Some(bytes),
    }
}

fn verb(file: &RestoredFile) -> &'static str {
    match (&file.to, &file.now, &file.restored) {
        (Some(_), ..) => "rename",
        (None, _, None) => "remove",
        (None, None, Some(_)) => "recreate",
        (None, Some(_), Some(_)) => "restore",
    }
}

/// Display of a result or conflict.
struct View {
    redactor: Redactor,
    is_dry: bool,
    colour: Colour,
    conflict_hint: String,
    /// Number of requested changes that do not exist.
    missing: u64,
}

/// Texts about a result.
struct UndoText {
    shown: String,
    /// Lines for standard error.
    said: Vec<String>,
    /// Exit status; nothing when all is well.
    status: Option<u8>,
}

impl View {
    fn print_text(&self, result: Result<UndoOutcome, UndoError>) -> ExitCode {
        let text = self.text(result);
        let printed = print(&text.shown);
        text.said.iter().for_each(|line| say(line));
        text.status.map_or(printed, ExitCode::from)
    }

    /// Returns the texts about a result, masked: file names may contain values, too.
    fn text(&self, result: Result<UndoOutcome, UndoError>) -> UndoText {
        let masked = |text: &str| self.redactor.redact_again(text).into_owned();
        let mut said = Vec::new();
        let (shown, status) = match result {
            Ok(undone) => {
                if let Some(left) = &undone.leftovers {
                    said.push(format!("warning: {}", safe_line(&masked(left))));
                }
                if self.missing > 0 {
                    said.push(format!(
                        "{} changes fewer than requested: there are no more to undo",
                        self.missing
                    ));
                }
                (self.done_text(&undone), None)
            }
            Err(UndoError::Other(error)) => {
                let message = masked(&error.message);
                said.push(format!("{}: {message}", error.code.as_str()));
                said.push(format!("hint: {}", error.hint));
                (String::new(), Some(status(&error)))
            }
            Err(UndoError::Conflicts(conflicts)) => {
                let message = masked(&conflict_message(&conflicts));
                said.push(format!("undo_conflict: {}", safe_line(&message)));
                said.push(format!("hint: {}", self.conflict_hint));
                let text = conflicts.iter().map(|c| self.conflict_text(c));
                (text.collect(), Some(FAILED))
            }
        };
        UndoText {
            shown: masked(&shown),
            said,
            status,
        }
    }

    fn done_text(&self, undone: &UndoOutcome) -> String {
        let colour = self.colour;
        let mut text = String::new();
        for file in &undone.files {
            let to = file.to.as_ref();
            let to = to.map_or(String::new(), |to| format!(" to {}", to.display()));
            let path = format!("{}{to}", file.path.display());
            let line = format!("{} {}", verb(file), safe_line(&path));
            let _ = writeln!(text, "{}", colour.paint(Ink::Heading, &line));
            text.push_str(&describe(&self.restored_diff(file), colour));
            if let Some(note) = &file.note {
                let _ = writeln!(text, "{}", colour.paint(Ink::Warning, note));
            }
        }
        let end = match (self.is_dry, undone.number) {
            (true, _) => format!("would undo {}; nothing was changed", numbers(undone)),
            (false, Some(number)) => {
                format!(
                    "undid {}; `karyi undo {number}` reverts that",
                    numbers(undone)
                )
            }
            (false, None) => format!("undid {}", numbers(undone)),
        };
        text + &colour.paint(Ink::Good, &end) + "\n"
    }

    fn restored_diff(&self, file: &RestoredFile) -> Option<Diff> {
        if file.now == file.restored {
            // It was only renamed.
            return Some(Diff::default());
        }
        let bytes = |content: &'_ Option<Arc<Vec<u8>>>| content.clone().unwrap_or_default();
        let (now, restored) = (bytes(&file.now), bytes(&file.restored));
        compare_bytes(&now, &restored, &self.redactor, DiffCaps::RESULT)
    }

    fn content_diff(&self, old: &ConflictContent, new: &ConflictContent) -> Option<Diff> {
        let (old, new) = (shown_bytes(old)?, shown_bytes(new)?);
        compare_bytes(old, new, &self.redactor, DiffCaps::RESULT)
    }

    /// Returns the three contents of a file: as karyi wrote it, as it is, and as it would be restored.
    fn conflict_text(&self, conflict: &Conflict) -> String {
        let Conflict {
            path,
            wrote,
            now,
            restored,
            lines: _,
        } = conflict;
        let path = safe_line(&path.display().to_string()).into_owned();
        let mut text = format!("{}\n", self.colour.paint(Ink::Heading, &path));
        let changed = match (wrote, now) {
            (_, ConflictContent::Missing) => "karyi wrote it, and it no longer exists".to_owned(),
            (_, ConflictContent::Other(found)) => {
                format!("karyi wrote it, and there is {} now", safe_line(found))
            }
            (ConflictContent::Missing, _) => "karyi removed it, and it exists again".to_owned(),
            (
                ConflictContent::Unknown | ConflictContent::Bytes(_) | ConflictContent::Other(_),
                _,
            ) => "what changed since karyi wrote it".to_owned(),
        };
        text.push_str(&self.part(&changed, (wrote, now)));
        let would = match (now, restored) {
            (ConflictContent::Missing, ConflictContent::Missing) => {
                "undo would remove it, which has already happened"
            }
            (_, ConflictContent::Missing) => "undo would remove it",
            (ConflictContent::Bytes(now), ConflictContent::Bytes(restored)) if now == restored => {
                "it already has the content that undo would restore"
            }
            (_, ConflictContent::Bytes(restored)) if restored.is_empty() => {
                "undo would make it an empty file"
            }
            (
                _,
                ConflictContent::Unknown | ConflictContent::Bytes(_) | ConflictContent::Other(_),
            ) => "the result of undo on the current content",
        };
        text + &self.part(would, (now, restored))
    }

    /// Returns the difference between two contents.
    fn part(&self, what: &str, (old, new): (&ConflictContent, &ConflictContent)) -> String {
        let lines = match old == new {
            true => String::new(),
            false => describe(&self.content_diff(old, new), self.colour),
        };
        let end = match (lines.is_empty(), old, new) {
            (false, ..) => ":",
            (true, ConflictContent::Bytes(old), ConflictContent::Bytes(new)) if old != new => {
                ": no visible difference, only the encoding or the value of a secret"
            }
            (true, ..) => "",
        };
        let heading = self.colour.paint(Ink::Warning, &format!("{what}{end}"));
        format!("{heading}\n{lines}")
    }

    fn print_json(
        &self,
        result: Result<UndoOutcome, UndoError>,
        recovered: &[FileRecovery],
    ) -> ExitCode {
        let (mut value, code) = match result {
            Ok(undone) => (self.done_json(&undone), 0),
            Err(UndoError::Other(error)) => (error_json(&error), status(&error)),
            Err(UndoError::Conflicts(conflicts)) => {
                let code = ErrorCode::UndoConflict;
                let files: Vec<Value> = conflicts.iter().map(|c| self.conflict_json(c)).collect();
                let message = conflict_message(&conflicts);
                (
                    json!({"status": "error", "code": code.as_str(), "message": message, "hint": self.conflict_hint, "files": files}),
                    FAILED,
                )
            }
        };
        if !recovered.is_empty() {
            value["recovered"] = recovered_json(recovered);
        }
        self.redactor.redact_values_again(&mut value);
        let _ = print(&format!("{value}\n"));
        ExitCode::from(code)
    }

    fn done_json(&self, undone: &UndoOutcome) -> Value {
        let files = undone.files.iter().map(|file| {
            let mut value = json!({"path": file.path.to_string_lossy(), "change": verb(file)});
            if let Some(to) = &file.to {
                value["to"] = json!(to.to_string_lossy());
            }
            if let Some(found) = self.restored_diff(file) {
                value["diff"] = json!(found.text);
            }
            if let Some(note) = &file.note {
                value["note"] = json!(note);
            }
            value
        });
        let files: Vec<Value> = files.collect();
        let mut value = json!({"status": "ok", "undone": undone.numbers, "files": files});
        if self.is_dry {
            value["dry_run"] = json!(true);
        }
        if let Some(number) = undone.number {
            value["number"] = json!(number);
        }
        if let Some(left) = &undone.leftovers {
            value["warning"] = json!(left);
        }
        if self.missing > 0 {
            value["missing"] = json!(self.missing);
        }
        value
    }

    fn conflict_json(&self, conflict: &Conflict) -> Value {
        let mut value = json!({"path": conflict.path.to_string_lossy()});
        let contents = [
            ("wrote", &conflict.wrote),
            ("now", &conflict.now),
            ("restored", &conflict.restored),
        ];
        for (key, content) in contents {
            value[key] = match content {
                ConflictContent::Missing => Value::Null,
                ConflictContent::Unknown => json!({"is_kept": false}),
                ConflictContent::Bytes(bytes) => json!({"bytes": bytes.len()}),
                ConflictContent::Other(found) => json!({"found": found}),
            };
        }
        if !conflict.lines.is_empty() {
            value["conflict_lines"] = json!(line_ranges(&conflict.lines));
        }
        if let Some(found) = self.content_diff(&conflict.wrote, &conflict.now) {
            value["changed_since"] = json!(found.text);
        }
        if let Some(found) = self.content_diff(&conflict.now, &conflict.restored) {
            value["would_restore"] = json!(found.text);
        }
        value
    }
}
