//! The record of every change, from which it can be undone.
//!
//! It lives in the user's directory for state, never in the changed project, and knows nothing of
//! git. `entries` holds one line of JSON for each change, in the order they were made; the contents
//! before and after stand beside it, each once. Old entries go when they are past their age or when
//! the whole is too large.

mod blobs;
mod entry;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Access;

use super::locks;
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use blobs::Blobs;
pub(super) use blobs::Lasts;
pub use entry::{Entry, FileRecord, StoredPath, Version};

/// Age below which a content that no entry names may belong to a change under way.
const UNCLAIMED_AGE: Duration = limits::JOURNAL_UNCLAIMED_AGE;

/// How much the journal keeps.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Bytes of contents on the disk.
    pub bytes: u64,
    /// Age of the oldest entry.
    pub age: Duration,
    /// Entries.
    pub entries: usize,
}

impl Default for Caps {
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
    caps: Caps,
    /// Bytes of contents taken since old ones were removed last.
    taken: AtomicU64,
}

impl Journal {
    /// Opens the journal in a directory, which is made if need be. With a key the contents are
    /// encrypted; what was kept without one can still be read.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(directory: &Path, key: Option<&[u8; 32]>) -> Result<Self, ToolError> {
        Self::with_caps(directory, key, Caps::default())
    }

    /// Does so with other caps.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn with_caps(
        directory: &Path,
        key: Option<&[u8; 32]>,
        caps: Caps,
    ) -> Result<Self, ToolError> {
        for part in ["", "contents", "locks", "transactions"] {
            let path = directory.join(part);
            locks::make_private(&path).map_err(|error| ToolError::from_io(&path, &error))?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            blobs: Blobs::new(directory.join("contents"), key),
            caps,
            // The first change of a run looks for what is too old.
            taken: AtomicU64::new(u64::MAX),
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
    pub(super) fn keep(&self, bytes: &[u8], lasts: Lasts) -> io::Result<String> {
        let taken = self.taken.load(Ordering::Relaxed);
        let sum = taken.saturating_add(bytes.len() as u64);
        self.taken.store(sum, Ordering::Relaxed);
        self.blobs.put(bytes, lasts)
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
        self.blobs.get(&version.content)
    }

    /// Adds an entry, unless the same transaction has one; returns its number. It outlives a loss of
    /// power then.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append(&self, mut entry: Entry) -> Result<u64, ToolError> {
        let lock = locks::lock_file(&self.locks().join("entries"))?;
        let path = self.entries_path();
        let mut add = || -> io::Result<(u64, File)> {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).mode(0o600);
            let mut file = options.open(&path)?;
            let tail = Tail::read(&mut file)?;
            if let Some(number) = tail.number_of(&entry.id) {
                return Ok((number, file));
            }
            entry.number = tail.last + 1;
            // A line that was cut by a crash ends here.
            let mut line = if tail.is_cut { "\n" } else { "" }.to_owned();
            line += &serde_json::to_string(&entry)?;
            line.push('\n');
            file.write_all(line.as_bytes())?;
            Ok((entry.number, file))
        };
        let io = |error: io::Error| ToolError::from_io(&path, &error);
        let (number, file) = add().map_err(io)?;
        if self.taken.load(Ordering::Relaxed) > limits::JOURNAL_PRUNE_BYTES {
            self.taken.store(0, Ordering::Relaxed);
            // What could not be removed now is next time.
            let _ = self.prune(SystemTime::now());
        }
        // Others need not wait for the disk.
        drop(lock);
        file.sync_data().map_err(io)?;
        Ok(number)
    }

    fn entries_path(&self) -> PathBuf {
        self.directory.join("entries")
    }

    /// Returns every entry, the oldest first. A line that cannot be read is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, ToolError> {
        let path = self.entries_path();
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ToolError::from_io(&path, &error)),
        };
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(entries.collect())
    }

    /// Removes what is past the caps: entries first, then contents nobody names. The lock of the
    /// entries is held.
    fn prune(&self, now: SystemTime) -> Result<(), ToolError> {
        let entries = self.entries()?;
        let kept = self.blobs.list();
        let first = self.first_to_keep(&entries, &kept, now);
        let stay = entries.get(first..).unwrap_or_default();
        if first > 0 {
            self.rewrite(stay)
                .map_err(|error| ToolError::from_io(&self.entries_path(), &error))?;
        }
        let named: HashSet<&str> = stay.iter().flat_map(contents).collect();
        for content in kept {
            let age = now.duration_since(content.changed).unwrap_or_default();
            if !named.contains(content.name.as_str()) && age > UNCLAIMED_AGE {
                let _ = std::fs::remove_file(content.path);
            }
        }
        Ok(())
    }

    /// Returns the index of the oldest entry that stays.
    fn first_to_keep(&self, entries: &[Entry], kept: &[blobs::Kept], now: SystemTime) -> usize {
        let sizes: std::collections::HashMap<&str, u64> = kept
            .iter()
            .map(|content| (content.name.as_str(), content.bytes))
            .collect();
        let oldest = milliseconds(now).saturating_sub(self.caps.age.as_millis() as u64);
        let mut seen = HashSet::new();
        let (mut bytes, mut count) = (0_u64, 0);
        for (index, entry) in entries.iter().enumerate().rev() {
            count += 1;
            let new = contents(entry).filter(|name| seen.insert(*name));
            bytes += new.filter_map(|name| sizes.get(name)).sum::<u64>();
            // The latest change can always be undone.
            let is_past = bytes > self.caps.bytes || count > self.caps.entries;
            if count > 1 && (is_past || entry.time_ms < oldest) {
                return index + 1;
            }
        }
        0
    }

    fn rewrite(&self, entries: &[Entry]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        file.as_file().sync_data()?;
        file.persist(self.entries_path())?;
        Ok(())
    }
}

fn contents(entry: &Entry) -> impl Iterator<Item = &str> {
    let versions = entry.files.iter().flat_map(|file| [&file.old, &file.new]);
    versions.flatten().map(|version| version.content.as_str())
}

/// Returns a time in milliseconds since 1970.
pub(super) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The end of the file of entries.
struct Tail {
    last: u64,
    is_cut: bool,
    entries: Vec<Entry>,
}

impl Tail {
    fn read(file: &mut File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut reach = limits::JOURNAL_TAIL_BYTES;
        loop {
            file.seek(SeekFrom::Start(length.saturating_sub(reach)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            let entries: Vec<Entry> = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            if reach >= length || !entries.is_empty() {
                return Ok(Self {
                    last: entries.iter().map(|entry| entry.number).max().unwrap_or(0),
                    is_cut: !bytes.is_empty() && !bytes.ends_with(b"\n"),
                    entries,
                });
            }
            reach = reach.saturating_mul(8);
        }
    }

    fn number_of(&self, id: &str) -> Option<u64> {
        let found = self.entries.iter().find(|entry| entry.id == id);
        found.map(|entry| entry.number)
    }
}

#[cfg(test)]
mod tests;
