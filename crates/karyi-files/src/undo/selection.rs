//! Selects the changes of an undo from the list of changes.
//!
//! Only later entries tell whether a change was taken back already, so the list is read once, from its end,
//! as far as the target needs it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::journal::{Damage, Entry, Journal, ListMark, capacity_text};
use super::super::recover::{self, FileRecovery, RecoveryForecast};
use super::{Conflict, UndoTarget};
use karyi_core::error::{ErrorCode, ToolError};

/// List of changes as far as it was read, and the unfinished changes.
#[derive(Debug)]
pub struct UndoSelection {
    /// Changes to take back.
    pub target: UndoTarget,
    /// Latest changes, oldest first.
    pub entries: Vec<Entry>,
    /// Damage in the part that was read.
    pub damage: Option<Damage>,
    /// Recovered or unfinished files.
    pub recovered: Vec<FileRecovery>,
    /// Predicted recovery, for a dry run.
    pub(super) forecast: RecoveryForecast,
    /// State of the list when it was read.
    mark: ListMark,
}

impl UndoSelection {
    /// Recovers unfinished changes, then reads the list.
    ///
    /// # Errors
    /// Another recovery takes too long, or the list cannot be read.
    pub fn for_undo(journal: &Journal, target: UndoTarget) -> Result<Self, ToolError> {
        let recovered = recover::recover(journal)?;
        Self::read(journal, target, recovered, RecoveryForecast::default())
    }

    /// Reads the list as it will be after recovery, without touching anything.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn for_dry_run(journal: &Journal, target: UndoTarget) -> Result<Self, ToolError> {
        let recovered = recover::pending_files(journal);
        Self::read(journal, target, recovered, recover::forecast(journal))
    }

    fn read(
        journal: &Journal,
        target: UndoTarget,
        recovered: Vec<FileRecovery>,
        forecast: RecoveryForecast,
    ) -> Result<Self, ToolError> {
        let mark = journal.list_mark();
        let (mut entries, damage) = match forecast.entries.is_empty() {
            true => journal.latest(enough_for(&target))?,
            false => journal.entries_and_damage()?,
        };
        add_forecast(&mut entries, &forecast, journal);
        Ok(Self {
            target,
            entries,
            damage,
            recovered,
            forecast,
            mark,
        })
    }

    /// Reads the list again if this journal, which may have the key now, could recover more changes.
    pub(super) fn reread(&self, journal: &Journal) -> Result<Option<Self>, ToolError> {
        let more = recover::recover(journal)?;
        if more.is_empty() {
            return Ok(None);
        }
        let mut recovered = self.recovered.clone();
        recover::merge(&mut recovered, more);
        let forecast = RecoveryForecast::default();
        Self::read(journal, self.target.clone(), recovered, forecast).map(Some)
    }

    /// Returns the selected changes, latest first.
    ///
    /// # Errors
    /// `not_found`, or `undo_conflict` for a change that was already undone.
    pub fn chosen(&self) -> Result<Vec<&Entry>, ToolError> {
        let undone = undone_numbers(&self.entries);
        let open = open(&self.entries, &undone);
        let chosen: Vec<&Entry> = match &self.target {
            UndoTarget::Number(number) if undone.contains(number) => {
                return Err(is_undone(*number));
            }
            UndoTarget::Number(number) => {
                let found = self.entries.iter().find(|entry| entry.number == *number);
                found.into_iter().collect()
            }
            UndoTarget::Last(count) => open.take(*count).collect(),
            UndoTarget::Session(session) => {
                open.filter(|entry| entry.session == *session).collect()
            }
        };
        match chosen.is_empty() {
            true => Err(self.nothing()),
            false => Ok(chosen),
        }
    }

    fn nothing(&self) -> ToolError {
        let first = self.entries.first().map(|first| first.number);
        let is_past = |number: u64| number > 0 && first.is_some_and(|first| number < first);
        let message = match &self.target {
            UndoTarget::Number(number) if is_past(*number) => {
                format!(
                    "change {number} is no longer in the journal: {}",
                    capacity_text()
                )
            }
            UndoTarget::Number(number) => format!("there is no change {number} in the journal"),
            UndoTarget::Last(_) => "there is nothing to undo".to_owned(),
            UndoTarget::Session(session) => {
                format!("there is nothing to undo in session {session}")
            }
        };
        let hint = "see `karyi history` for what can be undone";
        ToolError::new(ErrorCode::NotFound, message).with_hint(hint)
    }

    /// Returns the numbers of later open changes of the conflicting files, newest first: they have to be
    /// taken back before, in this order.
    #[must_use]
    pub fn later(&self, conflicts: &[Conflict]) -> Vec<u64> {
        let chosen = self.chosen().unwrap_or_default();
        let is_asked = |path: &Path| conflicts.iter().any(|conflict| conflict.path == path);
        over(&self.entries, &chosen, is_asked)
    }

    /// Refuses to skip a later change of the same file, even if the file is unchanged: its effect would be
    /// lost while it stays in the list. A file that was merged keeps it.
    pub(super) fn refuse_over(
        &self,
        chosen: &[&Entry],
        is_kept: impl Fn(&Path) -> bool,
    ) -> Result<(), ToolError> {
        let later = over(&self.entries, chosen, |path| !is_kept(path));
        if later.is_empty() {
            return Ok(());
        }
        let message =
            "a later change of the same file was not taken back, and an undo would skip it";
        Err(ToolError::new(ErrorCode::UndoConflict, message).with_hint(later_changes_hint(&later)))
    }

    /// Refuses changes that another process took back while this one waited for the locks.
    pub(super) fn refuse_undone(
        &self,
        journal: &Journal,
        numbers: &[u64],
    ) -> Result<(), ToolError> {
        if journal.list_mark() == self.mark {
            return Ok(());
        }
        let first = numbers.iter().min().copied().unwrap_or(0);
        let (entries, _) = journal.latest(|entry| entry.number <= first)?;
        let undone = undone_numbers(&entries);
        match numbers.iter().find(|number| undone.contains(number)) {
            Some(number) => Err(is_undone(*number)),
            None => Ok(()),
        }
    }

    /// Suggests an undoable change when the selected one cannot be undone.
    pub(super) fn with_alternative(&self, error: ToolError, journal: &Journal) -> ToolError {
        if error.code != ErrorCode::UndoUnavailable || matches!(self.target, UndoTarget::Number(_))
        {
            return error;
        }
        let Ok(mut entries) = journal.entries() else {
            return error;
        };
        add_forecast(&mut entries, &self.forecast, journal);
        let is_asked = |entry: &&Entry| match &self.target {
            UndoTarget::Session(session) => entry.session == *session,
            UndoTarget::Number(_) | UndoTarget::Last(_) => true,
        };
        let undone = undone_numbers(&entries);
        let is_free = |entry: &&Entry| {
            entry.can_be_undone() && over(&entries, &[*entry], |_| true).is_empty()
        };
        let mut open = open(&entries, &undone).filter(is_asked);
        let Some(number) = open.find(is_free).map(|entry| entry.number) else {
            return error;
        };
        let hint = format!(
            "{}; `karyi undo {number}` takes back the newest change that can be undone, and `karyi undo N` any other by its number",
            error.hint
        );
        error.with_hint(hint)
    }
}

/// Returns a predicate for [`Journal::latest`] that stops once earlier changes do not matter.
fn enough_for(target: &UndoTarget) -> impl FnMut(&Entry) -> bool + '_ {
    let mut undone: HashSet<u64> = HashSet::new();
    let mut count = 0;
    move |entry| {
        let stands = !undone.contains(&entry.number);
        if stands {
            undone.extend(&entry.undoes);
        }
        match target {
            UndoTarget::Number(number) => entry.number <= *number,
            UndoTarget::Last(wanted) => {
                count += usize::from(stands && entry.undoes.is_empty());
                count >= *wanted
            }
            UndoTarget::Session(_) => false,
        }
    }
}

/// Returns the numbers of the entries that were taken back.
#[must_use]
pub fn undone_numbers(entries: &[Entry]) -> HashSet<u64> {
    let mut undone = HashSet::new();
    for entry in entries.iter().rev() {
        // An undo that was itself taken back has no effect.
        if !undone.contains(&entry.number) {
            undone.extend(&entry.undoes);
        }
    }
    undone
}

/// Returns open changes that are not undos, latest first.
fn open<'a>(entries: &'a [Entry], undone: &HashSet<u64>) -> impl Iterator<Item = &'a Entry> {
    let is_open = |entry: &&Entry| !undone.contains(&entry.number) && entry.undoes.is_empty();
    entries.iter().rev().filter(is_open)
}

/// Returns the numbers of open changes, not selected, that came after a selected one and share a file that
/// `is_asked` accepts; newest first.
fn over(entries: &[Entry], chosen: &[&Entry], is_asked: impl Fn(&Path) -> bool) -> Vec<u64> {
    let mut first: HashMap<&Path, u64> = HashMap::new();
    for entry in chosen {
        for file in entry
            .files
            .iter()
            .filter(|file| is_asked(file.path.as_path()))
        {
            let first = first.entry(file.path.as_path()).or_insert(entry.number);
            *first = entry.number.min(*first);
        }
    }
    let undone = undone_numbers(entries);
    let is_chosen = |number: u64| chosen.iter().any(|entry| entry.number == number);
    let is_over = |entry: &&Entry| {
        let mut files = entry.files.iter();
        let touched = |first: &u64| *first < entry.number;
        files.any(|file| first.get(file.path.as_path()).is_some_and(touched))
    };
    let later = open(entries, &undone).filter(is_over);
    let later = later.map(|entry| entry.number);
    later.filter(|number| !is_chosen(*number)).collect()
}

/// Adds the entries that recovery will append.
fn add_forecast(entries: &mut Vec<Entry>, forecast: &RecoveryForecast, journal: &Journal) {
    for entry in &forecast.entries {
        if entries.iter().any(|known| known.id == entry.id) {
            continue;
        }
        let last = entries.iter().map(|entry| entry.number).max();
        let number = last.unwrap_or(0).max(journal.last_number()) + 1;
        entries.push(Entry {
            number,
            ..entry.clone()
        });
    }
}

/// Hint to take back later changes first, newest first.
#[must_use]
pub fn later_changes_hint(later: &[u64]) -> String {
    let steps = later.iter().map(|number| format!("`karyi undo {number}`"));
    let steps: Vec<String> = steps.collect();
    format!(
        "later changes are in the way: first {}; or restore the wanted lines by hand",
        steps.join(", then ")
    )
}

fn is_undone(number: u64) -> ToolError {
    let message = format!("change {number} was already undone");
    let hint = "see `karyi history`; to redo it, undo the undo";
    ToolError::new(ErrorCode::UndoConflict, message).with_hint(hint)
}
