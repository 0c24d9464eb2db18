//! The two TODO files of a directory, which change together.
//!
//! A change reads the files under their locks, so processes wait for each other, and is one transaction: after a crash
//! at any instant the next change ends or takes back what was begun. A caller that asks a language model first reads
//! without a lock, and names the entries it means by their content.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::todo_entry::{TodoEntry, minute};
use super::todo_file::{TodoFile, TodoKind};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_files::change::Change;
use karyi_files::transaction::{Receipt, Recorder, Transaction};

/// TODO files of a directory, whose path has every symlink resolved.
#[derive(Debug, Clone)]
pub struct TodoStore {
    directory: PathBuf,
}

/// Result of a change of the two files.
#[derive(Debug)]
pub struct TodoChange {
    /// Entry that was added, or is done now.
    pub entry: TodoEntry,
    /// Duplicates of it that were removed.
    pub removed: Vec<TodoEntry>,
    /// Number of open entries.
    pub open_count: usize,
    /// Number of entries that are done.
    pub done_count: usize,
    /// Report of the transaction.
    pub receipt: Receipt,
}

/// One file as it was read under its lock.
struct LoadedFile {
    change: Change,
    file: TodoFile,
}

impl TodoStore {
    /// Makes a store of the files in a directory. Nothing is read or made.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the path of a file.
    #[must_use]
    pub fn path(&self, kind: TodoKind) -> PathBuf {
        self.directory.join(kind.file_name())
    }

    /// Returns the open entries as they are now.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or is not UTF-8.
    pub fn open_entries(&self) -> Result<Vec<TodoEntry>, ToolError> {
        let loaded = self.load(TodoKind::Open, Timestamp::UNIX_EPOCH)?;
        Ok(loaded.file.entries().to_vec())
    }

    /// Adds an entry in front of the others, and removes duplicates of it that are still there.
    ///
    /// # Errors
    /// The cause; nothing is changed.
    pub fn add(
        &self,
        recorder: &Recorder,
        entry: TodoEntry,
        duplicates: &[TodoEntry],
        now: Timestamp,
    ) -> Result<TodoChange, ToolError> {
        let (open, done) = (self.path(TodoKind::Open), self.path(TodoKind::Done));
        let transaction = Transaction::begin(recorder, &[&open, &done])?;
        let open = self.load(TodoKind::Open, now)?;
        let done = self.load(TodoKind::Done, now)?;
        let gone = indexes(open.file.entries(), duplicates);
        let removed = gone
            .iter()
            .filter_map(|index| open.file.entries().get(*index));
        let removed: Vec<TodoEntry> = removed.cloned().collect();
        let open_count = open.file.entries().len() + 1 - gone.len();
        let text = open.file.changed(Some(&entry), &gone, now);
        let receipt = transaction.commit(&[open.change.with_content(text.into())], &|_| false)?;
        Ok(TodoChange {
            entry,
            removed,
            open_count,
            done_count: done.file.entries().len(),
            receipt,
        })
    }

    /// Moves an open entry to the front of those that are done.
    ///
    /// # Errors
    /// `not_found` when it is no longer open, or another cause; nothing is changed.
    pub fn complete(
        &self,
        recorder: &Recorder,
        entry: &TodoEntry,
        now: Timestamp,
    ) -> Result<TodoChange, ToolError> {
        // Without a journal a crash could leave the entry in both files.
        let recorder = Recorder {
            needs_journal: true,
            ..recorder.clone()
        };
        let (open, done) = (self.path(TodoKind::Open), self.path(TodoKind::Done));
        let transaction = Transaction::begin(&recorder, &[&open, &done])?;
        let open = self.load(TodoKind::Open, now)?;
        let done = self.load(TodoKind::Done, now)?;
        let found = open.file.entries().iter().position(|other| other == entry);
        let index = found.ok_or_else(|| {
            no_match().with_hint("the entry was changed or completed just now; read TODO.md again")
        })?;
        let entry = TodoEntry {
            done_at: Some(minute(now)),
            ..entry.clone()
        };
        let open_text = open.file.changed(None, &[index], now);
        let done_text = done.file.changed(Some(&entry), &[], now);
        let changes = [
            open.change.with_content(open_text.into()),
            done.change.with_content(done_text.into()),
        ];
        let receipt = transaction.commit(&changes, &|_| false)?;
        Ok(TodoChange {
            entry,
            removed: Vec::new(),
            open_count: open.file.entries().len() - 1,
            done_count: done.file.entries().len() + 1,
            receipt,
        })
    }

    fn load(&self, kind: TodoKind, now: Timestamp) -> Result<LoadedFile, ToolError> {
        let change = Change::read(Path::new(kind.file_name()), &self.path(kind))?;
        let bytes = change.bytes().unwrap_or_default();
        if bytes.len() > limits::MAX_TODO_FILE_BYTES {
            let (found, most) = (bytes.len(), limits::MAX_TODO_FILE_BYTES);
            let message = format!(
                "{}: expected at most {most} bytes, found {found}",
                kind.file_name()
            );
            let hint = "move old entries to another file";
            return Err(ToolError::new(ErrorCode::FileTooLarge, message).with_hint(hint));
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let (name, at) = (kind.file_name(), error.valid_up_to());
            let message = format!("{name}: expected UTF-8, found another byte at {at}");
            ToolError::new(ErrorCode::BinaryFile, message).with_hint("convert the file to UTF-8")
        })?;
        let file = match text.trim_start_matches('\u{feff}').trim().is_empty() {
            true => TodoFile::new(kind, now),
            false => TodoFile::parse(kind, text.to_owned()),
        };
        Ok(LoadedFile { change, file })
    }
}

/// Returns the error of a text that no open entry matches.
#[must_use]
pub fn no_match() -> ToolError {
    ToolError::new(ErrorCode::NotFound, "no matching todo item in TODO.md")
}

/// Returns the places of entries in a list, each once.
fn indexes(list: &[TodoEntry], wanted: &[TodoEntry]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for entry in wanted {
        let places = list.iter().enumerate().filter(|(_, other)| *other == entry);
        let mut places = places.map(|(index, _)| index);
        found.extend(places.find(|index| !found.contains(index)));
    }
    found
}
