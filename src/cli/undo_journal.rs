//! Opens the user's undo journal and names the current run in it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

use crate::cli::say;
use crate::cli::state_dir::state_dir;
use crate::render::paint::safe_line;
use karyi_files::journal::{Damage, Entry, Journal};
use karyi_files::transaction::Recorder;
use karyi_vault::store::journal_key::JournalKey;

/// Opens the journal; with a key, new contents are encrypted.
pub(super) fn open(key: Option<&JournalKey>) -> anyhow::Result<Journal> {
    let directory = state_dir()?.join("journal");
    Journal::open(&directory, key.map(|key| &**key)).context("opening the journal")
}

/// Returns the recorded changes and warns about unreadable ones.
pub(super) fn entries(journal: &Journal) -> anyhow::Result<Vec<Entry>> {
    let (entries, damage) = journal.entries_and_damage()?;
    warn_of(journal, damage);
    Ok(entries)
}

/// Warns when a part of the list of changes is unreadable.
pub(super) fn warn_of(journal: &Journal, damage: Option<Damage>) {
    if let Some(damage) = damage {
        let directory = safe_line(&journal.directory().display().to_string()).into_owned();
        say(&format!(
            "warning: the list of changes {directory}/entries is damaged: {damage}; those changes are not shown \
             and cannot be undone\nhint: new changes are recorded all the same; restore the file from a backup, \
             or move {directory} away to begin anew"
        ));
    }
}

/// Encrypts the contents that a run stores from now on.
pub(super) fn encrypt(recorder: &mut Recorder, key: &JournalKey) {
    if let Some(journal) = open(Some(key)).ok().filter(Journal::can_record) {
        recorder.journal = Some(Arc::new(journal));
    }
}

/// Returns the recorder of this run. Without a journal, a change of one file reports that it cannot be
/// undone, and a change of several is refused.
pub(super) fn recorder() -> Recorder {
    Recorder {
        journal: open(None).ok().filter(Journal::can_record).map(Arc::new),
        needs_journal: true,
        session: session(),
        ..Recorder::default()
    }
}

/// Returns the name of this run: its start time and process id.
fn session() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time(since.map_or(0, |since| since.as_millis() as u64));
    let digits: String = time.chars().filter(char::is_ascii_digit).collect();
    let (day, clock) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    format!("{day}-{clock}-{}", std::process::id())
}

/// Formats a time in milliseconds since 1970 as `2026-11-22 08:15:03` in UTC.
pub(super) fn time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Returns the date of a day since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // Every 400 years have the same number of days.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(951_782_399_999), "2000-02-28 23:59:59");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(time(1_795_335_303_000), "2026-11-22 08:15:03");
        assert_eq!(time(4_107_542_400_000), "2100-03-01 00:00:00");
    }
}
