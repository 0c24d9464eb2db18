//! The state directory of a supervisor: one JSON file per thing.
//!
//! ```text
//! planner/{queue,running,results,cancelled}/ID.json    worker/{queue,running,results,cancelled}/ID.json
//! triggers/ID.json   inbox/ID.json   events/ID.json   pending_question.json
//! history.jsonl      memory.md       memory/DAY-SLUG.md   log.jsonl   corrupt/
//! ```
//!
//! A file's directory is its state, and moving it is the only arbiter. Changes of several files happen in an order in
//! which a repetition completes them, under one lock; [`crate::settle`] repeats what a killed process left half done.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use serde::de::DeserializeOwned;

use crate::condition::Condition;
use crate::event::Event;
use crate::folder::{BrokenFile, Folder, LoadFailure, Record, load_json};
use crate::inbox_item::InboxItem;
use crate::memory_index::MemoryIndex;
use crate::pauses::Pauses;
use crate::staged_work::StagedWork;
use crate::state_folder::{ChangeLock, Move, StateFolder};
use crate::task::{Task, TaskRole};
use crate::task_id::TaskId;
use crate::task_result::{ResultSummary, TaskResult};
use crate::trigger::Trigger;

/// Open state directory.
#[derive(Debug)]
pub struct StateDirectory {
    pub(crate) root: StateFolder,
    pub(crate) planner: RoleFolders,
    pub(crate) worker: RoleFolders,
    pub(crate) triggers: Folder<Trigger>,
    pub(crate) inbox: Folder<InboxItem>,
    pub(crate) events: Folder<Event>,
    pub(crate) notes: StateFolder,
    pub(crate) memory_index: Mutex<MemoryIndex>,
    corrupt: StateFolder,
    /// Files that were moved to `corrupt` and not told yet.
    aside: Mutex<Vec<BrokenFile>>,
    pub(crate) pauses: Pauses,
    /// Time of the last question about conditions.
    pub(crate) asked_at: Mutex<Option<Timestamp>>,
}

/// Directories of one role.
#[derive(Debug)]
pub(crate) struct RoleFolders {
    pub(crate) queue: Folder<Task>,
    pub(crate) running: Folder<Task>,
    pub(crate) results: Folder<ResultSummary>,
    pub(crate) cancelled: Folder<CancelledItem>,
}

/// Task or trigger that was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledItem {
    id: TaskId,
    pub(crate) created_at: Timestamp,
}

impl Record for CancelledItem {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

impl RoleFolders {
    fn open(root: &StateFolder, role: TaskRole) -> Result<Self, ToolError> {
        let role = role.as_str();
        let parent = root.child(role)?;
        Ok(Self {
            queue: Folder::open(&parent, &format!("{role}/queue"))?,
            running: Folder::open(&parent, &format!("{role}/running"))?,
            results: Folder::open(&parent, &format!("{role}/results"))?,
            cancelled: Folder::open(&parent, &format!("{role}/cancelled"))?,
        })
    }

    /// Tells whether a task has or had this identifier.
    pub(crate) fn has(&self, id: &TaskId) -> Result<bool, ToolError> {
        // In the order in which a task moves; the queue twice, for one that is to run again.
        Ok(self.queue.has(id)?
            || self.running.has(id)?
            || self.results.has(id)?
            || self.cancelled.has(id)?
            || self.queue.has(id)?)
    }
}

impl StateDirectory {
    /// Opens a state directory and creates what is missing.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let root = StateFolder::open(path)?;
        Ok(Self {
            planner: RoleFolders::open(&root, TaskRole::Planner)?,
            worker: RoleFolders::open(&root, TaskRole::Worker)?,
            triggers: Folder::open(&root, "triggers")?,
            inbox: Folder::open(&root, "inbox")?,
            events: Folder::open(&root, "events")?,
            notes: root.child("memory")?,
            memory_index: Mutex::default(),
            corrupt: root.child("corrupt")?,
            aside: Mutex::default(),
            pauses: Pauses::default(),
            asked_at: Mutex::default(),
            root,
        })
    }

    /// Sets the pauses of the work.
    #[must_use]
    pub fn with_pauses(self, pauses: Pauses) -> Self {
        Self { pauses, ..self }
    }

    /// Returns the path of the directory, with symlinks resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Returns the first of its directories that is not in its place any more: files in it would be found by nobody.
    #[must_use]
    pub fn lost(&self) -> Option<&Path> {
        let mut folders = self.folders().into_iter();
        let lost = folders.find(|folder| !folder.is_there());
        lost.map(StateFolder::path)
    }

    /// Returns its directories; those in which a new file may be work come first.
    fn folders(&self) -> [&StateFolder; 14] {
        let (planner, worker) = (&self.planner, &self.worker);
        [
            &self.root,
            self.triggers.files(),
            self.inbox.files(),
            self.events.files(),
            planner.queue.files(),
            planner.running.files(),
            worker.queue.files(),
            worker.running.files(),
            planner.results.files(),
            planner.cancelled.files(),
            worker.results.files(),
            worker.cancelled.files(),
            &self.notes,
            &self.corrupt,
        ]
    }

    /// Returns the directories in which a new file may be work for a supervisor.
    #[must_use]
    pub fn watched_paths(&self) -> Vec<PathBuf> {
        let folders = self.folders().into_iter().take(8);
        folders.map(|folder| folder.path().to_owned()).collect()
    }

    /// Waits for other changes and excludes them until the lock is dropped.
    pub(crate) fn lock(&self) -> Result<ChangeLock, ToolError> {
        self.root.lock()
    }

    pub(crate) fn role(&self, role: TaskRole) -> &RoleFolders {
        match role {
            TaskRole::Planner => &self.planner,
            TaskRole::Worker => &self.worker,
        }
    }

    /// Reads a result with its texts.
    ///
    /// # Errors
    /// The file is broken, or the system fails.
    pub fn result(&self, role: TaskRole, id: &TaskId) -> Result<Option<TaskResult>, ToolError> {
        let loaded = load_json(self.role(role).results.files(), &id.file_name());
        let path = format!("{}/results/{id}.json", role.as_str());
        loaded.map_err(|failure| failure.into_error(&path))
    }

    /// Tells whether a task or trigger has or had this identifier, or a trigger whose one task ran.
    pub(crate) fn is_taken(&self, id: &TaskId) -> Result<bool, ToolError> {
        Ok(self.triggers.has(id)?
            || self.worker.has(id)?
            || self.planner.has(id)?
            || self.worker.has(&id.run(1))?)
    }

    /// Tells whether a condition may wait for this identifier: it exists, and was not cancelled.
    pub(crate) fn can_be_waited_for(&self, id: &TaskId) -> Result<bool, ToolError> {
        let is_cancelled = self.worker.cancelled.has(id)? || self.planner.cancelled.has(id)?;
        Ok(!is_cancelled && self.is_taken(id)?)
    }

    /// Checks that every task of a condition exists or is staged.
    ///
    /// # Errors
    /// `bad_arguments` naming the one that does not.
    pub fn check_waits(&self, condition: &Condition, staged: &StagedWork) -> Result<(), ToolError> {
        for id in condition.task_ids() {
            if !staged.contains(id) && !self.can_be_waited_for(id)? {
                let message = format!(
                    "`condition`: expected a task or trigger that is there, found {id}, which is none or was cancelled"
                );
                return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(
                    "wait for an id that `delegate`, `schedule` or `list_tasks` returned",
                ));
            }
        }
        Ok(())
    }

    /// Removes files that killed processes were writing.
    pub(crate) fn sweep(&self) -> Result<(), ToolError> {
        self.folders().into_iter().try_for_each(StateFolder::sweep)
    }

    /// Moves the files that cannot be used to the directory `corrupt`, and returns those that are not told yet.
    ///
    /// # Errors
    /// The system fails.
    pub fn set_broken_aside(&self) -> Result<Vec<BrokenFile>, ToolError> {
        for role in TaskRole::ALL {
            let folders = self.role(role);
            self.set_aside(&folders.queue)?;
            self.set_aside(&folders.running)?;
            self.set_aside(&folders.results)?;
            self.set_aside(&folders.cancelled)?;
        }
        self.set_aside(&self.triggers)?;
        self.set_aside(&self.inbox)?;
        self.set_aside(&self.events)?;
        Ok(self.newly_broken())
    }

    /// Returns the files that this process has moved to the directory `corrupt`, each once.
    #[must_use]
    pub fn newly_broken(&self) -> Vec<BrokenFile> {
        std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_aside<T: Record>(&self, folder: &Folder<T>) -> Result<(), ToolError> {
        let mut broken = folder.broken()?.into_iter();
        broken.try_for_each(|broken| self.move_to_corrupt(folder.files(), broken))
    }

    /// Moves a file to the directory `corrupt`, under a name that is free.
    pub(crate) fn move_to_corrupt(
        &self,
        folder: &StateFolder,
        broken: BrokenFile,
    ) -> Result<(), ToolError> {
        let name = broken.path.rsplit('/').next().unwrap_or_default();
        let base = broken.path.replace('/', "-");
        let mut target = base.clone();
        let mut number = 0;
        let moved = loop {
            match folder.move_to(name, &self.corrupt, &target)? {
                Move::Occupied => number += 1,
                moved => break moved,
            }
            target = format!("{base}.{number}");
        };
        if moved == Move::Done {
            let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
            aside.push(broken);
        }
        Ok(())
    }

    /// Reads a JSON file of the directory itself; one that is no such file, or fails the check, is set aside.
    pub(crate) fn read_json<T: DeserializeOwned>(
        &self,
        name: &str,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<Option<T>, ToolError> {
        let reason = match load_json::<T>(&self.root, name) {
            Ok(None) => return Ok(None),
            Ok(Some(value)) => match check(&value) {
                Ok(()) => return Ok(Some(value)),
                Err(reason) => reason,
            },
            Err(LoadFailure::Broken(reason)) => reason,
            Err(LoadFailure::System(error)) => return Err(error),
        };
        let path = name.to_owned();
        self.move_to_corrupt(&self.root, BrokenFile { path, reason })?;
        Ok(None)
    }
}
