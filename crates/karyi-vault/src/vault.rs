//! The vault: one store and its index.
//!
//! Every change holds the lock of the index and starts from the current index and store, so that processes do not undo
//! each other's changes. The store is authoritative: an index that disagrees with it is rebuilt.

mod journal_key;
mod leak_check;
mod migrate;
mod repair;
mod status;
mod update;

pub use journal_key::journal_key;
pub use status::{
    SecretState, SecretStatus, check_same_store, names_in_other_stores, secret_statuses,
};
pub use update::{CurrentSecret, NewSecret, SecretUpdate};

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::index::{Index, IndexEntry, LockedIndex, StoreChoice};
use crate::policy::Policy;
use crate::session::check_value;
use crate::store::record::{self, Facts, Record};
use crate::store::{Key, Kind, Store};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// One store and its index.
pub struct Vault {
    directory: PathBuf,
    chosen: StoreChoice,
    store: Arc<dyn Store>,
    /// True when the store must still be the chosen one at the time of a change.
    requires_current: bool,
    /// Generation at which index and store agreed.
    consistent_at: Mutex<Option<u64>>,
    /// Notes and policy texts that contain no stored value.
    clean: Mutex<BTreeSet<String>>,
}

/// Note and policy of a secret to store.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretDetails {
    /// Note of the user; `None` retains the earlier note.
    pub note: Option<String>,
    /// Its policy.
    pub policy: Policy,
}

impl Vault {
    /// Combines a store with the index in a directory.
    #[must_use]
    pub fn new(directory: PathBuf, chosen: StoreChoice, store: Arc<dyn Store>) -> Self {
        Self {
            directory,
            chosen,
            store,
            requires_current: false,
            consistent_at: Mutex::default(),
            clean: Mutex::default(),
        }
    }

    /// Makes every change fail when the index names another store by then.
    #[must_use]
    pub fn requiring_current_store(self) -> Self {
        Self {
            requires_current: true,
            ..self
        }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Checks that values can be stored now.
    ///
    /// # Errors
    /// The reason; `vault_unavailable` when the store holds none of the names that the index lists.
    pub fn probe(&self) -> Result<(), ToolError> {
        if self.store.kind() == Kind::Env {
            let message =
                "the store env is read-only: it holds the variables that karyi was started with";
            return Err(ToolError::new(ErrorCode::VaultReadOnly, message));
        }
        let index = Index::read(&self.directory)?;
        // Checked first, so that no new key is made for a missing file.
        if self.chosen.kind == Kind::Age {
            self.check_listed(&index)?;
        }
        self.store.probe()?;
        match self.chosen.kind {
            Kind::Os => self.check_listed(&index),
            Kind::Age | Kind::Memory | Kind::Env => Ok(()),
        }
    }

    /// Checks that the store holds at least one name that the index lists for it. Repeats the check when another
    /// process changed the index meanwhile.
    fn check_listed(&self, index: &Index) -> Result<(), ToolError> {
        if index.secret_names().next().is_none() {
            return Ok(());
        }
        let agreement = check_same_store(index, self.chosen.kind, &self.store.list()?);
        let Err(error) = agreement else {
            return Ok(());
        };
        let now = Index::read(&self.directory)?;
        match now == *index {
            true => Err(error),
            false => self.check_listed(&now),
        }
    }

    /// Checks that the index does not list the name for another store, whose value would be forgotten there.
    ///
    /// # Errors
    /// `bad_arguments`.
    pub fn check_other_stores(&self, name: &SecretName) -> Result<(), ToolError> {
        self.check_store(&Index::read(&self.directory)?, name)
    }

    fn check_store(&self, index: &Index, name: &SecretName) -> Result<(), ToolError> {
        let own = self.chosen.kind;
        match index.get(name).filter(|listed| listed.store != own) {
            Some(listed) => Err(listed_elsewhere(name, listed.store, own)),
            None => Ok(()),
        }
    }

    /// Checks that a value may be stored under a name; writes nothing.
    ///
    /// # Errors
    /// `bad_value` or `bad_arguments`.
    pub fn check(
        &self,
        name: &SecretName,
        value: &SecretValue,
        policy: &Policy,
    ) -> Result<(), ToolError> {
        check_value(name, value.expose())?;
        policy.check_length(name, value.expose())?;
        let index = Index::read(&self.directory)?;
        self.check_store(&index, name)?;
        index.check_new(name)
    }

    /// Runs `work` under the lock, with an index that matches the store. Repeated changes compare the two only once.
    fn with_lock<T>(
        &self,
        work: impl FnOnce(&mut LockedIndex) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut locked = Index::lock(&self.directory)?;
        let used = locked.index().store.as_ref().map(|used| used.kind);
        if let Some(used) = used.filter(|used| self.requires_current && *used != self.chosen.kind) {
            return Err(store_changed(self.chosen.kind, used));
        }
        let is_known = mutex(&self.consistent_at).take() == Some(locked.index().generation);
        if !is_known || locked.index().is_damaged {
            mutex(&self.clean).clear();
            let held = self.store.list()?;
            check_same_store(locked.index(), self.chosen.kind, &held)?;
            if !repair::lists_exactly(locked.index(), self.chosen.kind, &held) {
                self.rebuild_index(&mut locked, &held)?;
            }
        }
        let result = work(&mut locked)?;
        *mutex(&self.consistent_at) = Some(locked.index().generation);
        Ok(result)
    }

    /// Opens the store before the index is locked: a dialogue may take a minute, and other processes wait only seconds
    /// for the index.
    fn open_store(&self) -> Result<(), ToolError> {
        match self.store.kind() {
            Kind::Os => self.store.probe(),
            Kind::Age | Kind::Env => self.probe(),
            Kind::Memory => Ok(()),
        }
    }

    /// Adds a secret to the index. `known` is the metadata of its earlier record; the index supplies what it lacks.
    /// Returns the metadata of the new record.
    fn index_secret(
        &self,
        index: &mut Index,
        name: &SecretName,
        terms: &SecretDetails,
        known: Facts,
    ) -> Facts {
        let now = now();
        let is_same_kind = |store: &StoreChoice| store.kind == self.chosen.kind;
        if self.chosen.kind.is_persistent() && index.store.as_ref().is_none_or(is_same_kind) {
            // The identity file may have changed.
            index.store = Some(self.chosen.clone());
        }
        let earlier = index.get(name).cloned();
        let known = known.or(earlier.as_ref().map(IndexEntry::facts).unwrap_or_default());
        let listed = IndexEntry {
            note: terms.note.clone().or(known.note),
            created: known.created.unwrap_or(now),
            updated: now,
            used: earlier.and_then(|earlier| earlier.used),
            store: self.chosen.kind,
            policy: terms.policy.clone(),
        };
        let facts = listed.facts();
        index.names.insert(name.as_str().to_owned(), listed);
        facts
    }

    /// Returns the record of a secret: value, policy and metadata.
    ///
    /// # Errors
    /// `undefined_variable` when there is none, or an error of the store.
    pub fn get(&self, name: &SecretName) -> Result<Record, ToolError> {
        match self.store.get(&Key::of(name))? {
            Some(text) => record::split(name, &text),
            None => Err(self.no_value(name)),
        }
    }

    /// Returns the error for a name without a value.
    fn no_value(&self, name: &SecretName) -> ToolError {
        let kind = self.store.kind();
        let message = format!("the store {kind} has no value for {name}");
        let hint = match self.check_other_stores(name) {
            Err(elsewhere) if elsewhere.code == ErrorCode::BadArguments => {
                return ToolError {
                    code: ErrorCode::UndefinedVariable,
                    ..elsewhere
                };
            }
            _ => match self.case_variant(name) {
                Some(meant) => format!("the secret is called {meant}"),
                None => format!("see `karyi var list`; `karyi var set {name}` gives it one"),
            },
        };
        ToolError::new(ErrorCode::UndefinedVariable, message).with_hint(hint)
    }

    /// Returns the secret whose name differs only in case, if there is one.
    fn case_variant(&self, name: &SecretName) -> Option<SecretName> {
        let stored = self.store.list().unwrap_or_default();
        let listed = Index::read(&self.directory).unwrap_or_default();
        let mut known = stored.into_iter().chain(listed.secret_names());
        known.find(|known| known.differs_only_in_case(name))
    }

    /// Returns true when the index lists a name.
    ///
    /// # Errors
    /// As [`Index::read`].
    pub fn is_listed(&self, name: &SecretName) -> Result<bool, ToolError> {
        let index = Index::read(&self.directory)?;
        Ok(index.names.contains_key(name.as_str()))
    }

    /// Removes a value. Returns true when the store or the index had it.
    ///
    /// # Errors
    /// `bad_arguments` for a name in another store, or an error of the store or the file system.
    pub fn remove(&self, name: &SecretName) -> Result<bool, ToolError> {
        self.check_other_stores(name)?;
        // If the store cannot be opened, nothing is removed and the name stays listed.
        self.store.list()?;
        self.with_lock(|locked| {
            let mut after = locked.index().clone();
            self.check_store(&after, name)?;
            let was_listed = after.names.remove(name.as_str()).is_some();
            if !was_listed && matches!(self.store.get(&Key::of(name)), Ok(None)) {
                return Ok(false);
            }
            let was_kept = locked.change_store(after, || self.store.remove(&Key::of(name)))?;
            Ok(was_listed || was_kept)
        })
    }

    /// Removes a copy in this store of a value that the index lists for another store. Returns the other store, or
    /// `None` when there was no such copy.
    ///
    /// # Errors
    /// Errors of the store or the file system.
    pub fn remove_copy(&self, name: &SecretName) -> Result<Option<Kind>, ToolError> {
        // Opened before the lock is taken.
        self.store.list()?;
        self.with_lock(|locked| {
            let index = locked.index().clone();
            let other = index.get(name).map(|listed| listed.store);
            let Some(other) = other.filter(|other| *other != self.chosen.kind) else {
                return Ok(None);
            };
            let was_kept = locked.change_store(index, || self.store.remove(&Key::of(name)))?;
            Ok(was_kept.then_some(other))
        })
    }

    /// Renames a secret; value, policy and note stay.
    ///
    /// # Errors
    /// `bad_arguments` when the new name is taken or differs from a third one only in case, or what
    /// the store or the system says.
    pub fn rename(&self, from: &SecretName, to: &SecretName) -> Result<(), ToolError> {
        self.open_store()?;
        self.with_lock(|locked| {
            let mut after = locked.index().clone();
            self.check_store(&after, from)?;
            if from == to || after.get(to).is_some() || self.store.get(&Key::of(to))?.is_some() {
                return Err(name_in_use(to));
            }
            let record = self.get(from)?;
            let listed = after.names.remove(from.as_str());
            after.check_new(to)?;
            let terms = SecretDetails {
                note: None,
                policy: record.policy,
            };
            let known = listed.as_ref().map(IndexEntry::facts).unwrap_or_default();
            let facts = self.index_secret(&mut after, to, &terms, record.facts.or(known));
            if let (Some(new), Some(old)) = (after.names.get_mut(to.as_str()), listed) {
                new.used = old.used;
            }
            let text = record::join(&record.value, &terms.policy, &facts)?;
            let changes = [(Key::of(to), Some(text)), (Key::of(from), None)];
            locked.change_store(after, || self.store.apply(&changes))
        })
    }
}

// A poisoned lock only means that another thread panicked between two changes.
fn mutex<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time in whole seconds, which keeps lists narrow.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Returns the error for a name that another secret has.
fn name_in_use(name: &SecretName) -> ToolError {
    let message = format!("there is a secret called {name} already");
    let hint = format!("choose another name, or remove it with `karyi var rm {name}`");
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Returns the error for a store that is no longer in use.
fn store_changed(own: Kind, used: Kind) -> ToolError {
    let message = format!(
        "the secrets were moved from the store {own} to the store {used} meanwhile; nothing was changed"
    );
    ToolError::new(ErrorCode::VaultBusy, message)
        .with_hint("run it again; restart a running session before it stores values")
}

/// Returns the error for a name that the index lists for another store.
fn listed_elsewhere(name: &SecretName, theirs: Kind, own: Kind) -> ToolError {
    let message = format!("{name} is in the store {theirs}, not in the store {own}");
    let way = match own.is_persistent() {
        true => format!("move all secrets into one store: `karyi var migrate --to {theirs}`"),
        false => "omit --vault".to_owned(),
    };
    let hint = format!("use that store with --vault {theirs}, or {way}");
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}
