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

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::condition::Condition;
use crate::event::Event;
use crate::folder::{BrokenFile, Folder, Record};
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
            pauses: Pauses::default(),
            asked_at: Mutex::default(),
            root,
        })
    }

    /// Opens a state directory that was used before.
    ///
    /// # Errors
    /// `not_found` when it was not, or the system does not allow it.
    pub fn open_used(path: &Path) -> Result<Self, ToolError> {
        match path.join("planner/queue").metadata() {
            Ok(_) => Self::open(path),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let message = format!(
                    "expected the state directory of a supervisor, found that none has used {}",
                    path.display()
                );
                let hint =
                    "give the `--state-dir` of `karyi supervise`, or begin with `karyi tell`";
                Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint))
            }
            Err(error) => Err(ToolError::from_io(path, &error)),
        }
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

    /// Tells whether the directory is still in its place: one that was removed takes files that nobody finds.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.root.is_there()
    }

    /// Returns the directories in which a new file may be work for a supervisor.
    #[must_use]
    pub fn watched_paths(&self) -> Vec<PathBuf> {
        let roles = [&self.planner, &self.worker];
        let folders = roles.map(|role| [role.queue.files().path(), role.running.files().path()]);
        let others = [
            self.root.path(),
            self.triggers.files().path(),
            self.inbox.files().path(),
            self.events.files().path(),
        ];
        let all = folders.into_iter().flatten().chain(others);
        all.map(Path::to_owned).collect()
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
        let folder = self.role(role).results.files();
        let name = id.file_name();
        let most = limits::MAX_STATE_FILE_BYTES;
        let bytes = match folder.read(&name, most) {
            Ok((bytes, _)) => bytes,
            Err(crate::state_folder::ReadFailure::Missing) => return Ok(None),
            Err(failure) => return Err(folder.failure(&name, failure)),
        };
        let result: TaskResult = serde_json::from_slice(&bytes).map_err(|error| {
            ToolError::new(
                ErrorCode::Io,
                format!("{}/results/{name}: {error}", role.as_str()),
            )
        })?;
        Ok(Some(result))
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
        for role in TaskRole::ALL {
            let folders = self.role(role);
            folders.queue.files().sweep()?;
            folders.running.files().sweep()?;
            folders.results.files().sweep()?;
        }
        let others = [
            self.triggers.files(),
            self.inbox.files(),
            self.events.files(),
            &self.notes,
            &self.root,
        ];
        others.into_iter().try_for_each(StateFolder::sweep)
    }

    /// Moves the files that cannot be used to the directory `corrupt`, and returns them.
    ///
    /// # Errors
    /// The system fails.
    pub fn set_broken_aside(&self) -> Result<Vec<BrokenFile>, ToolError> {
        let mut all = Vec::new();
        for role in TaskRole::ALL {
            let folders = self.role(role);
            self.set_aside(&folders.queue, &mut all)?;
            self.set_aside(&folders.running, &mut all)?;
            self.set_aside(&folders.results, &mut all)?;
            self.set_aside(&folders.cancelled, &mut all)?;
        }
        self.set_aside(&self.triggers, &mut all)?;
        self.set_aside(&self.inbox, &mut all)?;
        self.set_aside(&self.events, &mut all)?;
        Ok(all)
    }

    fn set_aside<T: Record>(
        &self,
        folder: &Folder<T>,
        all: &mut Vec<BrokenFile>,
    ) -> Result<(), ToolError> {
        for broken in folder.broken()? {
            self.move_to_corrupt(folder.files(), &broken.folder, &broken.name)?;
            all.push(broken);
        }
        Ok(())
    }

    /// Moves a file to the directory `corrupt`, under a name that is free.
    pub(crate) fn move_to_corrupt(
        &self,
        folder: &StateFolder,
        folder_name: &str,
        name: &str,
    ) -> Result<(), ToolError> {
        let base = format!("{}-{name}", folder_name.replace('/', "-"));
        let mut target = base.clone();
        let mut number = 0;
        while folder.move_to(name, &self.corrupt, &target)? == Move::Occupied {
            number += 1;
            target = format!("{base}.{number}");
        }
        Ok(())
    }
}
