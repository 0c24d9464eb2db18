//! Moves everything into another store, and removes what a migration that broke off left in the old one.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::{Chosen, Index, Locked};
use crate::vault::keep::Vault;
use crate::vault::keep::room::{check_together, may_be_too_long, usable_bytes};
use crate::vault::keep::rows::check_agreement;
use crate::vault::session::only_case;
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Key, Kind};

/// What one store is to keep and to remove.
type Changes = Vec<(Key, Option<SecretValue>)>;

/// What became of what another store still had.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// What both stores held alike, and the other one holds no more.
    pub removed: Vec<SecretName>,
    /// What stays there: the store in use has something else under the name or nothing, or the index lists it there.
    pub left: Vec<SecretName>,
    /// Whether the key of the undo journal went.
    pub is_key_removed: bool,
}

impl Finished {
    /// Whether the other store had nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Vault {
    /// Ends a migration into this store that was broken off after the index named it: what both hold alike is removed
    /// from the old one, and nothing else but a key of the undo journal that is left alone there.
    ///
    /// # Errors
    /// What the stores or the system say.
    pub fn finish(&self, old: &Self) -> Result<Finished, ToolError> {
        // Opened before the lock; of a store that has nothing the other one is not opened.
        let has_key = old.store.get(&Key::journal())?.is_some();
        if old.store.list()?.is_empty() && !has_key {
            old.store.clear_away()?;
            return Ok(Finished::default());
        }
        self.probe()?;
        let old = old.quietly();
        self.locked_with(&[&old], |own, locked| own.finished(&old, locked))
    }

    fn finished(&self, old: &Self, locked: &mut Locked) -> Result<Finished, ToolError> {
        let index = locked.index().clone();
        let mut done = Finished::default();
        for name in old.store.list()? {
            match self.holds_alike(&index, old, &name)? {
                true => done.removed.push(name),
                false => done.left.push(name),
            }
        }
        let mut gone: Changes = done.removed.iter().map(|n| (Key::of(n), None)).collect();
        let mut added = Changes::new();
        if let Some(key) = old.store.get(&Key::journal())? {
            let used = self.store.get(&Key::journal())?;
            let is_alike = used.as_ref().is_some_and(|u| u.expose() == key.expose());
            // In a store without anything else it is for nobody; it replaces none, and is not lost where there is none.
            if is_alike || done.left.is_empty() {
                done.is_key_removed = true;
                gone.push((Key::journal(), None));
                added.extend(used.is_none().then_some((Key::journal(), Some(key))));
            }
        }
        let mut after = index.clone();
        if done.left.is_empty() {
            after.store = after.store.map(without_old);
        }
        if !gone.is_empty() || after != index {
            let removed = locked.around(index, after, || {
                self.store.apply(&added)?;
                self.check_key(&added)?;
                old.store.apply(&gone)?;
                old.store.clear_away()
            });
            removed.map_err(|error| old.left_behind(self, error))?;
        }
        Ok(done)
    }

    /// Whether the old store has of a name what this one has, and the index lists it here.
    fn holds_alike(&self, index: &Index, old: &Self, name: &SecretName) -> Result<bool, ToolError> {
        let listed = index.get(name).map(|listed| listed.store);
        if listed.is_some_and(|store| store != self.chosen.kind) {
            return Ok(false);
        }
        let both = old
            .get(name)
            .and_then(|theirs| Ok((theirs, self.get(name)?)));
        match both {
            Ok((theirs, own)) => Ok(is_alike(&theirs, Ok(own))),
            // What cannot be read, or is not there, is not alike.
            Err(error)
                if matches!(
                    error.code,
                    ErrorCode::BadVault | ErrorCode::UndefinedVariable
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Copies everything into another store, makes that the chosen one, and removes it here: all of it under the lock,
    /// so that nothing is kept beside it that would be lost. Returns the names.
    ///
    /// # Errors
    /// What the stores or the system say. What was copied before stays in both, and can be moved again.
    pub fn migrate(&self, to: &Self) -> Result<Vec<SecretName>, ToolError> {
        // Opened before the lock.
        to.probe()?;
        self.store.list()?;
        let to = to.quietly();
        self.locked_with(&[&to], |own, locked| own.moved_to(&to, locked))
    }

    fn moved_to(&self, to: &Self, locked: &mut Locked) -> Result<Vec<SecretName>, ToolError> {
        let names = self.store.list()?;
        let index = locked.index().clone();
        check_agreement(&index, self.chosen.kind, &names)?;
        let records = self.records(&index, &names)?;
        let mut changes = self.copies(to, &records)?;
        let mut gone: Changes = names.iter().map(|name| (Key::of(name), None)).collect();
        if let Some(key) = self.store.get(&Key::journal())? {
            // Moved or not: what is left of a store that is not in use is for nobody.
            gone.push((Key::journal(), None));
            let moves = self.moves_journal(to, &index, &key)?;
            changes.extend(moves.then_some((Key::journal(), Some(key))));
        }
        let after = self.moved(&index, to, &names);
        locked.around(index, after.clone(), || {
            to.store.apply(&changes)?;
            to.check_copied(&records)?;
            to.check_key(&changes)
        })?;
        let mut last = after.clone();
        last.store = last.store.map(without_old);
        let removed = locked.around(after, last, || {
            self.store.apply(&gone)?;
            self.store.clear_away()
        });
        removed.map_err(|error| self.left_behind(to, error))?;
        Ok(names)
    }

    /// Returns the records under some names. Notes and dates that only the index has become part of them.
    fn records(
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

    /// Returns what the other store is to keep: what it has alike already is left as it is.
    ///
    /// # Errors
    /// `bad_arguments` when it has something else under one of the names, which would be lost; `bad_value` when runs
    /// could not hold all that is together then.
    fn copies(&self, to: &Self, records: &[(SecretName, Record)]) -> Result<Changes, ToolError> {
        let there = to.store.list()?;
        let moved: BTreeSet<&SecretName> = records.iter().map(|(name, _)| name).collect();
        let others = || there.iter().filter(|other| !moved.contains(other));
        if may_be_too_long(others().count() + records.len()) {
            let size = |other| {
                to.get(other)
                    .map_or(0, |record| usable_bytes(other, &record.value))
            };
            let mut total: usize = others().map(size).sum();
            for (name, record) in records {
                total += usable_bytes(name, &record.value);
                check_together(name, total)?;
            }
        }
        let lower = |name: &SecretName| name.as_str().to_ascii_lowercase();
        let others: BTreeMap<String, &SecretName> =
            others().map(|other| (lower(other), other)).collect();
        let there: BTreeSet<&SecretName> = there.iter().collect();
        let mut changes = Changes::new();
        for (name, record) in records {
            if let Some(other) = others.get(&lower(name)) {
                return Err(only_case(other, name));
            }
            match there.contains(name) {
                true if is_alike(record, to.get(name)) => {}
                true => return Err(self.both_hold(to.store.kind(), name)),
                false => {
                    let text = record::join(&record.value, &record.policy, &record.facts)?;
                    changes.push((Key::of(name), Some(text)));
                }
            }
        }
        Ok(changes)
    }

    /// Whether the key of the undo journal moves, too: the one that runs used until now goes on; that of a store that
    /// was not in use replaces none.
    fn moves_journal(
        &self,
        to: &Self,
        index: &Index,
        key: &SecretValue,
    ) -> Result<bool, ToolError> {
        let used = index.store.as_ref();
        let was_used = used.is_none_or(|used| used.kind == self.chosen.kind);
        let theirs = to.store.get(&Key::journal())?;
        Ok(was_used || theirs.is_none_or(|theirs| theirs.expose() == key.expose()))
    }

    /// Returns the index of when everything is in the other store.
    fn moved(&self, index: &Index, to: &Self, names: &[SecretName]) -> Index {
        let mut after = index.clone();
        // What opens the old one is known until nothing is left there.
        let identity = to.chosen.identity.clone();
        after.store = Some(Chosen {
            identity: identity.or_else(|| self.chosen.identity.clone()),
            ..to.chosen.clone()
        });
        for name in names {
            if let Some(listed) = after.names.get_mut(name.as_str()) {
                listed.store = to.chosen.kind;
            }
        }
        after
    }

    /// Checks that the store gives back what it was given.
    fn check_copied(&self, records: &[(SecretName, Record)]) -> Result<(), ToolError> {
        for (name, record) in records {
            let back = self.get(name)?;
            if !is_alike(record, Ok(back)) {
                let message = format!("the store {} gives {name} back changed", self.store.kind());
                return Err(ToolError::new(ErrorCode::BadVault, message));
            }
        }
        Ok(())
    }

    /// Checks that the store gives the key of the undo journal back, when that is among what it was given: what the
    /// journal keeps cannot be read without it.
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
        let message = format!("the store {kind} gives the key of the undo journal back changed");
        Err(ToolError::new(ErrorCode::BadVault, message))
    }

    /// Returns the error for a name with two values.
    fn both_hold(&self, theirs: Kind, name: &SecretName) -> ToolError {
        let own = self.store.kind();
        let message = format!("the stores {own} and {theirs} both hold a {name}, and not the same");
        let hint = format!("remove one: `karyi var rm {name} --vault {own}` or --vault {theirs}");
        ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
    }

    /// Returns the error for copies that could not be removed.
    fn left_behind(&self, to: &Self, error: ToolError) -> ToolError {
        let (own, theirs) = (self.store.kind(), to.store.kind());
        let message = format!(
            "everything is in the store {theirs} now, and that one is in use; copies are left in the store {own}: {}",
            error.message
        );
        let hint = format!("remove them with `karyi var migrate --vault {own} --to {theirs}`");
        ToolError::new(error.code, message).with_hint(hint)
    }
}

/// Returns a store in use without what opened the other one.
fn without_old(used: Chosen) -> Chosen {
    Chosen {
        identity: used.identity.filter(|_| used.kind == Kind::Age),
        ..used
    }
}

/// Whether a store has the same value with the same policy, however it is written.
fn is_alike(record: &Record, theirs: Result<Record, ToolError>) -> bool {
    theirs.is_ok_and(|theirs| {
        theirs.value.expose() == record.value.expose() && theirs.policy == record.policy
    })
}
