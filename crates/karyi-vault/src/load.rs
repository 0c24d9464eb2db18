//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name or an open change in the index, or needs a name; later looks compare
//! the index. A policy is read with its value: as long as the value stays the same, the session goes by
//! the policy it read first. A store that could not be read is asked again when a call uses a name.

mod texts;
mod unopened;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::{Chosen, FILE_NAME, Index};
use crate::keep::{self, Vault, check_agreement, elsewhere};
use crate::session::{Lack, LackKind, Need, Secrets, Source};
use crate::store::journal::{self, JournalKey};
use crate::store::{Kind, Store, is_of_one, read_by_key};
use crate::watch::Watch;
use karyi_core::error::ToolError;
use karyi_core::secret::SecretName;
use texts::{Damage, load_one, mask_beside};
use unopened::{Named, lack_elsewhere, lack_unlisted, of_the_store};

pub use unopened::{Unlisted, Unopened};

/// Opens a store; it may ask the user for a key.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// Opens the store that an index names.
pub type OpenChosen = Box<dyn Fn(&Opening<'_>) -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// Says which store is in use as long as the index is as it is, and what there is of a file that it does not list.
pub type Choose = Box<dyn Fn(&Index) -> (Option<Chosen>, Unlisted) + Send + Sync>;

/// What a store is opened with.
pub struct Opening<'a> {
    /// The index as it is now.
    pub index: &'a Index,
    /// Who is to know what opens the store, which must not be shown.
    pub secrets: &'a Secrets,
}

/// The store a session takes its values from.
pub struct Loader {
    directory: PathBuf,
    open: OpenChosen,
    choose: Choose,
    /// The index, as it was read last.
    index: Watch,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The store in use; nothing when nobody has chosen one yet.
    chosen: Option<Chosen>,
    unlisted: Unlisted,
    store: Option<Arc<dyn Store>>,
    /// The index when the store was read last, but for dates of use: as long as it stays so, what was read is true.
    seen: Option<Index>,
    /// Names that came from the store.
    loaded: BTreeSet<SecretName>,
    /// Why the index cannot be read now.
    unreadable: Option<ToolError>,
    /// Why the store could not be read.
    failure: Option<ToolError>,
    found: Found,
}

/// What one look at the store found.
#[derive(Default)]
struct Found {
    /// All names of the store and the index, once the store could be read but for single values.
    listed: Option<BTreeSet<String>>,
    /// What is wrong with single values.
    damaged: BTreeMap<SecretName, Damage>,
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

impl State {
    /// Whether a look reads the store.
    fn is_wanted(&self, index: &Index, need: Need) -> bool {
        let is_new = self.seen.as_ref() != Some(index);
        let may_hold_any = self.store.is_some()
            || !index.names.is_empty()
            // What a change left that broke off may be there.
            || !index.is_whole()
            || self.unlisted == Unlisted::InUse;
        match need {
            // Nobody is asked or waits again for what is not used, unless somebody has changed it.
            Need::Listed => is_new && may_hold_any,
            Need::Used => is_new || self.failure.is_some() || !self.found.damaged.is_empty(),
        }
    }

    /// Returns the store in use, as the index names it.
    fn in_use(&self, store: &dyn Store) -> Chosen {
        let kind = store.kind();
        let chosen = self.chosen.clone().filter(|chosen| chosen.kind == kind);
        chosen.unwrap_or(Chosen {
            kind,
            identity: None,
        })
    }

    fn lack_elsewhere(&self, names: &[(SecretName, Kind)]) -> Option<Lack> {
        lack_elsewhere(names, self.store.as_ref()?.kind(), Named::No)
    }

    /// Returns what is wrong with the values that redaction knows, or with those it does not know.
    fn damage(&self, is_masked: bool) -> Option<Lack> {
        let wanted = || {
            let damaged = self.found.damaged.iter();
            damaged.filter(|(_, d)| d.is_masked == is_masked)
        };
        let (_, first) = wanted().next()?;
        Some(Lack {
            kind: match is_masked {
                true => LackKind::Unusable,
                false => LackKind::Unread,
            },
            error: first.error.clone(),
            names: wanted().map(|(name, _)| name.clone()).collect(),
        })
    }
}

impl Loader {
    /// Makes the way to a store; it is not opened yet. `directory` is that of the index.
    #[must_use]
    pub fn new(directory: PathBuf, open: Open) -> Self {
        Self::choosing(directory, Box::new(move |_| open()))
    }

    /// Makes the way to the store that the index names when it is opened.
    #[must_use]
    pub fn choosing(directory: PathBuf, open: OpenChosen) -> Self {
        Self {
            index: Watch::new(directory.join(FILE_NAME)),
            directory,
            open,
            choose: Box::new(|_| (None, Unlisted::Nothing)),
            state: Mutex::default(),
        }
    }

    /// Says which store is in use. Another one than before is opened in its place. A file that no index lists and that is
    /// in use is opened though no name is listed.
    #[must_use]
    pub fn chosen_by(self, choose: Choose) -> Self {
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
        let opening = Opening {
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
        match journal::kept_key(store.as_ref())? {
            Some(key) => Ok(Some(key)),
            None => keep::journal_key(&self.directory, chosen, &store),
        }
    }

    /// Returns the key of the undo journal when the store is open and has one.
    ///
    /// # Errors
    /// What the store says.
    pub fn kept_journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        let store = self.state().store.clone();
        store.map_or(Ok(None), |store| journal::kept_key(store.as_ref()))
    }

    fn opened(
        &self,
        state: &mut State,
        opening: &Opening<'_>,
    ) -> Result<Arc<dyn Store>, ToolError> {
        let store = match state.store.take() {
            Some(store) => store,
            None => (self.open)(opening)?,
        };
        Ok(Arc::clone(state.store.insert(store)))
    }

    /// Goes by the store that an index names: one that was opened before gives way to it.
    fn choose(&self, state: &mut State, index: &Index) {
        let (chosen, unlisted) = (self.choose)(index);
        state.unlisted = unlisted;
        if state.chosen != chosen {
            (state.store, state.seen, state.failure) = (None, None, None);
            state.chosen = chosen;
        }
    }

    /// Reads what is to be read. Returns whether another look is needed only when the index changes or a name is used.
    fn look(&self, state: &mut State, secrets: &Secrets, need: Need) -> bool {
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
        if !state.is_wanted(&index, need) {
            return true;
        }
        let opening = Opening {
            index: &index,
            secrets,
        };
        state.failure = self.read(state, &opening).err();
        if state.failure.is_some() {
            state.seen = Some(index);
            return true;
        }
        // What was read while somebody changes the store may be old.
        state.seen = Some(self.agreed(state, index)).filter(Index::is_whole);
        state.seen.is_some()
    }

    /// Reads the store and gives the session what it holds.
    fn read(&self, state: &mut State, opening: &Opening<'_>) -> Result<(), ToolError> {
        state.found = Found::default();
        let (index, secrets) = (opening.index, opening.secrets);
        let store = self.opened(state, opening)?;
        state.found.elsewhere = elsewhere(index, store.kind());
        let held = read_by_key(store.as_ref())?;
        let mut lost = None;
        let mut names = BTreeSet::new();
        for (key, texts) in &held {
            let Some(name) = SecretName::parse(key.as_str()) else {
                continue;
            };
            match load_one(&name, texts, secrets) {
                Ok(()) => drop(state.loaded.insert(name.clone())),
                // One that is damaged hides none of the others.
                Err(damage) if is_of_one(&damage.error) => {
                    state.found.damaged.insert(name.clone(), damage);
                }
                Err(damage) => drop(lost.get_or_insert(damage.error)),
            }
            names.insert(name);
        }
        state.found.strangers = mask_beside(held, secrets);
        for gone in state.loaded.difference(&names) {
            secrets.remove_stored(gone);
        }
        state.loaded = &state.loaded & &names;
        if let Some(error) = lost {
            return Err(error);
        }
        let names: Vec<SecretName> = names.into_iter().collect();
        let all = names.iter().cloned().chain(index.kept());
        state.found.listed = Some(all.map(|name| name.to_string()).collect());
        // What it does hold is masked all the same.
        check_agreement(index, store.kind(), &names)
    }

    /// Returns the index, made anew when it does not list what was read.
    fn agreed(&self, state: &State, index: Index) -> Index {
        let Some(store) = state.store.clone() else {
            return index;
        };
        let held = state.loaded.iter().chain(state.found.damaged.keys());
        let held: Vec<SecretName> = held.cloned().collect();
        let chosen = state.in_use(store.as_ref());
        let vault = Vault::new(self.directory.clone(), chosen, store);
        without_use(vault.agreed(index, &held))
    }

    // A poisoned lock only means that another thread panicked while it loaded.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Loader {
    fn refresh(&self, secrets: &Secrets, need: Need) {
        let mut state = self.state();
        let version = self.index.version();
        if self.look(&mut state, secrets, need) {
            self.index.note(version);
        }
    }

    fn is_behind(&self) -> bool {
        self.index.is_behind()
    }

    fn lacks(&self) -> Vec<Lack> {
        let state = self.state();
        let failure = state.unreadable.clone().or_else(|| state.failure.clone());
        let strangers = || state.found.strangers.clone();
        let unread = failure.map(of_the_store).or_else(|| state.damage(false));
        let unread = unread.or_else(|| strangers().map(of_the_store));
        let elsewhere = state.lack_elsewhere(&state.found.elsewhere);
        let unlisted = lack_unlisted(state.unlisted);
        let all = [unread, elsewhere, unlisted, state.damage(true)];
        all.into_iter().flatten().collect()
    }

    fn lack_of(&self, name: &str) -> Option<Lack> {
        let state = self.state();
        let known = SecretName::parse(name);
        let damaged = known.and_then(|name| Some((state.found.damaged.get(&name)?, name)));
        if let Some((damage, name)) = damaged {
            return Some(Lack {
                kind: LackKind::Unusable,
                error: damage.error.clone(),
                names: vec![name],
            });
        }
        let mut elsewhere = state.found.elsewhere.iter();
        let there = elsewhere.find(|(other, _)| other.as_str() == name);
        if let Some(there) = there {
            return state.lack_elsewhere(std::slice::from_ref(there));
        }
        let is_listed = |names: &BTreeSet<String>| names.contains(name);
        let failure = state.unreadable.clone().or_else(|| state.failure.clone());
        failure
            .filter(|_| state.found.listed.as_ref().is_none_or(is_listed))
            .map(of_the_store)
    }
}

#[cfg(test)]
mod tests;
