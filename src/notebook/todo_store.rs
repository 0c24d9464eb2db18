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
use karyi_files::journal::IsPrivate;
use karyi_files::root::Root;
use karyi_files::transaction::{Receipt, Recorder, Transaction};

/// TODO files of a directory.
#[derive(Debug, Clone)]
pub struct TodoStore {
    /// Path of TODO.md, with every symlink resolved.
    open: PathBuf,
    /// Path of TODO.DONE.md, likewise.
    done: PathBuf,
}

/// Journal of a change.
#[derive(Clone, Copy)]
pub struct TodoRecorder<'a> {
    /// Journal and origin of the change.
    pub recorder: &'a Recorder,
    /// Tells whether a content may only be stored encrypted.
    pub is_private: IsPrivate<'a>,
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

impl LoadedFile {
    /// Returns the change to a new text. A new file is for its user alone.
    fn changed(self, text: String) -> Change {
        let mut change = self.change.with_content(text.into());
        change.restrict_if_private(&|_| true);
        change
    }
}

impl TodoStore {
    /// Makes a store of the files in a directory. Nothing is read or made.
    ///
    /// # Errors
    /// There is no such directory, or a link leads out of it.
    pub fn new(directory: &Path) -> Result<Self, ToolError> {
        let root = Root::confined(directory)?;
        let path = |kind: TodoKind| root.resolve_to_change(directory, Path::new(kind.file_name()));
        Ok(Self {
            open: path(TodoKind::Open)?,
            done: path(TodoKind::Done)?,
        })
    }

    /// Returns the path of a file.
    #[must_use]
    pub fn path(&self, kind: TodoKind) -> &Path {
        match kind {
            TodoKind::Open => &self.open,
            TodoKind::Done => &self.done,
        }
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
        journal: TodoRecorder<'_>,
        entry: TodoEntry,
        duplicates: &[TodoEntry],
        now: Timestamp,
    ) -> Result<TodoChange, ToolError> {
        let transaction = Transaction::begin(journal.recorder, &[&self.open, &self.done])?;
        let open = self.load(TodoKind::Open, now)?;
        let done = self.load(TodoKind::Done, now)?;
        let gone = indexes(open.file.entries(), duplicates);
        let removed = gone
            .iter()
            .filter_map(|index| open.file.entries().get(*index));
        let removed: Vec<TodoEntry> = removed.cloned().collect();
        let open_count = open.file.entries().len() + 1 - gone.len();
        let text = open.file.changed(Some(&entry), &gone, now);
        let receipt = transaction.commit(&[open.changed(text)], journal.is_private)?;
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
        journal: TodoRecorder<'_>,
        entry: &TodoEntry,
        now: Timestamp,
    ) -> Result<TodoChange, ToolError> {
        // Without a journal a crash could leave the entry in both files.
        let recorder = Recorder {
            needs_journal: true,
            ..journal.recorder.clone()
        };
        let transaction = Transaction::begin(&recorder, &[&self.open, &self.done])?;
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
        let open_count = open.file.entries().len() - 1;
        let done_count = done.file.entries().len() + 1;
        let changes = [open.changed(open_text), done.changed(done_text)];
        let receipt = transaction.commit(&changes, journal.is_private)?;
        Ok(TodoChange {
            entry,
            removed: Vec::new(),
            open_count,
            done_count,
            receipt,
        })
    }

    fn load(&self, kind: TodoKind, now: Timestamp) -> Result<LoadedFile, ToolError> {
        let change = Change::read(Path::new(kind.file_name()), self.path(kind))?;
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
