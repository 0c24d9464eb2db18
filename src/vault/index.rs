//! The index of the vault: which secrets there are, without anything of their values.
//!
//! It answers `karyi var list` without opening a store, remembers which store was chosen, and tells
//! a running session by its generation that something changed. The policy in it is a copy to show;
//! the one that counts is kept beside the value. The file is written whole, beside a lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::policy::Policy;
use crate::vault::session::only_case;
use crate::vault::store::Kind;
use crate::vault::store::disk::{self, Guard};
use crate::vault::store::record::Facts;

/// Name of the file, in the directory of karyi's data.
pub const FILE_NAME: &str = "vars.json";

/// The layout of the file that this program reads and writes.
const VERSION: u32 = 1;

/// What is known of the secrets without opening a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    version: u32,
    /// Grows with every change of the store: odd while one is under way or was broken off, even after it.
    pub generation: u64,
    /// The store that was chosen.
    pub store: Option<Chosen>,
    /// The secrets, by name.
    pub names: BTreeMap<String, Listed>,
}

/// A store that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// What kind of store it is.
    pub kind: Kind,
    /// The identity file of an encrypted file that is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
}

impl Chosen {
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
#[serde(deny_unknown_fields)]
pub struct Listed {
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
    /// Set while it is being removed, or kept for the first time: its value may be there or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_going: bool,
}

impl Listed {
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
        }
    }
}

impl Index {
    /// Reads the index in a directory; an empty one when there is none.
    ///
    /// # Errors
    /// `bad_vault` when the file is no index, or what the system says.
    pub fn read(directory: &Path) -> Result<Self, ToolError> {
        let path = directory.join(FILE_NAME);
        let Some(bytes) = disk::read(&path, limits::MAX_VAULT_FILE_BYTES)? else {
            return Ok(Self::default());
        };
        let index: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(&path, &error))?;
        if index.version != VERSION {
            let found = index.version;
            return Err(damaged(
                &path,
                &format!("expected version {VERSION}, found {found}"),
            ));
        }
        let is_name = |name: &&String| SecretName::parse(name).is_none();
        if let Some(name) = index.names.keys().find(is_name) {
            return Err(damaged(&path, &format!("{name:?} is no name")));
        }
        Ok(index)
    }

    /// Locks the index in a directory and reads it.
    ///
    /// # Errors
    /// As [`Index::read`]; `vault_busy` when another process keeps it locked.
    pub fn lock(directory: &Path) -> Result<Locked, ToolError> {
        let path = directory.join(FILE_NAME);
        let guard = disk::lock(&path)?;
        Ok(Locked {
            index: Self::read(directory)?,
            path,
            guard,
        })
    }

    /// Changes the index in a directory, and no store, for tests.
    #[cfg(test)]
    pub(in crate::vault) fn change<T>(
        directory: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut locked = Self::lock(directory)?;
        let mut index = locked.index.clone();
        // Who holds the lock knows that a change of the store was broken off: it ends here.
        index.generation = index.generation.wrapping_add(index.generation % 2);
        let result = work(&mut index)?;
        if index != locked.index {
            locked.check_room(&index)?;
            locked.write(index)?;
        }
        Ok(result)
    }

    /// Returns the generation, unless a change of the store is under way or was broken off: what is read of the store
    /// then may be old by the next look.
    #[must_use]
    pub fn settled(&self) -> Option<u64> {
        Some(self.generation).filter(|generation| generation.is_multiple_of(2))
    }

    fn lock_if_free(directory: &Path) -> Result<Option<Locked>, ToolError> {
        let path = directory.join(FILE_NAME);
        let Some(guard) = disk::lock_if_free(&path)? else {
            return Ok(None);
        };
        Ok(Some(Locked {
            index: Self::read(directory)?,
            path,
            guard,
        }))
    }

    /// Whether the change of the store that made an odd generation was broken off: whoever gets the lock knows that
    /// nobody is at it. Nobody is waited for.
    ///
    /// # Errors
    /// As [`Index::lock`], and what the system says where nothing can be written.
    pub fn is_broken_off(directory: &Path, generation: u64) -> Result<bool, ToolError> {
        let locked = Self::lock_if_free(directory)?;
        let is_open = |index: &Self| index.generation == generation && index.settled().is_none();
        Ok(locked.is_some_and(|locked| is_open(&locked.index)))
    }

    /// Ends a change of the store that [was broken off](Self::is_broken_off) at an odd generation. Returns the index of
    /// then; nothing when somebody has changed the store since or does so, and nobody is waited for.
    ///
    /// # Errors
    /// As [`Index::is_broken_off`].
    pub fn settle(directory: &Path, broken_off: u64) -> Result<Option<Self>, ToolError> {
        let Some(mut locked) = Self::lock_if_free(directory)? else {
            return Ok(None);
        };
        let settled = broken_off.wrapping_add(1);
        if locked.index.generation == broken_off {
            locked.write(Self {
                generation: settled,
                ..locked.index.clone()
            })?;
        }
        // A change goes on by at least two: one more than before is what somebody else has settled.
        let index = locked.index;
        Ok(Some(index).filter(|index| index.generation == settled))
    }

    /// Writes down that secrets were used; not while somebody else changes the index, since nobody waits for that.
    ///
    /// # Errors
    /// As [`Index::read`], or what the system says.
    pub fn note_use(
        directory: &Path,
        names: &[SecretName],
        now: Timestamp,
    ) -> Result<(), ToolError> {
        let step = SignedDuration::try_from(limits::SECRET_USE_STEP).unwrap_or_default();
        let is_old = |listed: &Listed| {
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

    /// Returns the names that have a value, as far as is known.
    pub fn kept(&self) -> impl Iterator<Item = SecretName> {
        let kept = self.names.iter().filter(|(_, listed)| !listed.is_going);
        kept.filter_map(|(name, _)| SecretName::parse(name))
    }

    /// Returns what is known of one secret.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<&Listed> {
        self.names
            .get(name.as_str())
            .filter(|listed| !listed.is_going)
    }

    /// Returns this index with what another one has beside it.
    fn with_all_of(mut self, mut other: Self) -> Self {
        other.names.append(&mut self.names);
        Self {
            names: other.names,
            ..self
        }
    }

    /// Returns the index of while a secret is kept that an index of afterwards lists: a value that is new may be there
    /// already, or never come, and the store of it is known whatever breaks off.
    #[must_use]
    pub fn coming(&self, name: &SecretName, after: &Self) -> Self {
        let mut coming = self.clone();
        coming.store.clone_from(&after.store);
        if let Some(new) = after.get(name).filter(|_| self.get(name).is_none()) {
            let new = Listed {
                is_going: true,
                ..new.clone()
            };
            coming.names.insert(name.as_str().to_owned(), new);
        }
        coming
    }

    /// Checks that a name may be added.
    ///
    /// # Errors
    /// `bad_arguments` when one that differs only in case is there, or there are too many.
    pub fn check_new(&self, name: &SecretName) -> Result<(), ToolError> {
        let same = |other: &SecretName| other.differs_only_in_case(name);
        if let Some(other) = self.kept().find(same) {
            return Err(only_case(&other, name));
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
pub struct Locked {
    index: Index,
    path: PathBuf,
    guard: Guard,
}

impl Locked {
    /// Returns the index as it is on the disk.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the lock, for a change that may be done yet.
    #[must_use]
    pub fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Changes the store by `work`. `meanwhile` is written before it, and `after` behind it when it succeeds; else the
    /// index is again what it was. Both writings raise the generation, and in between it is odd: a session looks into
    /// the store whatever breaks off. It stays odd after a `keyring_timeout`, since what timed out may still be done,
    /// and after a `keyring_unavailable`, since what went away may have done it: where a value may have come so,
    /// `meanwhile` says that, and is not taken back.
    ///
    /// # Errors
    /// What `work` or the system says; `bad_arguments`, before anything changes, when `after` could not be read again.
    /// When only the last writing fails, the error says that the store was changed.
    pub fn around<T>(
        &mut self,
        meanwhile: Index,
        after: Index,
        work: impl FnOnce() -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let generation = self.index.generation;
        let open = generation.wrapping_add(1 + generation % 2);
        let is_at = |generation: u64, index: Index| Index {
            generation,
            ..index
        };
        let before = self.index.clone();
        let after = is_at(open.wrapping_add(1), after);
        self.check_room(&after)?;
        self.write(is_at(open, meanwhile.clone()))?;
        let result = work();
        let last = match &result {
            Ok(_) => after,
            Err(error) if may_be_done(error.code) => is_at(open, meanwhile.with_all_of(before)),
            Err(_) => is_at(open.wrapping_add(1), before),
        };
        let written = self.write(last);
        let result = result?;
        written.map(|()| result).map_err(not_listed)
    }

    /// Checks that an index leaves room for what is written in it while something is removed. One that gets no larger
    /// is never refused.
    fn check_room(&self, after: &Index) -> Result<(), ToolError> {
        let most = limits::MAX_VAULT_FILE_BYTES - limits::VAULT_INDEX_RESERVE;
        let size = |index: &Index| spell(index).map(|bytes| bytes.len() as u64);
        let wanted = size(after)?;
        if wanted <= most {
            return Ok(());
        }
        // A longer number of the generation is no growth.
        let before = Index {
            generation: after.generation,
            ..self.index.clone()
        };
        match wanted > size(&before)? {
            true => Err(too_large(most)),
            false => Ok(()),
        }
    }

    fn write(&mut self, index: Index) -> Result<(), ToolError> {
        disk::write(&self.path, &encode(&index)?)?;
        self.index = index;
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
    let bytes = spell(index)?;
    let most = limits::MAX_VAULT_FILE_BYTES;
    match bytes.len() as u64 > most {
        true => Err(too_large(most)),
        false => Ok(bytes),
    }
}

fn spell(index: &Index) -> Result<Vec<u8>, ToolError> {
    let bytes = serde_json::to_vec_pretty(index);
    bytes.map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))
}

fn too_large(most: u64) -> ToolError {
    let message = format!("the index {FILE_NAME} would be larger than {most} bytes");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("remove secrets with `karyi var rm NAME`, or give some a shorter note")
}

/// Returns the error for a store that was changed and an index that could not be written after it.
fn not_listed(error: ToolError) -> ToolError {
    let message = format!(
        "the store was changed, and the index does not say so: {}",
        error.message
    );
    ToolError::new(error.code, message)
        .with_hint("once that is mended, run it again, or `karyi var doctor --repair`")
}

fn damaged(path: &Path, problem: &dyn std::fmt::Display) -> ToolError {
    let message = format!("the index {} cannot be read: {problem}", path.display());
    let hint = "move it away; then `karyi var doctor --repair --vault os`, or --vault age with \
                --age-identity FILE, lists again what that store holds";
    ToolError::new(ErrorCode::BadVault, message).with_hint(hint)
}

#[cfg(test)]
mod tests;
