//! Rebuilds the index from the store.

use std::collections::BTreeSet;

use crate::index::{Index, LockedIndex};
use crate::store::Kind;
use crate::store::record::Record;
use crate::vault::status::{self, SecretState, SecretStatus, check_same_store};
use crate::vault::{SecretDetails, Vault};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

impl Vault {
    /// Lists the secrets of the store, and updates the index where it disagrees. Reads values only for that.
    ///
    /// # Errors
    /// Errors of the store or the file system.
    pub fn statuses(&self) -> Result<Vec<SecretStatus>, ToolError> {
        let held = self.store.list()?;
        let index = self.reconciled(Index::read(&self.directory)?, &held);
        Ok(status::secret_statuses(
            &index,
            Some(self.chosen.kind),
            Some(&held),
        ))
    }

    /// Returns an index that matches the names just read from the store: the given one, or a rebuilt one. Leaves it
    /// unchanged when it cannot be written, when another process changes it, or when it names another store.
    #[must_use]
    pub fn reconciled(&self, read: Index, held: &[SecretName]) -> Index {
        let kind = self.chosen.kind;
        let is_in_order =
            lists_exactly(&read, kind, held) || check_same_store(&read, kind, held).is_err();
        if is_in_order || !kind.is_persistent() {
            return read;
        }
        let anew = || {
            let mut locked = Index::lock_if_free(&self.directory).ok()??;
            if locked.index().generation != read.generation {
                return None;
            }
            self.rebuild_index(&mut locked, &self.store.list().ok()?)
                .ok()?;
            Some(locked.index().clone())
        };
        anew().unwrap_or(read)
    }

    /// Rebuilds the index without changing the store. Returns the names that were added and removed; damaged records
    /// are left alone.
    ///
    /// # Errors
    /// Errors of the store or the file system.
    pub fn repair(&self) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        // Opened before the lock and listed under it, so that a concurrent change is not taken for a lost name.
        self.store.list()?;
        let mut locked = Index::lock(&self.directory)?;
        self.rebuild_index(&mut locked, &self.store.list()?)
    }

    /// Rebuilds the index for a store with these names.
    pub(super) fn rebuild_index(
        &self,
        locked: &mut LockedIndex,
        held: &[SecretName],
    ) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        let mut index = locked.index().clone();
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for row in status::secret_statuses(&index, Some(self.chosen.kind), Some(held)) {
            match row.state {
                SecretState::Kept | SecretState::Unknown | SecretState::Elsewhere => {}
                SecretState::MissingValue => {
                    index.names.remove(row.name.as_str());
                    removed.push(row.name);
                }
                SecretState::Untracked => {
                    let record = match self.get(&row.name) {
                        Ok(record) => record,
                        Err(error) if error.code == ErrorCode::BadVault => continue,
                        Err(error) => return Err(error),
                    };
                    self.index_record(&mut index, &row.name, &record);
                    added.push(row.name);
                }
            }
        }
        // A readable file without names is recorded as well.
        if self.chosen.kind == Kind::Age {
            index.store.get_or_insert_with(|| self.chosen.clone());
        }
        if index != *locked.index() || !index.is_whole() {
            locked.change_store(index, || Ok(()))?;
        }
        Ok((added, removed))
    }

    /// Adds a record of the store to the index, with its note and dates.
    pub(super) fn index_record(&self, index: &mut Index, name: &SecretName, record: &Record) {
        let terms = SecretDetails {
            note: None,
            policy: record.policy.clone(),
        };
        let updated = record.facts.updated;
        self.index_secret(index, name, &terms, record.facts.clone());
        if let Some(new) = index.names.get_mut(name.as_str()) {
            new.updated = updated.unwrap_or(new.updated);
        }
    }
}

/// Returns true when the index lists exactly these names for a kind of store.
pub(super) fn lists_exactly(index: &Index, kind: Kind, held: &[SecretName]) -> bool {
    let is_own = |name: &SecretName| index.get(name).is_some_and(|listed| listed.store == kind);
    let listed: BTreeSet<SecretName> = index.secret_names().filter(is_own).collect();
    // Entries of another store are left alone.
    let is_elsewhere = |name: &SecretName| index.get(name).is_some_and(|l| l.store != kind);
    let held = held.iter().filter(|name| !is_elsewhere(name)).cloned();
    index.is_whole() && listed == held.collect()
}
