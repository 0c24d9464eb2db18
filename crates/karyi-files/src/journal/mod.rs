//! The record of every change, from which it can be undone.
//!
//! It lives in the user's directory for state, never in the changed project, and knows nothing of
//! git. `entries` holds one line of JSON for each change, in the order they were made; the contents
//! before and after stand beside it, each once. Old entries go when they are past their age or when
//! the whole is too large.

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

/// Tells whether a content must not be kept unless it is encrypted.
pub type IsPrivate<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// How much the journal keeps.
#[derive(Debug, Clone, Copy)]
pub struct JournalCaps {
    /// Bytes of contents on the disk.
    pub bytes: u64,
    /// Age of the oldest entry.
    pub age: Duration,
    /// Entries.
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

/// The journal of one user.
pub struct Journal {
    directory: PathBuf,
    blobs: Blobs,
    caps: JournalCaps,
    /// Bytes of contents taken since the last entry was added.
    taken: AtomicU64,
    /// What was found broken while entries were added.
    damage: Mutex<Option<Damage>>,
    /// What was removed meanwhile as there was too much.
    pruned: Mutex<Option<PrunedChanges>>,
}

impl Journal {
    /// Opens the journal in a directory, which is made if need be. With a key the contents are
    /// encrypted; what was kept without one can still be read.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(directory: &Path, key: Option<&[u8; 32]>) -> Result<Self, ToolError> {
        Self::with_caps(directory, key, JournalCaps::default())
    }

    /// Does so with other caps.
    ///
    /// # Errors
    /// The directory cannot be made.
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

    /// Whether changes can be recorded: its directories can be written.
    #[must_use]
    pub fn can_record(&self) -> bool {
        let parts = ["", "contents", "locks", "transactions"];
        let mode = Access::WRITE_OK | Access::EXEC_OK;
        let can_write = |part| rustix::fs::access(self.directory.join(part), mode).is_ok();
        parts.into_iter().all(can_write)
    }

    /// Whether contents are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.blobs.is_encrypted()
    }

    /// Returns the name of the key that contents are encrypted with.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.blobs.key_name()
    }

    /// Checks that the contents of an entry can be read, as far as the key goes.
    ///
    /// # Errors
    /// `undo_unavailable` when they are encrypted with a key that is not the one here.
    pub fn check_key(&self, entry: &Entry) -> Result<(), ToolError> {
        if entry.key.is_none() || entry.key.as_deref() == self.key_name() {
            return Ok(());
        }
        let number = entry.number;
        let message = match self.key_name() {
            None => format!("change {number} is encrypted, and no vault gave the key for it"),
            Some(_) => format!("change {number} is encrypted with the key of another vault"),
        };
        Err(ToolError::new(ErrorCode::UndoUnavailable, message)
            .with_hint("name the store of that run with --vault and --age-identity"))
    }

    /// Returns the directory of the lock files.
    pub(super) fn locks(&self) -> PathBuf {
        self.directory.join("locks")
    }

    /// Returns the directory of the transactions that are under way.
    pub(super) fn transactions(&self) -> PathBuf {
        self.directory.join("transactions")
    }

    /// Keeps a content.
    pub(super) fn keep(&self, bytes: &[u8], durability: Durability) -> io::Result<String> {
        self.store_prepared(self.prepare(bytes, &|| true)?, durability)
    }

    /// Does the work of keeping a content, as long as it is wanted; it is kept by
    /// [`Self::store_prepared`], else nothing of it stays.
    pub(super) fn prepare(
        &self,
        bytes: &[u8],
        is_live: &dyn Fn() -> bool,
    ) -> io::Result<PreparedBlob> {
        self.blobs.prepare(bytes, is_live)
    }

    /// Keeps a content that was prepared; returns its name.
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

    /// Returns the name a content has or would have.
    #[must_use]
    pub fn name(&self, bytes: &[u8]) -> String {
        self.blobs.name(bytes)
    }

    /// Whether bytes are the content of a version, also of one from before there was a key.
    #[must_use]
    pub fn is_content(&self, bytes: &[u8], version: &Version) -> bool {
        let is_plain = || blake3::hash(bytes).to_hex().as_str() == version.content;
        let has_size = bytes.len() as u64 == version.size;
        has_size && (self.name(bytes) == version.content || is_plain())
    }

    /// Returns a content.
    ///
    /// # Errors
    /// It is not kept any more, or was kept under another key.
    pub fn content(&self, version: &Version) -> io::Result<Vec<u8>> {
        if !version.is_kept {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.blobs.get(&version.content, version.size)
    }

    /// Keeps the attributes of a file; returns their name, which is empty when they cannot be kept.
    pub(super) fn store_attributes(
        &self,
        attributes: &Attributes,
        is_private: IsPrivate<'_>,
    ) -> Option<String> {
        if attributes.is_empty() {
            return None;
        }
        let keep = |bytes: Vec<u8>| match self.is_encrypted() || !is_private(&bytes) {
            true => self.keep(&bytes, Durability::PowerLoss).ok(),
            false => None,
        };
        let written = serde_json::to_vec(attributes).ok();
        Some(written.and_then(keep).unwrap_or_default())
    }

    /// Returns the attributes a version had; none when they were not kept.
    pub(super) fn attributes(&self, version: &Version) -> Option<Attributes> {
        match version.attributes.as_deref() {
            None => Some(Attributes::default()),
            Some("") => None,
            Some(name) => serde_json::from_slice(&self.blobs.get(name, 0).ok()?).ok(),
        }
    }

    /// Adds an entry, unless the same transaction has one; returns its number. It outlives a loss of
    /// power then.
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
        // Should that fail, the list itself says it as long as it is whole.
        let last = number.max(self.last_number());
        let _ = lock.write_all_at(format!("{last:020}\n").as_bytes(), 0);
        self.scan(before, SystemTime::now());
        // Others need not wait for the disk.
        drop(lock);
        let sync_name = || sync_directory(&self.directory);
        let synced = match is_new {
            true => join(|| file.sync_data(), sync_name).0,
            false => file.sync_data(),
        };
        synced.map_err(io)?;
        Ok(number)
    }

    /// Writes the line of an entry, unless there is one already.
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
        // A line that was cut by a crash ends here.
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

    /// Notes lines that are broken anywhere in the list, unless so many were told already.
    fn record_broken_lines(&self, damage: Option<Damage>) {
        let path = self.directory.join("damage-told");
        let told = number_in(&path).unwrap_or(0);
        let broken = match damage {
            Some(Damage::Lines(broken)) => broken,
            None | Some(Damage::Emptied) => 0,
        };
        if broken > told {
            self.record_damage(Some(Damage::Lines(broken)));
        }
        if broken != told {
            // Should that fail, it is told once more.
            let _ = write_private(&path, &broken.to_string());
        }
    }

    /// Returns what was found broken in the list while entries were added, once.
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

    /// Returns which changes were removed while entries were added as there was too much, once.
    pub(super) fn take_pruned(&self) -> Option<PrunedChanges> {
        let mut pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        pruned.take()
    }

    /// Returns the directory it is in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn entries_lock(&self) -> PathBuf {
        self.locks().join("entries")
    }

    /// Whether an entry was added before: after its line its number was written, and what was looked through.
    fn had_entries(&self) -> bool {
        self.last_number() > 0 || self.scan_state_path().exists()
    }

    /// Returns the last number that was given, which stands in that lock: a list that was emptied or cut does
    /// not say it any more, and no two changes may have the same.
    pub(super) fn last_number(&self) -> u64 {
        let number: Option<u64> = number_in(&self.entries_lock());
        // No list comes so far; then it is not what was written.
        number.filter(|number| *number < u64::MAX / 2).unwrap_or(0)
    }

    fn entries_path(&self) -> PathBuf {
        self.directory.join("entries")
    }

    /// Returns every entry, the oldest first. A line that cannot be read is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, ToolError> {
        Ok(self.entries_and_damage()?.0)
    }

    /// Does so, and says what of the list is broken.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn entries_and_damage(&self) -> Result<(Vec<Entry>, Option<Damage>), ToolError> {
        self.latest(|_| false)
    }

    /// Returns the last entries, the oldest of them first, and what is broken among them: from the one on that is
    /// enough, which is looked for from the end. What comes before is not read.
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

    /// Whether something is kept under the name of a version. What it holds shows only when it is read.
    #[must_use]
    pub fn has_content(&self, version: &Version) -> bool {
        self.blobs.exists(&version.content)
    }
}

/// Returns a time in milliseconds since 1970.
pub(super) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    state_file::open(&mut options, path)?.write_all(text.as_bytes())
}

/// Returns the number that stands in a file.
fn number_in<N: FromStr>(path: &Path) -> Option<N> {
    let bytes = state_file::read(path).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Makes the names in a directory last. A file system that cannot do that has no more to offer.
fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests;
