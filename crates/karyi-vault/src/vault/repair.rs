//! Makes the index say what the store holds.

use std::collections::BTreeSet;

use crate::index::{Index, LockedIndex};
use crate::store::Kind;
use crate::store::record::Record;
use crate::vault::status::{self, SecretState, SecretStatus, check_same_store};
use crate::vault::{SecretDetails, Vault};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

impl Vault {
    /// Lists what the store holds, and has the index say the same where it does not. A value is read only for that.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn statuses(&self) -> Result<Vec<SecretStatus>, ToolError> {
        let held = self.store.list()?;
        let index = self.reconciled(Index::read(&self.directory)?, &held);
        Ok(status::secret_statuses(
            &index,
            Some(self.chosen.kind),
            Some(&held),
        ))
    }

    /// Returns the index that lists what the store holds, whose names were just read: the one that was read before that,
    /// or one that is made anew. It stays as it is where it cannot be written, when somebody changed both since or does
    /// so now, and when the store is another one.
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

    /// Makes the index say what the store holds, and changes nothing in the store. Returns the names that were added
    /// and removed; what is damaged stays as it is.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn repair(&self) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        // Opened before the lock, and listed under it: what is kept meanwhile is no lost name.
        self.store.list()?;
        let mut locked = Index::lock(&self.directory)?;
        self.rebuild_index(&mut locked, &self.store.list()?)
    }

    /// Makes the index say what the store holds, which has these names.
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
        // A file that could be read and holds no name is listed, too.
        if self.chosen.kind == Kind::Age {
            index.store.get_or_insert_with(|| self.chosen.clone());
        }
        if index != *locked.index() || !index.is_whole() {
            locked.change_store(index, || Ok(()))?;
        }
        Ok((added, removed))
    }

    /// Lists what the store has, with the note and the dates of its record.
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

/// Whether an index lists for a store of some kind what that holds.
pub(super) fn lists_exactly(index: &Index, kind: Kind, held: &[SecretName]) -> bool {
    let is_own = |name: &SecretName| index.get(name).is_some_and(|listed| listed.store == kind);
    let listed: BTreeSet<SecretName> = index.secret_names().filter(is_own).collect();
    // What is listed for another store stays so.
    let is_elsewhere = |name: &SecretName| index.get(name).is_some_and(|l| l.store != kind);
    let held = held.iter().filter(|name| !is_elsewhere(name)).cloned();
    index.is_whole() && listed == held.collect()
}
