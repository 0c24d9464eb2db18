//! Index of the vault: names and metadata of the secrets, without their values.
//!
//! It serves `karyi var list` without opening a store and records the chosen store. Everything else in it is a copy of
//! the store's content. It is rebuilt from the store when the file is missing, truncated or of another version, when a
//! change was interrupted, or when the two disagree. The file is replaced as a whole, under a lock.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::session::case_conflict;
use crate::store::Kind;
use crate::store::private_file::{self, Guard};
use crate::store::record::Facts;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// Name of the index file in the data directory.
pub const FILE_NAME: &str = "vars.json";

/// Version of the file format.
const VERSION: u32 = 1;

/// Names and metadata of all secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Index {
    version: u32,
    /// Counter of changes of the store. It is odd during a change and after an interrupted one.
    pub generation: u64,
    /// Chosen store.
    pub store: Option<StoreChoice>,
    /// The secrets, by name.
    pub names: BTreeMap<String, IndexEntry>,
    /// True when the file exists and cannot be read, so that its content must be rebuilt.
    #[serde(skip)]
    pub is_damaged: bool,
}

/// Chosen store, with what opens it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreChoice {
    /// Kind of the store.
    pub kind: Kind,
    /// Identity file of a vault file that is encrypted for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
}

impl StoreChoice {
    /// Chooses the keyring of the system.
    #[must_use]
    pub fn os() -> Self {
        Self {
            kind: Kind::Os,
            identity: None,
        }
    }
}

/// Metadata of one secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Note of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time of creation.
    pub created: Timestamp,
    /// Time of the last change of value or policy.
    pub updated: Timestamp,
    /// Time of the last use by a run, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// Kind of the store that holds the value.
    pub store: Kind,
    /// Copy of its policy, for display.
    pub policy: Policy,
}

impl IndexEntry {
    /// Returns the note and dates in the form of a store record.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            note: self.note.clone(),
            created: Some(self.created),
            updated: Some(self.updated),
        }
    }
}

impl Default for Index {
    fn default() -> Self {
        Self {
            version: VERSION,
            generation: 0,
            store: None,
            names: BTreeMap::new(),
            is_damaged: false,
        }
    }
}

impl Index {
    /// Reads the index in a directory. Returns an empty index when the file is missing or unreadable.
    ///
    /// # Errors
    /// `bad_vault` when the path is no regular file, or an error of the file system.
    pub fn read(directory: &Path) -> Result<Self, ToolError> {
        let path = directory.join(FILE_NAME);
        match private_file::read(&path, limits::MAX_VAULT_FILE_BYTES)? {
            Some(bytes) => Ok(Self::parse(&bytes)),
            None => Ok(Self::default()),
        }
    }

    /// Returns the index if it is readable, for callers that cannot rebuild it from a store.
    ///
    /// # Errors
    /// `bad_vault` when the index is damaged.
    pub fn require_readable(self, directory: &Path) -> Result<Self, ToolError> {
        if !self.is_damaged {
            return Ok(self);
        }
        let path = directory.join(FILE_NAME);
        let message = format!("the index {} cannot be read", path.display());
        let hint = "`karyi var list` rebuilds it from the keyring, or with --vault age --age-identity FILE from an encrypted file";
        Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint))
    }

    fn parse(bytes: &[u8]) -> Self {
        let own = serde_json::from_slice(bytes).ok();
        let own = own.filter(|own: &Self| own.version == VERSION);
        let mut index = own.unwrap_or_else(|| {
            // The choice of the store is readable in every version.
            let other: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
            let store = other.and_then(|other| StoreChoice::deserialize(other.get("store")?).ok());
            Self {
                store,
                is_damaged: true,
                ..Self::default()
            }
        });
        let count = index.names.len();
        index
            .names
            .retain(|name, _| SecretName::parse(name).is_some());
        index.is_damaged |= index.names.len() < count;
        index
    }

    /// Locks the index in a directory and reads it.
    ///
    /// # Errors
    /// As [`Index::read`]; `vault_busy` when another process holds the lock.
    pub fn lock(directory: &Path) -> Result<LockedIndex, ToolError> {
        let path = directory.join(FILE_NAME);
        let guard = private_file::lock(&path)?;
        Ok(LockedIndex {
            index: Self::read(directory)?,
            path,
            _guard: guard,
        })
    }

    /// Changes the index in a directory, and no store, for tests.
    #[cfg(test)]
    pub(crate) fn change<T>(
        directory: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut locked = Self::lock(directory)?;
        let mut index = locked.index.clone();
        let result = work(&mut index)?;
        locked.write(index)?;
        Ok(result)
    }

    /// Returns true when the index matches the store, as far as karyi changed it: no change was interrupted.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_damaged && self.generation.is_multiple_of(2)
    }

    /// Locks the index unless another process holds the lock. Does not wait.
    ///
    /// # Errors
    /// As [`Index::read`].
    pub fn lock_if_free(directory: &Path) -> Result<Option<LockedIndex>, ToolError> {
        let path = directory.join(FILE_NAME);
        let Some(guard) = private_file::lock_if_free(&path)? else {
            return Ok(None);
        };
        Ok(Some(LockedIndex {
            index: Self::read(directory)?,
            path,
            _guard: guard,
        }))
    }

    /// Records the use of secrets. Does nothing while another process holds the lock.
    ///
    /// # Errors
    /// As [`Index::read`], or an error of the file system.
    pub fn record_use(
        directory: &Path,
        names: &[SecretName],
        now: Timestamp,
    ) -> Result<(), ToolError> {
        let step = SignedDuration::try_from(limits::SECRET_USE_STEP).unwrap_or_default();
        let is_old = |listed: &IndexEntry| {
            let last = listed.used;
            last.is_none_or(|last| now.duration_since(last).abs() >= step)
        };
        // Most runs have nothing to write.
        let index = Self::read(directory)?;
        if !names.iter().filter_map(|name| index.get(name)).any(is_old) {
            return Ok(());
        }
        let Some(mut locked) = Self::lock_if_free(directory)? else {
            return Ok(());
        };
        let mut index = locked.index.clone();
        for name in names {
            if let Some(listed) = index.names.get_mut(name.as_str()).filter(|l| is_old(l)) {
                listed.used = Some(now);
            }
        }
        locked.write(index)
    }

    /// Returns the listed names.
    pub fn secret_names(&self) -> impl Iterator<Item = SecretName> {
        let names = self.names.keys();
        names.filter_map(|name| SecretName::parse(name))
    }

    /// Returns the metadata of one secret.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<&IndexEntry> {
        self.names.get(name.as_str())
    }

    /// Checks that a name may be added.
    ///
    /// # Errors
    /// `bad_arguments` when another name differs only in case, or when there are too many secrets.
    pub fn check_new(&self, name: &SecretName) -> Result<(), ToolError> {
        let same = |other: &SecretName| other.differs_only_in_case(name);
        if let Some(other) = self.secret_names().find(same) {
            return Err(case_conflict(&other, name));
        }
        if self.names.len() >= limits::MAX_STORED_SECRETS && !self.names.contains_key(name.as_str())
        {
            let message = format!("there are {} secrets already", limits::MAX_STORED_SECRETS);
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("remove some with `karyi var rm NAME`"));
        }
        Ok(())
    }
}

/// Locked index: no other process can change it or a store.
pub struct LockedIndex {
    index: Index,
    path: PathBuf,
    _guard: Guard,
}

impl LockedIndex {
    /// Returns the index as stored on disk.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Changes the store with `work` and then writes `after` as the index. The generation is odd in between, so that
    /// an interrupted change makes the next reader check the store. When `work` fails, the former index is restored.
    /// The generation stays odd after a timeout of the store, which may have made the change or may make it later.
    ///
    /// # Errors
    /// Errors of `work` or the file system; `bad_arguments` before any change when `after` is too large. When only the
    /// last write fails, the error says that the store was changed.
    pub fn change_store<T>(
        &mut self,
        after: Index,
        work: impl FnOnce() -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        encode(&after)?;
        let before = self.index.clone();
        let open = before.generation.wrapping_add(1 + before.generation % 2);
        let is_at = |generation: u64, index: Index| Index {
            generation,
            ..index
        };
        let store = before.store.clone().or_else(|| after.store.clone());
        self.write(Index {
            store,
            ..is_at(open, before.clone())
        })?;
        let whole = open.wrapping_add(1);
        match work() {
            Ok(result) => {
                let written = self.write(is_at(whole, after));
                written.map(|()| result).map_err(not_listed)
            }
            Err(error) => {
                let was_whole = before.is_whole();
                if was_whole && !may_be_done(error.code) {
                    self.write(is_at(whole, before))?;
                }
                Err(error)
            }
        }
    }

    fn write(&mut self, index: Index) -> Result<(), ToolError> {
        if self.index.is_damaged {
            // The user can recover the damaged file.
            let _ = fs::copy(&self.path, self.path.with_extension("json.damaged"));
        }
        private_file::write(&self.path, &encode(&index)?)?;
        self.index = Index {
            is_damaged: false,
            ..index
        };
        Ok(())
    }
}

/// Returns true when the store may have made the change despite this failure.
fn may_be_done(failure: ErrorCode) -> bool {
    matches!(
        failure,
        ErrorCode::KeyringTimeout | ErrorCode::KeyringUnavailable
    )
}

/// Returns the content of the index file, within the size limit.
fn encode(index: &Index) -> Result<Vec<u8>, ToolError> {
    let bytes = serde_json::to_vec_pretty(index)
        .map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    let most = limits::MAX_VAULT_FILE_BYTES;
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    let message = format!("the index {FILE_NAME} would be larger than {most} bytes");
    Err(ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("remove secrets with `karyi var rm NAME`, or give some a shorter note"))
}

/// Returns the error for an index that could not be written after a change of the store.
fn not_listed(error: ToolError) -> ToolError {
    let message = format!(
        "the store was changed, but the index could not be written: {}",
        error.message
    );
    ToolError::new(error.code, message)
        .with_hint("fix that, then `karyi var list` rebuilds the index")
}

#[cfg(test)]
mod tests;
