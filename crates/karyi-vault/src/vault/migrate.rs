//! Moves all secrets into another store: copy, verify, switch, delete. An interruption before the switch changes
//! nothing in use; the next migration completes one that was interrupted after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Index, LockedIndex, StoreChoice};
use crate::session::case_conflict;
use crate::store::record::{self, Record};
use crate::store::{Key, Kind};
use crate::vault::Vault;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// Changes of one store: texts to store, and keys to remove.
type Changes = Vec<(Key, Option<SecretValue>)>;

impl Vault {
    /// Copies all secrets into another store, makes it the chosen one, and removes them here. The lock is held
    /// throughout, so that no concurrent change is lost. Identical copies are not written again. Returns the names.
    ///
    /// # Errors
    /// Errors of the stores or the file system. Secrets that were copied before the error are in both stores and can
    /// be migrated again.
    pub fn migrate(&self, to: &Self) -> Result<Vec<SecretName>, ToolError> {
        // Opened before the lock.
        to.probe()?;
        self.store.list()?;
        self.with_lock(|locked| self.move_locked(to, locked))
    }

    fn move_locked(
        &self,
        to: &Self,
        locked: &mut LockedIndex,
    ) -> Result<Vec<SecretName>, ToolError> {
        let index = locked.index().clone();
        let names = self.store.list()?;
        let records = self.read_records(&index, &names)?;
        let mut changes = self.changes_to_copy(to, &records)?;
        let mut gone: Changes = names.iter().map(|name| (Key::of(name), None)).collect();
        if let Some(key) = self.store.get(&Key::journal())? {
            // Removed in any case: nothing uses the key in a store that is not in use.
            gone.push((Key::journal(), None));
            let moves = self.moves_journal(to, &index)?;
            changes.extend(moves.then_some((Key::journal(), Some(key))));
        }
        let after = self.index_after(&index, to, &records);
        locked.change_store(after.clone(), || {
            to.store.apply(&changes)?;
            to.check_copied(&records)?;
            to.check_key(&changes)
        })?;
        let mut last = after;
        // The identity of the old store stays known until it is empty.
        last.store = Some(to.chosen.clone());
        let removed = locked.change_store(last, || {
            self.store.apply(&gone)?;
            self.store.remove_empty()
        });
        removed.map_err(|error| self.copies_remain(to, error))?;
        Ok(names)
    }

    /// Returns the records of some names, completed with notes and dates that only the index has.
    fn read_records(
        &self,
        index: &Index,
        names: &[SecretName],
    ) -> Result<Vec<(SecretName, Record)>, ToolError> {
        let read = |name: &SecretName| {
            let mut record = self.get(name)?;
            if let Some(listed) = index.get(name) {
                record.facts = record.facts.or(listed.facts());
            }
            Ok((name.clone(), record))
        };
        names.iter().map(read).collect()
    }

    /// Returns the changes for the other store, without records that it holds already.
    ///
    /// # Errors
    /// `bad_arguments` when it holds another value under one of the names, which would be lost.
    fn changes_to_copy(
        &self,
        to: &Self,
        records: &[(SecretName, Record)],
    ) -> Result<Changes, ToolError> {
        let there: BTreeSet<SecretName> = to.store.list()?.into_iter().collect();
        let moved: BTreeSet<&SecretName> = records.iter().map(|(name, _)| name).collect();
        let others = there.iter().filter(|other| !moved.contains(other));
        let lower = |name: &SecretName| name.as_str().to_ascii_lowercase();
        let others: BTreeMap<String, &SecretName> =
            others.map(|other| (lower(other), other)).collect();
        let mut changes = Changes::new();
        for (name, record) in records {
            if let Some(other) = others.get(&lower(name)) {
                return Err(case_conflict(other, name));
            }
            match there.contains(name) {
                true if is_same_record(record, to.get(name)) => {}
                true => return Err(self.conflicting_copies(to.store.kind(), name)),
                false => {
                    let text = record::join(&record.value, &record.policy, &record.facts)?;
                    changes.push((Key::of(name), Some(text)));
                }
            }
        }
        Ok(changes)
    }

    /// Returns true when the key of the undo journal moves, too. The key of a store that was not in use replaces no
    /// other.
    fn moves_journal(&self, to: &Self, index: &Index) -> Result<bool, ToolError> {
        let used = index.store.as_ref();
        let was_used = used.is_none_or(|used| used.kind == self.chosen.kind);
        Ok(was_used || to.store.get(&Key::journal())?.is_none())
    }

    /// Returns the index for the state after the migration.
    fn index_after(&self, index: &Index, to: &Self, records: &[(SecretName, Record)]) -> Index {
        let mut after = index.clone();
        let identity = to.chosen.identity.clone();
        after.store = Some(StoreChoice {
            identity: identity.or_else(|| self.chosen.identity.clone()),
            ..to.chosen.clone()
        });
        for (name, record) in records {
            match after.names.get_mut(name.as_str()) {
                Some(listed) => listed.store = to.chosen.kind,
                None => to.index_record(&mut after, name, record),
            }
        }
        after
    }

    /// Checks that the store returns the records as they were written.
    fn check_copied(&self, records: &[(SecretName, Record)]) -> Result<(), ToolError> {
        for (name, record) in records {
            let back = self.get(name)?;
            if !is_same_record(record, Ok(back)) {
                let message = format!(
                    "the store {} returns a changed value of {name}",
                    self.store.kind()
                );
                return Err(ToolError::new(ErrorCode::BadVault, message));
            }
        }
        Ok(())
    }

    /// Checks that the store returns the key of the undo journal unchanged, if it was written: the journal is
    /// unreadable without it.
    fn check_key(&self, changes: &Changes) -> Result<(), ToolError> {
        let given = changes.iter().find(|(key, _)| *key == Key::journal());
        let Some(text) = given.and_then(|(_, text)| text.as_ref()) else {
            return Ok(());
        };
        let back = self.store.get(&Key::journal())?;
        if back.is_some_and(|back| back.expose() == text.expose()) {
            return Ok(());
        }
        let kind = self.store.kind();
        let message = format!("the store {kind} returns a changed key of the undo journal");
        Err(ToolError::new(ErrorCode::BadVault, message))
    }

    /// Returns the error for a name with two values.
    fn conflicting_copies(&self, theirs: Kind, name: &SecretName) -> ToolError {
        let own = self.store.kind();
        let message = format!("the stores {own} and {theirs} hold different values of {name}");
        let hint = format!("remove one: `karyi var rm {name} --vault {own}` or --vault {theirs}");
        ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
    }

    /// Returns the error for copies that could not be removed.
    fn copies_remain(&self, to: &Self, error: ToolError) -> ToolError {
        let (own, theirs) = (self.store.kind(), to.store.kind());
        let message = format!(
            "all secrets are in the store {theirs} now, which is in use; copies remain in the store {own}: {}",
            error.message
        );
        let hint = format!("remove them with `karyi var migrate --vault {own} --to {theirs}`");
        ToolError::new(error.code, message).with_hint(hint)
    }
}

/// Returns true when both records have the same value and policy, in any record format.
fn is_same_record(record: &Record, theirs: Result<Record, ToolError>) -> bool {
    theirs.is_ok_and(|theirs| {
        theirs.value.expose() == record.value.expose() && theirs.policy == record.policy
    })
}
