//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name or an open change in the index, or needs a name; later looks compare
//! the index. A policy is read with its value: as long as the value stays the same, the session goes by
//! the policy it read first. A store that could not be read is asked again when a call uses a name.

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

/// Says which store is in use as long as the index is as it is, and what there is of a file that it does not list.
pub type ChooseStore = Box<dyn Fn(&Index) -> (Option<StoreChoice>, UnlistedFile) + Send + Sync>;

/// What a store is opened with.
pub struct OpenContext<'a> {
    /// The index as it is now.
    pub index: &'a Index,
    /// Who is to know what opens the store, which must not be shown.
    pub secrets: &'a Secrets,
}

/// The store a session takes its values from.
pub struct StoreSync {
    directory: PathBuf,
    open: OpenChosenStore,
    choose: ChooseStore,
    /// The index, as it was read last.
    index: FileWatch,
    state: Mutex<SyncState>,
}

#[derive(Default)]
struct SyncState {
    /// The store in use; nothing when nobody has chosen one yet.
    chosen: Option<StoreChoice>,
    unlisted: UnlistedFile,
    store: Option<Arc<dyn Store>>,
    /// The index when the store was read last, but for dates of use: as long as it stays so, what was read is true.
    seen: Option<Index>,
    /// Names that came from the store.
    loaded: BTreeSet<SecretName>,
    /// Why the index cannot be read now.
    unreadable: Option<ToolError>,
    /// Why the store could not be read.
    failure: Option<ToolError>,
    found: StoreContents,
}

/// What one look at the store found.
#[derive(Default)]
struct StoreContents {
    /// All names of the store and the index, once the store could be read but for single values.
    listed: Option<BTreeSet<String>>,
    /// What is wrong with single values.
    damaged: BTreeMap<SecretName, DamagedValue>,
    /// What is wrong with what the store has beside secrets.
    strangers: Option<ToolError>,
    /// Names that the index lists for another store, and that store.
    elsewhere: Vec<(SecretName, Kind)>,
}

/// Returns an index without the dates that every run changes.
fn without_use(mut index: Index) -> Index {
    for listed in index.names.values_mut() {
        listed.used = None;
    }
    index
}

impl SyncState {
    /// Whether a look reads the store.
    fn needs_read(&self, index: &Index, need: Need) -> bool {
        let is_new = self.seen.as_ref() != Some(index);
        let may_hold_any = self.store.is_some()
            || !index.names.is_empty()
            // What a change left that broke off may be there.
            || !index.is_whole()
            || self.unlisted == UnlistedFile::InUse;
        match need {
            // Nobody is asked or waits again for what is not used, unless somebody has changed it.
            Need::Listed => is_new && may_hold_any,
            Need::Used => is_new || self.failure.is_some() || !self.found.damaged.is_empty(),
        }
    }

    /// Returns the store in use, as the index names it.
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

    /// Returns what is wrong with the values that redaction knows, or with those it does not know.
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
    /// Makes the way to a store; it is not opened yet. `directory` is that of the index.
    #[must_use]
    pub fn new(directory: PathBuf, open: OpenStore) -> Self {
        Self::for_chosen(directory, Box::new(move |_| open()))
    }

    /// Makes the way to the store that the index names when it is opened.
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

    /// Says which store is in use. Another one than before is opened in its place. A file that no index lists and that is
    /// in use is opened though no name is listed.
    #[must_use]
    pub fn with_choice(self, choose: ChooseStore) -> Self {
        Self { choose, ..self }
    }

    /// Opens the store whether it is needed or not, for what is kept in it beside values. The secrets are to know what
    /// opens it.
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

    /// Returns the key of the undo journal, made at the first time; nothing while the store is closed,
    /// or when it keeps nothing.
    ///
    /// # Errors
    /// What the store says.
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
    /// What the store says.
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

    /// Goes by the store that an index names: one that was opened before gives way to it.
    fn choose(&self, state: &mut SyncState, index: &Index) {
        let (chosen, unlisted) = (self.choose)(index);
        state.unlisted = unlisted;
        if state.chosen != chosen {
            (state.store, state.seen, state.failure) = (None, None, None);
            state.chosen = chosen;
        }
    }

    /// Reads what is to be read. Returns whether another look is needed only when the index changes or a name is used.
    fn update(&self, state: &mut SyncState, secrets: &Secrets, need: Need) -> bool {
        let index = match Index::read(&self.directory) {
            Ok(index) => without_use(index),
            Err(error) => {
                // Once it can be read again, the store is read again, too.
                (state.unreadable, state.seen) = (Some(error), None);
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
            state.seen = Some(index);
            return true;
        }
        // What was read while somebody changes the store may be old.
        state.seen = Some(self.reconciled(state, index)).filter(Index::is_whole);
        state.seen.is_some()
    }

    /// Reads the store and gives the session what it holds.
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
                // One that is damaged hides none of the others.
                Err(damage) if concerns_one_value(&damage.error) => {
                    state.found.damaged.insert(name.clone(), damage);
                }
                Err(damage) => drop(lost.get_or_insert(damage.error)),
            }
            names.insert(name);
        }
        state.found.strangers = mask_other_entries(held, secrets);
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
        // What it does hold is masked all the same.
        check_same_store(index, store.kind(), &names)
    }

    /// Returns the index, made anew when it does not list what was read.
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
        let strangers = || state.found.strangers.clone();
        let unread = failure
            .map(store_unreadable)
            .or_else(|| state.damage(false));
        let unread = unread.or_else(|| strangers().map(store_unreadable));
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
