//! Directory of JSON files of one type, one file per identifier, with a cache.
//!
//! A look at the directory reads again only what changed: the time of the directory tells whether its list of files is
//! another one, and a changed file has another inode number, since files are replaced and never written in place. The
//! number of a removed file may be given again, so a change that is made here is forgotten at once; other processes only
//! add files and take them away.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state_folder::{ChangeLock, Move, ReadFailure, StateFolder};
use crate::task_id::TaskId;

/// Content of a file that has an identifier.
pub(crate) trait Record: DeserializeOwned {
    /// Returns the identifier, which is also the name of the file.
    fn id(&self) -> &TaskId;

    /// Checks what the type does not say, for a file in this directory.
    fn check(&self, _folder: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Records by identifier.
pub(crate) type Records<T> = BTreeMap<TaskId, Arc<T>>;

/// File in a state directory that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    /// Path in the state directory, such as `worker/queue/ID.json`.
    pub path: String,
    /// Reason, in one line.
    pub reason: String,
}

/// Directory of records.
#[derive(Debug)]
pub(crate) struct Folder<T> {
    files: StateFolder,
    /// Path in the state directory.
    name: String,
    cache: Mutex<FolderCache<T>>,
}

#[derive(Debug)]
struct FolderCache<T> {
    /// Time of the directory when it was read, if no later change can have the same time.
    modified: Option<SystemTime>,
    /// First change that was made here since then: the time of the directory hides those of others.
    changed_at: Option<Instant>,
    inodes: HashMap<TaskId, CachedInode>,
    records: Arc<Records<T>>,
    broken: Vec<BrokenFile>,
    /// Number of the last look.
    look: u64,
}

/// Inode number of a file, and the number of the look that saw it.
#[derive(Debug)]
struct CachedInode {
    inode: u64,
    look: u64,
}

impl<T> Default for FolderCache<T> {
    fn default() -> Self {
        Self {
            modified: None,
            changed_at: None,
            inodes: HashMap::new(),
            look: 0,
            records: Arc::default(),
            broken: Vec::new(),
        }
    }
}

impl<T: Record> Folder<T> {
    /// Opens the directory `name` inside another one.
    pub(crate) fn open(parent: &StateFolder, path: &str) -> Result<Self, ToolError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Ok(Self {
            files: parent.child(name)?,
            name: path.to_owned(),
            cache: Mutex::default(),
        })
    }

    /// Returns the files.
    pub(crate) fn files(&self) -> &StateFolder {
        &self.files
    }

    /// Returns every record.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn records(&self) -> Result<Arc<Records<T>>, ToolError> {
        Ok(self.look()?.0)
    }

    /// Returns the files that hold no record.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn broken(&self) -> Result<Vec<BrokenFile>, ToolError> {
        Ok(self.look()?.1)
    }

    fn look(&self) -> Result<(Arc<Records<T>>, Vec<BrokenFile>), ToolError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let modified = self.files.modified()?;
        let is_stale = cache
            .changed_at
            .is_some_and(|time| time.elapsed() > limits::FOLDER_STALE_TIME);
        if is_stale || cache.modified != Some(modified) {
            // Set once the whole list is read.
            cache.modified = None;
            cache.changed_at = None;
            self.refresh(&mut cache)?;
            let age = SystemTime::now().duration_since(modified).ok();
            let is_settled = age.is_some_and(|age| age > limits::FOLDER_TIME_GRAIN);
            cache.modified = Some(modified).filter(|_| is_settled);
        }
        Ok((Arc::clone(&cache.records), cache.broken.clone()))
    }

    /// Has the next look read a file again.
    fn forget(&self, id: &TaskId) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.modified = None;
        cache.inodes.remove(id);
    }

    fn refresh(&self, cache: &mut FolderCache<T>) -> Result<(), ToolError> {
        cache.broken.clear();
        cache.look += 1;
        let look = cache.look;
        let records = Arc::make_mut(&mut cache.records);
        self.files.each_entry(&mut |name, inode| {
            let Some(id) = name.strip_suffix(".json") else {
                return Ok(());
            };
            if let Some(known) = cache.inodes.get_mut(id)
                && known.inode == inode
            {
                known.look = look;
                return Ok(());
            }
            match self.load(name) {
                Ok(Some(record)) => {
                    let id = record.id().clone();
                    cache.inodes.insert(id.clone(), CachedInode { inode, look });
                    records.insert(id, Arc::new(record));
                }
                Ok(None) => {}
                Err(LoadFailure::Broken(reason)) => cache.broken.push(BrokenFile {
                    path: format!("{}/{name}", self.name),
                    reason,
                }),
                Err(LoadFailure::System(error)) => return Err(error),
            }
            Ok(())
        })?;
        cache.inodes.retain(|_, known| known.look == look);
        if cache.inodes.len() < records.len() {
            records.retain(|id, _| cache.inodes.contains_key(id));
        }
        Ok(())
    }

    /// Reads one record; `None` when it is not there.
    ///
    /// # Errors
    /// The file is broken, or the system fails.
    pub(crate) fn get(&self, id: &TaskId) -> Result<Option<T>, ToolError> {
        let name = id.file_name();
        let loaded = self.load(&name);
        loaded.map_err(|failure| failure.into_error(&format!("{}/{name}", self.name)))
    }

    fn load(&self, name: &str) -> Result<Option<T>, LoadFailure> {
        let Some(record) = load_json::<T>(&self.files, name)? else {
            return Ok(None);
        };
        if record.id().file_name() != name {
            let reason = format!("the id in it is {}", record.id());
            return Err(LoadFailure::Broken(reason));
        }
        let checked = record.check(&self.name).map_err(LoadFailure::Broken);
        checked.map(|()| Some(record))
    }

    /// Tells whether a record has this identifier.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn has(&self, id: &TaskId) -> Result<bool, ToolError> {
        self.files.has(&id.file_name())
    }

    /// Removes a record; returns false when there is none.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn remove(&self, id: &TaskId) -> Result<bool, ToolError> {
        let removed = self.files.remove(&id.file_name());
        self.forget(id);
        removed
    }

    /// Moves a record into another directory, without reading it.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn move_to<U: Record>(
        &self,
        id: &TaskId,
        other: &Folder<U>,
    ) -> Result<Move, ToolError> {
        let name = id.file_name();
        let moved = self.files.move_to(&name, &other.files, &name);
        self.forget(id);
        other.forget(id);
        moved
    }
}

impl<T: Record> Folder<T> {
    /// Moves a record out, as [`Self::move_to`]; the caller writes to the other directory next, which syncs it. The lock
    /// excludes other changes, so that the next look need not read the whole list again.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn take_out<U: Record>(
        &self,
        _lock: &ChangeLock,
        id: &TaskId,
        other: &Folder<U>,
    ) -> Result<Move, ToolError> {
        let name = id.file_name();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = cache.modified == Some(self.files.modified()?);
        let moved = self.files.move_unsynced(&name, &other.files, &name)?;
        other.forget(id);
        cache.inodes.remove(id);
        Arc::make_mut(&mut cache.records).remove(id);
        cache.modified = match is_current {
            true => Some(self.files.modified()?),
            false => None,
        };
        cache.changed_at.get_or_insert_with(Instant::now);
        Ok(moved)
    }
}

impl<T: Record + Serialize> Folder<T> {
    /// Writes a record, in the place of an older one if there is one.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn write(&self, record: &T) -> Result<(), ToolError> {
        let written = self.files.write(&record.id().file_name(), &json(record)?);
        self.forget(record.id());
        written
    }

    /// Writes a record; returns false when there is one with this identifier.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn write_new(&self, record: &T) -> Result<bool, ToolError> {
        let name = record.id().file_name();
        let written = self.files.write_new(&name, &json(record)?);
        self.forget(record.id());
        written
    }
}

/// Reason why a file is none of karyi's records.
pub(crate) enum LoadFailure {
    /// It cannot be used, with the reason.
    Broken(String),
    /// The system failed.
    System(ToolError),
}

impl LoadFailure {
    /// Makes the error of the file with this path.
    pub(crate) fn into_error(self, path: &str) -> ToolError {
        match self {
            Self::System(error) => error,
            Self::Broken(reason) => ToolError::new(ErrorCode::Io, format!("{path}: {reason}"))
                .with_hint("`karyi tasks` moves it to the directory corrupt"),
        }
    }
}

/// Reads a JSON file; `None` when it is not there.
pub(crate) fn load_json<T: DeserializeOwned>(
    files: &StateFolder,
    name: &str,
) -> Result<Option<T>, LoadFailure> {
    let bytes = match files.read(name, limits::MAX_STATE_FILE_BYTES) {
        Ok((bytes, _)) => bytes,
        Err(ReadFailure::Missing) => return Ok(None),
        Err(ReadFailure::Foreign(reason)) => return Err(LoadFailure::Broken(reason)),
        Err(failure) => return Err(LoadFailure::System(files.failure(name, failure))),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| LoadFailure::Broken(format!("expected a record of this version: {error}")))
}

/// Writes a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
