//! The index of the vault: which secrets there are, without anything of their values.
//!
//! It answers `karyi var list` without opening a store and remembers which store was chosen. All else in it is a copy of
//! what the store holds, and is made anew from that when the file is gone, cut off or foreign, when a change of the store
//! broke off, or when both disagree. The file is written whole, beside a lock.

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

/// Name of the file, in the directory of karyi's data.
pub const FILE_NAME: &str = "vars.json";

/// The layout of the file that this program writes.
const VERSION: u32 = 1;

/// What is known of the secrets without opening a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Index {
    version: u32,
    /// Grows with every change of the store: odd while one is under way, and after one that broke off.
    pub generation: u64,
    /// The store that was chosen.
    pub store: Option<StoreChoice>,
    /// The secrets, by name.
    pub names: BTreeMap<String, IndexEntry>,
    /// Whether the file is there and cannot be read: what it listed is to be made anew.
    #[serde(skip)]
    pub is_damaged: bool,
}

/// A store that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreChoice {
    /// What kind of store it is.
    pub kind: Kind,
    /// The identity file of an encrypted file that is for one.
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

/// What is known of one secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// What its user wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was kept first.
    pub created: Timestamp,
    /// When its value or policy changed last.
    pub updated: Timestamp,
    /// When a run used it last, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// The store that keeps it.
    pub store: Kind,
    /// A copy of its policy, to be shown.
    pub policy: Policy,
}

impl IndexEntry {
    /// Returns its note and dates as the store keeps them.
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
    /// Reads the index in a directory; an empty one when there is none, or none that can be read.
    ///
    /// # Errors
    /// `bad_vault` when something else stands in its place, or what the system says.
    pub fn read(directory: &Path) -> Result<Self, ToolError> {
        let path = directory.join(FILE_NAME);
        match private_file::read(&path, limits::MAX_VAULT_FILE_BYTES)? {
            Some(bytes) => Ok(Self::parse(&bytes)),
            None => Ok(Self::default()),
        }
    }

    /// Returns the index, for whoever has no store to make it anew from.
    ///
    /// # Errors
    /// `bad_vault` when nobody knows what was listed.
    pub fn require_readable(self, directory: &Path) -> Result<Self, ToolError> {
        if !self.is_damaged {
            return Ok(self);
        }
        let path = directory.join(FILE_NAME);
        let message = format!("the index {} cannot be read", path.display());
        let hint = "`karyi var list` makes it anew from the keyring, and with --vault age --age-identity FILE from an encrypted file";
        Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint))
    }

    fn parse(bytes: &[u8]) -> Self {
        let own = serde_json::from_slice(bytes).ok();
        let own = own.filter(|own: &Self| own.version == VERSION);
        let mut index = own.unwrap_or_else(|| {
            // Of another version the choice may be known.
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
    /// As [`Index::read`]; `vault_busy` when another process keeps it locked.
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

    /// Whether it says what the store holds, as far as karyi changed that: no change broke off.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_damaged && self.generation.is_multiple_of(2)
    }

    /// Locks the index unless somebody changes it right now; nobody is waited for.
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

    /// Writes down that secrets were used; not while somebody else changes the index, since nobody waits for that.
    ///
    /// # Errors
    /// As [`Index::read`], or what the system says.
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

    /// Returns the names that are listed.
    pub fn secret_names(&self) -> impl Iterator<Item = SecretName> {
        let names = self.names.keys();
        names.filter_map(|name| SecretName::parse(name))
    }

    /// Returns what is known of one secret.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<&IndexEntry> {
        self.names.get(name.as_str())
    }

    /// Checks that a name may be added.
    ///
    /// # Errors
    /// `bad_arguments` when one that differs only in case is there, or there are too many.
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

/// The index while nobody else may change it or a store.
pub struct LockedIndex {
    index: Index,
    path: PathBuf,
    _guard: Guard,
}

impl LockedIndex {
    /// Returns the index as it is on the disk.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Changes the store by `work`, and makes the index `after` when that succeeds; else it is again what it was. Before
    /// it the generation is made odd, and behind it even: whatever breaks off in between, the next one looks into the
    /// store. It stays odd after a store that did not answer, since that may have done what it was asked for, or do it
    /// yet.
    ///
    /// # Errors
    /// What `work` or the system says; `bad_arguments`, before anything changes, when `after` could not be read again.
    /// When only the last writing fails, the error says that the store was changed.
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
            // Whoever put something else there finds it again.
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

/// Whether a store that failed so may have done what it was asked for, or do it yet.
fn may_be_done(failure: ErrorCode) -> bool {
    matches!(
        failure,
        ErrorCode::KeyringTimeout | ErrorCode::KeyringUnavailable
    )
}

/// Returns the file of an index, which can be read again.
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

/// Returns the error for a store that was changed and an index that could not be written after it.
fn not_listed(error: ToolError) -> ToolError {
    let message = format!(
        "the store was changed, and the index does not say so: {}",
        error.message
    );
    ToolError::new(error.code, message)
        .with_hint("once that is mended, `karyi var list` makes the index anew")
}

#[cfg(test)]
mod tests;
