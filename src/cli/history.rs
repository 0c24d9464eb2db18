//! `karyi history`: lists the changes karyi made to files.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::args::{HistoryArgs, HistoryTopic};
use crate::cli::history_view::{self, HistoryView};
use crate::cli::undo_journal::{self, time};
use crate::cli::vault::VaultFlags;
use crate::cli::{fail, fail_any, fail_as_given, fail_with, print, say, screen};
use crate::render::diff_text;
use crate::render::paint::{Colour, Ink, safe_line};
use karyi_files::diff::{Diff, DiffCaps};
use karyi_files::edit::{Masking, masked_diff};
use karyi_files::encoding::Encoding;
use karyi_files::journal::{Entry, FileChange, Journal, StoredPath, Version, capacity_text};
use karyi_files::root::canonical_for_plan;
use karyi_files::undo::undone_numbers;
use karyi_vault::redact::Redactor;

/// Runs `karyi history`.
pub(super) fn history(args: HistoryArgs) -> ExitCode {
    let result = match args.topic {
        Some(HistoryTopic::Show {
            number,
            json,
            vault,
        }) => match vault.check() {
            Ok(()) => show(number, json, &vault),
            Err(error) => return fail_as_given(&error),
        },
        None => match &args.meant {
            Some(meant) => return fail(&meant_hint(meant)),
            None => list(&args),
        },
    };
    result.unwrap_or_else(|error| fail_any(&error))
}

/// Returns the hint for a stray word.
fn meant_hint(meant: &str) -> String {
    let shown = safe_line(meant);
    match meant.parse::<u64>() {
        Ok(number) => format!(
            "expected no argument, found {shown:?}\nhint: `karyi history show {number}` shows that change"
        ),
        Err(_) => format!(
            "expected no argument, found {shown:?}\nhint: `karyi history --file {shown}` lists the changes of a file, \
             `karyi history show N` shows one"
        ),
    }
}

fn list(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let journal = undo_journal::open(None)?;
    let entries = undo_journal::entries(&journal)?;
    let undone = undone_numbers(&entries);
    let file = args.file.as_deref().map(absolute).transpose()?;
    let is_wanted = |entry: &&Entry| {
        let session = args.session.as_ref();
        session.is_none_or(|session| *session == entry.session)
            && file.as_ref().is_none_or(|file| has_file(entry, file))
    };
    if let Some(session) = &args.session
        && !entries.iter().any(|entry| entry.session == *session)
    {
        say(&format!("no change was made by a session {session:?}"));
    }
    if let (Some(path), Some(file)) = (&args.file, &file)
        && !entries.iter().any(|entry| has_file(entry, file))
    {
        say(&format!(
            "no change was made to {:?} or below it",
            path.display().to_string()
        ));
    }
    let gone = first_number(&entries).saturating_sub(1);
    if gone > 0 {
        let capacity_text = capacity_text();
        say(&format!(
            "changes up to number {gone} are no longer in the journal: {capacity_text}"
        ));
    }
    if entries.is_empty() {
        say("karyi has not changed any file yet");
    }
    let count = args.last.unwrap_or(usize::MAX);
    let wanted = entries.iter().rev().filter(is_wanted).take(count);
    let state = |entry: &Entry| State {
        is_undone: undone.contains(&entry.number),
        has_contents: has_contents(&journal, entry),
    };
    if args.json {
        let list: Vec<Value> = wanted.map(|entry| as_json(entry, &state(entry))).collect();
        return Ok(print(&format!("{}\n", Value::Array(list))));
    }
    let colour = screen::colour(&io::stdout());
    let lines: String = wanted
        .map(|entry| line(entry, &state(entry), colour))
        .collect();
    Ok(print(&lines))
}

/// Returns the number of the first change still in the journal.
fn first_number(entries: &[Entry]) -> u64 {
    entries.first().map_or(1, |entry| entry.number)
}

fn has_file(entry: &Entry, wanted: &Path) -> bool {
    let mut files = entry.files.iter();
    files.any(|file| file.path.as_path().starts_with(wanted))
}

/// State of a change.
struct State {
    is_undone: bool,
    /// True when the contents needed to undo it exist.
    has_contents: bool,
}

impl State {
    /// Returns the reason why a change cannot be undone, or `None`.
    fn obstacle(&self, entry: &Entry) -> Option<&'static str> {
        match (self.is_undone, self.has_contents) {
            (true, _) => Some("it is already undone"),
            (false, true) => entry.obstacle(),
            (false, false) => {
                let gone = "its content in the journal is damaged or missing";
                entry.obstacle().or(Some(gone))
            }
        }
    }
}

fn has_contents(journal: &Journal, entry: &Entry) -> bool {
    let mut olds = entry.files.iter().filter_map(|file| file.old.as_ref());
    olds.all(|old| !old.is_kept || journal.has_content(old))
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    Ok(canonical_for_plan(&std::env::current_dir()?.join(path)))
}

/// Returns an entry as JSON.
fn as_json(entry: &Entry, state: &State) -> Value {
    let files = entry.file_changes().into_iter().map(|file| {
        let mut value = json!({"path": StoredPath::from(file.path), "change": file.kind.as_str()});
        for (key, version) in [("old_bytes", file.old), ("new_bytes", file.new)] {
            if let Some(version) = version {
                value[key] = json!(version.size);
            }
        }
        if let Some(to) = file.to {
            value["to"] = json!(StoredPath::from(to));
        }
        if file.is_renamed_and_edited() {
            value["edited"] = json!(true);
        }
        value
    });
    let files: Vec<Value> = files.collect();
    let obstacle = state.obstacle(entry);
    let mut value = json!({
        "number": entry.number,
        "time": format!("{}Z", time(entry.time_ms).replace(' ', "T")),
        "session": entry.session,
        "call": entry.call,
        "tool": entry.tool,
        "undone": state.is_undone,
        "can_be_undone": obstacle.is_none(),
        "files": files,
    });
    if let Some(why) = obstacle {
        value["obstacle"] = json!(why);
    }
    if !entry.undoes.is_empty() {
        value["undoes"] = json!(entry.undoes);
    }
    value
}

/// Returns an entry as lines for people.
fn line(entry: &Entry, state: &State, colour: Colour) -> String {
    let number = colour.paint(Ink::Heading, &format!("{:>5}", entry.number));
    let what = match entry.undoes.as_slice() {
        [] => format!("{} {}", entry.tool, entry.call),
        undoes => {
            let numbers: Vec<String> = undoes.iter().map(u64::to_string).collect();
            format!("undo of {}", numbers.join(", "))
        }
    };
    let note = match (state.is_undone, state.obstacle(entry)) {
        (true, _) => colour.paint(Ink::Faint, "  (undone)"),
        (false, Some(why)) => {
            let note = format!("  (cannot be undone: {why})");
            colour.paint(Ink::Warning, &note)
        }
        (false, None) => String::new(),
    };
    let mut text = format!(
        "{number}  {}  {}  {}{note}\n",
        time(entry.time_ms),
        safe_line(&entry.session),
        safe_line(what.trim_end()),
    );
    for file in entry.file_changes() {
        let _ = writeln!(text, "       {}", file_line(&file));
    }
    text
}

fn file_line(file: &FileChange<'_, &Version>) -> String {
    let to = file.to.map(|to| format!(" to {}", to.display()));
    let path = format!("{}{}", file.path.display(), to.unwrap_or_default());
    let kind = match file.is_renamed_and_edited() {
        true => "renamed and edited",
        false => file.kind.as_str(),
    };
    format!("{kind:<8} {}", safe_line(&path))
}

fn show(number: u64, is_json: bool, vault: &VaultFlags) -> anyhow::Result<ExitCode> {
    let entries = undo_journal::entries(&undo_journal::open(None)?)?;
    let Some(entry) = entries.iter().find(|entry| entry.number == number) else {
        if (1..first_number(&entries)).contains(&number) {
            anyhow::bail!(
                "change {number} is no longer in the journal: {}",
                capacity_text()
            );
        }
        anyhow::bail!("there is no change {number} in the journal (see `karyi history`)");
    };
    let shown = match history_view::open(vault, &[entry]) {
        Ok(shown) => shown,
        Err(refused) => {
            fail_with(&refused.error);
            return Ok(refused.exit_code());
        }
    };
    let (contents, state) = contents_and_state(&shown, entry, &entries);
    let text = match is_json {
        true => show_json(&shown, entry, &state, &contents),
        false => {
            let colour = screen::colour(&io::stdout());
            show_text(&shown, (entry, &state), &contents, colour)
        }
    };
    Ok(print(&text))
}

/// Returns a change for people, from the journal of the running session.
pub(super) fn in_session(journal: &Arc<Journal>, redactor: &Redactor, number: u64) -> String {
    let shown = HistoryView::new(Arc::clone(journal), redactor.clone());
    let entries = journal.entries().unwrap_or_default();
    let Some(entry) = entries.iter().find(|entry| entry.number == number) else {
        return String::new();
    };
    let (contents, state) = contents_and_state(&shown, entry, &entries);
    show_text(&shown, (entry, &state), &contents, Colour::Off)
}

/// Reads the contents of a change.
fn contents_and_state(
    shown: &HistoryView,
    entry: &Entry,
    entries: &[Entry],
) -> (Vec<Contents>, State) {
    let files = entry.file_changes();
    let contents: Vec<Contents> = files.iter().map(|f| Contents::of(shown, f)).collect();
    let state = State {
        is_undone: undone_numbers(entries).contains(&entry.number),
        // Undo needs the old contents; for the new ones the hash is enough.
        has_contents: !contents.iter().any(|found| found.old_is_damaged),
    };
    (contents, state)
}

fn show_text(
    shown: &HistoryView,
    (entry, state): (&Entry, &State),
    contents: &[Contents],
    colour: Colour,
) -> String {
    let mut text = line(entry, state, colour);
    for (file, contents) in entry.file_changes().iter().zip(contents) {
        let _ = writeln!(text, "\n{}", colour.paint(Ink::Heading, &file_line(file)));
        text.push_str(&match contents.is_damaged {
            true => format!("{}\n", colour.paint(Ink::Warning, DAMAGED)),
            false => describe(&contents.diff, colour),
        });
    }
    shown.redactor.redact_again(&text).into_owned()
}

fn show_json(shown: &HistoryView, entry: &Entry, state: &State, contents: &[Contents]) -> String {
    let mut value = as_json(entry, state);
    for (index, contents) in contents.iter().enumerate() {
        if contents.is_damaged {
            value["files"][index]["damaged"] = json!(true);
        }
        if let Some(found) = &contents.diff {
            value["files"][index]["diff"] = json!(found.text);
            if found.omitted > 0 {
                value["files"][index]["diff_omitted_lines"] = json!(found.omitted);
            }
        }
    }
    shown.redactor.redact_values_again(&mut value);
    format!("{value}\n")
}

/// Returns a diff for people, or the reason why there is none.
pub(super) fn describe(found: &Option<Diff>, colour: Colour) -> String {
    let Some(found) = found else {
        let why = "no text to compare: it is binary, too large, or was not stored";
        return format!("{}\n", colour.paint(Ink::Faint, why));
    };
    let mut text = diff_text::paint(&found.text, colour);
    if found.omitted > 0 {
        let more = format!("       {} more changed lines", found.omitted);
        let _ = writeln!(text, "{}", colour.paint(Ink::Faint, &more));
    }
    text
}

const DAMAGED: &str = "the journal's content of this file is damaged or missing";

/// Journal contents of one file of a change.
struct Contents {
    /// `None` when a content is binary or was not stored.
    diff: Option<Diff>,
    is_damaged: bool,
    /// True when the content that undo restores is damaged.
    old_is_damaged: bool,
}

impl Contents {
    fn of(shown: &HistoryView, file: &FileChange<'_, &Version>) -> Self {
        let read = |version: Option<&Version>| match version {
            None => Some(Vec::new()),
            Some(version) => shown.journal.content(version).ok(),
        };
        let is_kept = |version: Option<&Version>| version.is_none_or(|version| version.is_kept);
        let is_damaged = |version, found: &Option<_>| is_kept(version) && found.is_none();
        let old = read(file.old);
        let old_is_damaged = is_damaged(file.old, &old);
        let name = |version: Option<&'_ Version>| version.map(|version| version.content.clone());
        let was = name(file.old).filter(|name| !name.is_empty());
        if was.is_some() && was == name(file.new) {
            // It was only renamed.
            return Self {
                diff: Some(Diff::default()),
                is_damaged: old_is_damaged,
                old_is_damaged,
            };
        }
        let new = read(file.new);
        Self {
            is_damaged: old_is_damaged || is_damaged(file.new, &new),
            old_is_damaged,
            diff: old
                .zip(new)
                .and_then(|(old, new)| compare_bytes(&old, &new, &shown.redactor, DiffCaps::WHOLE)),
        }
    }
}

/// Compares two contents in displayable form; `None` when one of them is binary.
pub(super) fn compare_bytes(
    old: &[u8],
    new: &[u8],
    redactor: &Redactor,
    caps: DiffCaps,
) -> Option<Diff> {
    let (old, new) = Encoding::read_to_compare(old, new, None)?;
    let mask = |text: &str| redactor.redact_str(text).into_owned();
    let show = match redactor.is_idle() {
        true => Masking::Part(&mask),
        false => Masking::Whole(&mask),
    };
    Some(masked_diff(&old, &new, show, caps))
}
