//! Loads the stored secrets into a running session and updates them.
//!
//! Every value is loaded, used or not, because redaction must know them all. The store is opened when the index lists
//! a name or an open change, or when a name is used; later refreshes compare the index. A policy is read with its
//! value and stays in force as long as the value does not change. A store that failed is tried again when a call uses
//! a name.

mod entries;
mod other_stores;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::file_watch::FileWatch;
use crate::index::{FILE_NAME, Index, StoreChoice};
use crate::session::{LoadIssue, LoadIssueKind, Need, Secrets, Source};
use crate::store::journal_key::{self, JournalKey};
use crate::store::{Kind, Store, concerns_one_value, read_entries};
use crate::vault::{self, Vault, check_same_store, names_in_other_stores};
use entries::{DamagedValue, load_value, mask_other_entries};
use karyi_core::error::ToolError;
use karyi_core::secret::SecretName;
use other_stores::{ChosenBy, issue_elsewhere, issue_unlisted, store_unreadable};

pub use other_stores::{OtherStores, UnlistedFile};

/// Opens a store; it may ask the user for a key.
pub type OpenStore = Box<dyn Fn() -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// Opens the store that an index names.
pub type OpenChosenStore =
    Box<dyn Fn(&OpenContext<'_>) -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// Chooses the store for an index, and reports an encrypted file that the index does not list.
pub type ChooseStore = Box<dyn Fn(&Index) -> (Option<StoreChoice>, UnlistedFile) + Send + Sync>;

/// Input for opening a store.
pub struct OpenContext<'a> {
    /// Current index.
    pub index: &'a Index,
    /// Secrets of the session, which mask the key that opens the store.
    pub secrets: &'a Secrets,
}

/// Synchronises the secrets of a session with a store.
pub struct StoreSync {
    directory: PathBuf,
    open: OpenChosenStore,
    choose: ChooseStore,
    /// Version of the index that was read last.
    index: FileWatch,
    state: Mutex<SyncState>,
}

#[derive(Default)]
struct SyncState {
    /// Store in use; `None` when none was chosen.
    chosen: Option<StoreChoice>,
    unlisted: UnlistedFile,
    store: Option<Arc<dyn Store>>,
    /// Index at the last read of the store, without dates of use.
    last_index: Option<Index>,
    /// Names loaded from the store.
    loaded: BTreeSet<SecretName>,
    /// Error of the last read of the index.
    unreadable: Option<ToolError>,
    /// Error of the last read of the store.
    failure: Option<ToolError>,
    found: StoreContents,
}

/// Result of reading the store.
#[derive(Default)]
struct StoreContents {
    /// All names of store and index, once the store was read, except single damaged values.
    listed: Option<BTreeSet<String>>,
    /// Damaged values.
    damaged: BTreeMap<SecretName, DamagedValue>,
    /// Error of entries that other programs wrote.
    foreign_error: Option<ToolError>,
    /// Names in other stores, with the kind of store.
    elsewhere: Vec<(SecretName, Kind)>,
}

/// Returns an index without dates of use, which every run changes.
fn without_use(mut index: Index) -> Index {
    for listed in index.names.values_mut() {
        listed.used = None;
    }
    index
}

impl SyncState {
    /// Returns true when a refresh must read the store.
    fn needs_read(&self, index: &Index, need: Need) -> bool {
        let is_new = self.last_index.as_ref() != Some(index);
        let may_hold_any = self.store.is_some()
            || !index.names.is_empty()
            // An interrupted change may have left values there.
            || !index.is_whole()
            || self.unlisted == UnlistedFile::InUse;
        match need {
            // A failed store is not tried again until it changes or a name is used.
            Need::Listed => is_new && may_hold_any,
            Need::Used => is_new || self.failure.is_some() || !self.found.damaged.is_empty(),
        }
    }

    /// Returns the choice of the store in use.
    fn in_use(&self, store: &dyn Store) -> StoreChoice {
        let kind = store.kind();
        let chosen = self.chosen.clone().filter(|chosen| chosen.kind == kind);
        chosen.unwrap_or(StoreChoice {
            kind,
            identity: None,
        })
    }

    fn issue_elsewhere(&self, names: &[(SecretName, Kind)]) -> Option<LoadIssue> {
        issue_elsewhere(names, self.store.as_ref()?.kind(), ChosenBy::Index)
    }

    /// Returns the issue of damaged values that are masked, or of those that are not.
    fn damage(&self, is_masked: bool) -> Option<LoadIssue> {
        let wanted = || {
            let damaged = self.found.damaged.iter();
            damaged.filter(|(_, d)| d.is_masked == is_masked)
        };
        let (_, first) = wanted().next()?;
        Some(LoadIssue {
            kind: match is_masked {
                true => LoadIssueKind::Unusable,
                false => LoadIssueKind::Unread,
            },
            error: first.error.clone(),
            names: wanted().map(|(name, _)| name.clone()).collect(),
        })
    }
}

impl StoreSync {
    /// Makes a synchroniser; the store is not opened yet. `directory` is that of the index.
    #[must_use]
    pub fn new(directory: PathBuf, open: OpenStore) -> Self {
        Self::for_chosen(directory, Box::new(move |_| open()))
    }

    /// Makes a synchroniser for the store that the index names at the time of opening.
    #[must_use]
    pub fn for_chosen(directory: PathBuf, open: OpenChosenStore) -> Self {
        Self {
            index: FileWatch::new(directory.join(FILE_NAME)),
            directory,
            open,
            choose: Box::new(|_| (None, UnlistedFile::Nothing)),
            state: Mutex::default(),
        }
    }

    /// Sets the function that chooses the store. When the choice changes, the new store replaces the open one.
    #[must_use]
    pub fn with_choice(self, choose: ChooseStore) -> Self {
        Self { choose, ..self }
    }

    /// Opens the store unconditionally, for content other than values.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn store(&self, secrets: &Secrets) -> Result<Arc<dyn Store>, ToolError> {
        let mut state = self.state();
        let index = Index::read(&self.directory)?;
        self.choose(&mut state, &index);
        let opening = OpenContext {
            index: &index,
            secrets,
        };
        self.opened(&mut state, &opening)
    }

    /// Returns the key of the undo journal, created at the first use; `None` while the store is closed or when it is
    /// not persistent.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        let state = self.state();
        let Some(store) = state.store.clone() else {
            return Ok(None);
        };
        let chosen = state.in_use(store.as_ref());
        drop(state);
        match journal_key::stored_key(store.as_ref())? {
            Some(key) => Ok(Some(key)),
            None => vault::journal_key(&self.directory, chosen, &store),
        }
    }

    /// Returns the key of the undo journal when the store is open and has one.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn stored_journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        let store = self.state().store.clone();
        store.map_or(Ok(None), |store| journal_key::stored_key(store.as_ref()))
    }

    fn opened(
        &self,
        state: &mut SyncState,
        opening: &OpenContext<'_>,
    ) -> Result<Arc<dyn Store>, ToolError> {
        let store = match state.store.take() {
            Some(store) => store,
            None => (self.open)(opening)?,
        };
        Ok(Arc::clone(state.store.insert(store)))
    }

    /// Applies the choice of the store: a change closes the open store.
    fn choose(&self, state: &mut SyncState, index: &Index) {
        let (chosen, unlisted) = (self.choose)(index);
        state.unlisted = unlisted;
        if state.chosen != chosen {
            (state.store, state.last_index, state.failure) = (None, None, None);
            state.chosen = chosen;
        }
    }

    /// Reads index and store as needed. Returns true when no other refresh is needed until the index changes or a name
    /// is used.
    fn update(&self, state: &mut SyncState, secrets: &Secrets, need: Need) -> bool {
        let index = match Index::read(&self.directory) {
            Ok(index) => without_use(index),
            Err(error) => {
                // The store is read again once the index is readable.
                (state.unreadable, state.last_index) = (Some(error), None);
                return true;
            }
        };
        state.unreadable = None;
        self.choose(state, &index);
        if !state.needs_read(&index, need) {
            return true;
        }
        let opening = OpenContext {
            index: &index,
            secrets,
        };
        state.failure = self.read(state, &opening).err();
        if state.failure.is_some() {
            state.last_index = Some(index);
            return true;
        }
        // Values read during a change may be outdated.
        state.last_index = Some(self.reconciled(state, index)).filter(Index::is_whole);
        state.last_index.is_some()
    }

    /// Reads the store and loads its values into the session.
    fn read(&self, state: &mut SyncState, opening: &OpenContext<'_>) -> Result<(), ToolError> {
        state.found = StoreContents::default();
        let (index, secrets) = (opening.index, opening.secrets);
        let store = self.opened(state, opening)?;
        state.found.elsewhere = names_in_other_stores(index, store.kind());
        let held = read_entries(store.as_ref())?;
        let mut lost = None;
        let mut names = BTreeSet::new();
        for (key, texts) in &held {
            let Some(name) = SecretName::parse(key.as_str()) else {
                continue;
            };
            match load_value(&name, texts, secrets) {
                Ok(()) => drop(state.loaded.insert(name.clone())),
                // A damaged value does not hide the others.
                Err(damage) if concerns_one_value(&damage.error) => {
                    state.found.damaged.insert(name.clone(), damage);
                }
                Err(damage) => drop(lost.get_or_insert(damage.error)),
            }
            names.insert(name);
        }
        state.found.foreign_error = mask_other_entries(held, secrets);
        for gone in state.loaded.difference(&names) {
            secrets.remove_stored(gone);
        }
        state.loaded = &state.loaded & &names;
        if let Some(error) = lost {
            return Err(error);
        }
        let names: Vec<SecretName> = names.into_iter().collect();
        let all = names.iter().cloned().chain(index.secret_names());
        state.found.listed = Some(all.map(|name| name.to_string()).collect());
        // Its values are masked all the same.
        check_same_store(index, store.kind(), &names)
    }

    /// Returns the index, rebuilt when it does not list the names that were read.
    fn reconciled(&self, state: &SyncState, index: Index) -> Index {
        let Some(store) = state.store.clone() else {
            return index;
        };
        let held = state.loaded.iter().chain(state.found.damaged.keys());
        let held: Vec<SecretName> = held.cloned().collect();
        let chosen = state.in_use(store.as_ref());
        let vault = Vault::new(self.directory.clone(), chosen, store);
        without_use(vault.reconciled(index, &held))
    }

    // A poisoned lock only means that another thread panicked while it loaded.
    fn state(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for StoreSync {
    fn refresh(&self, secrets: &Secrets, need: Need) {
        let mut state = self.state();
        let version = self.index.version();
        if self.update(&mut state, secrets, need) {
            self.index.record(version);
        }
    }

    fn is_behind(&self) -> bool {
        self.index.is_stale()
    }

    fn load_issues(&self) -> Vec<LoadIssue> {
        let state = self.state();
        let failure = state.unreadable.clone().or_else(|| state.failure.clone());
        let foreign_error = || state.found.foreign_error.clone();
        let unread = failure
            .map(store_unreadable)
            .or_else(|| state.damage(false));
        let unread = unread.or_else(|| foreign_error().map(store_unreadable));
        let elsewhere = state.issue_elsewhere(&state.found.elsewhere);
        let unlisted = issue_unlisted(state.unlisted);
        let all = [unread, elsewhere, unlisted, state.damage(true)];
        all.into_iter().flatten().collect()
    }

    fn load_issue_of(&self, name: &str) -> Option<LoadIssue> {
        let state = self.state();
        let known = SecretName::parse(name);
        let damaged = known.and_then(|name| Some((state.found.damaged.get(&name)?, name)));
        if let Some((damage, name)) = damaged {
            return Some(LoadIssue {
                kind: LoadIssueKind::Unusable,
                error: damage.error.clone(),
                names: vec![name],
            });
        }
        let mut elsewhere = state.found.elsewhere.iter();
        let there = elsewhere.find(|(other, _)| other.as_str() == name);
        if let Some(there) = there {
            return state.issue_elsewhere(std::slice::from_ref(there));
        }
        let is_listed = |names: &BTreeSet<String>| names.contains(name);
        let failure = state.unreadable.clone().or_else(|| state.failure.clone());
        failure
            .filter(|_| state.found.listed.as_ref().is_none_or(is_listed))
            .map(store_unreadable)
    }
}

#[cfg(test)]
mod tests;
