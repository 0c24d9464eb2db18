//! Journal of changes, from which they can be undone.
//!
//! It lives in the user's state directory, never in the changed project, and is independent of git. `entries`
//! holds one line of JSON per change, in order; the old and new contents are stored beside it, each once. Old
//! entries are removed by age, count and total size.

mod blobs;
mod entry;
mod entry_lines;
pub(super) mod history;
mod prune;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Access;

use super::attributes::Attributes;
use super::parallel::join;
use super::{locks, state_file};
use blobs::Blobs;
pub(super) use blobs::{Durability, PreparedBlob};
pub use entry::{Entry, FileRecord, StoredPath, Version};
pub use entry_lines::Damage;
use entry_lines::ListTail;
pub use history::{ChangeKind, FileChange};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
pub(super) use prune::ListMark;
pub use prune::{PrunedChanges, capacity_text};

/// Tells whether a content may only be stored encrypted.
pub type IsPrivate<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// Limits of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalCaps {
    /// Stored bytes.
    pub bytes: u64,
    /// Age of the oldest entry.
    pub age: Duration,
    /// Number of entries.
    pub entries: usize,
}

impl Default for JournalCaps {
    fn default() -> Self {
        Self {
            bytes: limits::JOURNAL_BYTES,
            age: limits::JOURNAL_AGE,
            entries: limits::JOURNAL_ENTRIES,
        }
    }
}

/// Journal of one user.
pub struct Journal {
    directory: PathBuf,
    blobs: Blobs,
    caps: JournalCaps,
    /// Bytes stored since the last entry was added.
    taken: AtomicU64,
    /// Damage found while entries were added.
    damage: Mutex<Option<Damage>>,
    /// Changes removed meanwhile because the journal was full.
    pruned: Mutex<Option<PrunedChanges>>,
}

impl Journal {
    /// Opens the journal in a directory, which is created if needed. With a key, new contents are encrypted;
    /// plain ones stay readable.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn open(directory: &Path, key: Option<&[u8; 32]>) -> Result<Self, ToolError> {
        Self::with_caps(directory, key, JournalCaps::default())
    }

    /// Opens the journal with other limits.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn with_caps(
        directory: &Path,
        key: Option<&[u8; 32]>,
        caps: JournalCaps,
    ) -> Result<Self, ToolError> {
        for part in ["", "contents", "locks", "transactions"] {
            let path = directory.join(part);
            locks::make_private(&path).map_err(|error| ToolError::from_io(&path, &error))?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            blobs: Blobs::new(directory.join("contents"), key),
            caps,
            taken: AtomicU64::new(0),
            damage: Mutex::default(),
            pruned: Mutex::default(),
        })
    }

    /// Tells whether changes can be recorded: the directories are writable.
    #[must_use]
    pub fn can_record(&self) -> bool {
        let parts = ["", "contents", "locks", "transactions"];
        let mode = Access::WRITE_OK | Access::EXEC_OK;
        let can_write = |part| rustix::fs::access(self.directory.join(part), mode).is_ok();
        parts.into_iter().all(can_write)
    }

    /// Tells whether contents are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.blobs.is_encrypted()
    }

    /// Returns the name of the encryption key.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.blobs.key_name()
    }

    /// Checks that this journal has the key of an entry.
    ///
    /// # Errors
    /// `undo_unavailable` when the entry is encrypted with another key.
    pub fn check_key(&self, entry: &Entry) -> Result<(), ToolError> {
        if entry.key.is_none() || entry.key.as_deref() == self.key_name() {
            return Ok(());
        }
        let number = entry.number;
        let message = match self.key_name() {
            None => format!("change {number} is encrypted, and no vault has the key for it"),
            Some(_) => format!("change {number} is encrypted with the key of another vault"),
        };
        Err(ToolError::new(ErrorCode::UndoUnavailable, message)
            .with_hint("name the store of that run with --vault and --age-identity"))
    }

    /// Returns the directory of the lock files.
    pub(super) fn locks(&self) -> PathBuf {
        self.directory.join("locks")
    }

    /// Returns the directory of the write-ahead records.
    pub(super) fn transactions(&self) -> PathBuf {
        self.directory.join("transactions")
    }

    /// Stores a content; returns its name.
    pub(super) fn store(&self, bytes: &[u8], durability: Durability) -> io::Result<String> {
        self.store_prepared(self.prepare(bytes, &|| true)?, durability)
    }

    /// Prepares a content while `is_live` holds; [`Self::store_prepared`] completes it.
    pub(super) fn prepare(
        &self,
        bytes: &[u8],
        is_live: &dyn Fn() -> bool,
    ) -> io::Result<PreparedBlob> {
        self.blobs.prepare(bytes, is_live)
    }

    /// Stores a prepared content; returns its name.
    pub(super) fn store_prepared(
        &self,
        prepared: PreparedBlob,
        durability: Durability,
    ) -> io::Result<String> {
        let taken = self.taken.load(Ordering::Relaxed);
        let sum = taken.saturating_add(prepared.size());
        self.taken.store(sum, Ordering::Relaxed);
        self.blobs.store(prepared, durability)
    }

    /// Returns the name that a content has in the store.
    #[must_use]
    pub fn name(&self, bytes: &[u8]) -> String {
        self.blobs.name(bytes)
    }

    /// Tells whether bytes are the content of a version, even of one stored before there was a key.
    #[must_use]
    pub fn is_content(&self, bytes: &[u8], version: &Version) -> bool {
        let is_plain = || blake3::hash(bytes).to_hex().as_str() == version.content;
        let has_size = bytes.len() as u64 == version.size;
        has_size && (self.name(bytes) == version.content || is_plain())
    }

    /// Returns the content of a version.
    ///
    /// # Errors
    /// It is no longer stored, or is encrypted with another key.
    pub fn content(&self, version: &Version) -> io::Result<Vec<u8>> {
        if !version.is_kept {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.blobs.get(&version.content, version.size)
    }

    /// Stores the attributes of a file; returns their name, which is empty when they cannot be stored.
    pub(super) fn store_attributes(
        &self,
        attributes: &Attributes,
        is_private: IsPrivate<'_>,
    ) -> Option<String> {
        if attributes.is_empty() {
            return None;
        }
        let keep = |bytes: Vec<u8>| match self.is_encrypted() || !is_private(&bytes) {
            true => self.store(&bytes, Durability::PowerLoss).ok(),
            false => None,
        };
        let written = serde_json::to_vec(attributes).ok();
        Some(written.and_then(keep).unwrap_or_default())
    }

    /// Returns the attributes of a version; `None` when they were not stored.
    pub(super) fn attributes(&self, version: &Version) -> Option<Attributes> {
        match version.attributes.as_deref() {
            None => Some(Attributes::default()),
            Some("") => None,
            Some(name) => serde_json::from_slice(&self.blobs.get(name, 0).ok()?).ok(),
        }
    }

    /// Adds an entry durably, unless its transaction already has one; returns its number.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append(&self, entry: Entry) -> Result<u64, ToolError> {
        let lock = locks::lock_file(&self.entries_lock())?;
        let had_entries = self.had_entries();
        let path = self.entries_path();
        let io = |error: io::Error| state_file::error(&path, &error);
        let is_new = !path.exists();
        let before = self.list_mark();
        let (number, file) = self.add_line(entry, had_entries).map_err(io)?;
        // If this fails, the list itself still has the number.
        let last = number.max(self.last_number());
        let _ = lock.write_all_at(format!("{last:020}\n").as_bytes(), 0);
        self.scan(before, SystemTime::now());
        // Others need not wait for the sync.
        drop(lock);
        let sync_name = || sync_directory(&self.directory);
        let synced = match is_new {
            true => join(|| file.sync_data(), sync_name).0,
            false => file.sync_data(),
        };
        synced.map_err(io)?;
        Ok(number)
    }

    /// Writes the line of an entry, unless it exists.
    fn add_line(&self, mut entry: Entry, had_entries: bool) -> io::Result<(u64, File)> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = state_file::open(&mut options, &self.entries_path())?;
        let tail = ListTail::read(&mut file)?;
        let damage = tail.damage(had_entries);
        if damage.is_some() {
            let all = self.entries_and_damage();
            self.record_broken_lines(all.ok().and_then(|(_, damage)| damage));
            self.record_damage(damage);
        }
        if let Some(number) = tail.number_of(&entry.id) {
            return Ok((number, file));
        }
        entry.number = tail.last.max(self.last_number()).saturating_add(1);
        // Ends a line that a crash cut off.
        let mut line = if tail.is_cut { "\n" } else { "" }.to_owned();
        line += &serde_json::to_string(&entry)?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        Ok((entry.number, file))
    }

    fn record_damage(&self, damage: Option<Damage>) {
        if damage.is_some() {
            *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = damage;
        }
    }

    /// Records unreadable lines, unless this many were reported before.
    fn record_broken_lines(&self, damage: Option<Damage>) {
        let path = self.directory.join("damage-told");
        let reported = number_in(&path).unwrap_or(0);
        let broken = match damage {
            Some(Damage::Lines(broken)) => broken,
            None | Some(Damage::Emptied) => 0,
        };
        if broken > reported {
            self.record_damage(Some(Damage::Lines(broken)));
        }
        if broken != reported {
            // If this fails, the damage is reported once more.
            let _ = write_private(&path, &broken.to_string());
        }
    }

    /// Takes the damage found while entries were added.
    pub(super) fn take_damage(&self) -> Option<Damage> {
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.take()
    }

    fn record_pruned(&self, pruned: PrunedChanges) {
        let mut known = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.map_or(0, |known| known.changes);
        *known = Some(PrunedChanges {
            changes: before + pruned.changes,
            ..pruned
        });
    }

    /// Takes the changes that were removed because the journal was full.
    pub(super) fn take_pruned(&self) -> Option<PrunedChanges> {
        let mut pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        pruned.take()
    }

    /// Returns the directory of the journal.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn entries_lock(&self) -> PathBuf {
        self.locks().join("entries")
    }

    /// Tells whether the list ever had entries, according to the files beside it.
    fn had_entries(&self) -> bool {
        self.last_number() > 0 || self.scan_state_path().exists()
    }

    /// Returns the last number in use, which the lock file repeats: an emptied or cut list no longer has it,
    /// and numbers must stay unique.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        let number: Option<u64> = number_in(&self.entries_lock());
        // No list gets this long, so karyi did not write it.
        number.filter(|number| *number < u64::MAX / 2).unwrap_or(0)
    }

    fn entries_path(&self) -> PathBuf {
        self.directory.join("entries")
    }

    /// Returns every readable entry, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, ToolError> {
        Ok(self.entries_and_damage()?.0)
    }

    /// Returns every readable entry and the damage of the list.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn entries_and_damage(&self) -> Result<(Vec<Entry>, Option<Damage>), ToolError> {
        self.latest(|_| false)
    }

    /// Returns the latest entries, oldest first, and the damage among them. Reads back from the end until
    /// `is_enough` accepts an entry.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn latest(
        &self,
        mut is_enough: impl FnMut(&Entry) -> bool,
    ) -> Result<(Vec<Entry>, Option<Damage>), ToolError> {
        let had_entries = self.had_entries();
        let path = self.entries_path();
        let io = |error: io::Error| state_file::error(&path, &error);
        let mut file = match state_file::open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Vec::new(), Damage::of(had_entries, 0)));
            }
            Err(error) => return Err(io(error)),
        };
        let is_empty = file.metadata().map_err(io)?.len() == 0;
        let (mut entries, mut broken) = (Vec::new(), 0);
        let visit = |line: &[u8]| {
            if line.trim_ascii().is_empty() {
                return ControlFlow::Continue(());
            }
            let Ok(entry) = serde_json::from_slice(line) else {
                broken += 1;
                return ControlFlow::Continue(());
            };
            let is_last = is_enough(&entry);
            entries.push(entry);
            match is_last {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        entry_lines::visit_from_end(&mut file, limits::JOURNAL_TAIL_BYTES, visit).map_err(io)?;
        entries.reverse();
        Ok((entries, Damage::of(is_empty && had_entries, broken)))
    }

    /// Tells whether a blob with the name of a version exists, without verifying it.
    #[must_use]
    pub fn has_content(&self, version: &Version) -> bool {
        self.blobs.exists(&version.content)
    }
}

/// Converts a time to milliseconds since 1970.
pub(super) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    state_file::open(&mut options, path)?.write_all(text.as_bytes())
}

/// Reads a number from a file.
fn number_in<N: FromStr>(path: &Path) -> Option<N> {
    let bytes = state_file::read(path).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Syncs the entries of a directory. A file system that cannot do so offers nothing better.
pub(super) fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests;
