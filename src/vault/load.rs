//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name in the index or needs one; later looks compare the generation of
//! the index. A policy is read with its value: as long as the value stays the same, the session goes
//! by the policy it read first.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::check_agreement;
use crate::vault::session::{Need, Origin, Secrets, Source};
use crate::vault::store::journal::{self, JournalKey};
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Key, Store, disk};

/// Opens a store; it may ask the user for a key.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// The store a session takes its values from.
pub struct Loader {
    directory: PathBuf,
    open: Open,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    store: Option<Arc<dyn Store>>,
    /// The generation of the index when the store was read last.
    generation: Option<u64>,
    /// Names that came from the store.
    loaded: BTreeSet<SecretName>,
    /// All names of the store and the index, once the store could be listed and read but for single values.
    listed: Option<BTreeSet<String>>,
    /// Whether redaction knows the key of the undo journal.
    knows_journal_key: bool,
    /// Whether it was made since.
    has_new_key: bool,
    /// Why not everything could be read.
    failure: Option<ToolError>,
}

impl Loader {
    /// Makes the way to a store; it is not opened yet. `directory` is that of the index.
    #[must_use]
    pub fn new(directory: PathBuf, open: Open) -> Self {
        Self {
            directory,
            open,
            state: Mutex::default(),
        }
    }

    /// Opens the store whether it is needed or not, for what is kept in it beside values.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn store(&self) -> Result<Arc<dyn Store>, ToolError> {
        let mut state = self.state();
        self.opened(&mut state)
    }

    /// Returns the key of the undo journal, made at the first time; nothing while the store is closed,
    /// or when it keeps nothing.
    ///
    /// # Errors
    /// What the store says.
    pub fn journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        let Some(store) = self.if_open() else {
            return Ok(None);
        };
        if let Some(key) = journal::kept_key(store.as_ref())? {
            return Ok(Some(key));
        }
        // Two processes that make one at the same time must not use two.
        let _one_at_a_time = disk::lock(&self.directory.join("journal-key"))?;
        let key = journal::journal_key(store.as_ref())?;
        self.state().has_new_key = key.is_some();
        Ok(key)
    }

    /// Returns the key of the undo journal when the store is open and has one.
    ///
    /// # Errors
    /// What the store says.
    pub fn kept_journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        match self.if_open() {
            Some(store) => journal::kept_key(store.as_ref()),
            None => Ok(None),
        }
    }

    fn if_open(&self) -> Option<Arc<dyn Store>> {
        self.state().store.clone()
    }

    fn opened(&self, state: &mut State) -> Result<Arc<dyn Store>, ToolError> {
        if let Some(store) = &state.store {
            return Ok(Arc::clone(store));
        }
        let store = (self.open)()?;
        state.store = Some(Arc::clone(&store));
        Ok(store)
    }

    fn load(&self, state: &mut State, secrets: &Secrets, index: &Index) -> Result<(), ToolError> {
        state.listed = None;
        let store = self.opened(state)?;
        let names = store.list()?;
        let kept = index.kept().map(|name| name.as_str().to_owned());
        let listed = names
            .iter()
            .map(|name| name.as_str().to_owned())
            .chain(kept);
        let listed: BTreeSet<String> = listed.collect();
        if !state.knows_journal_key {
            state.knows_journal_key = mask_journal_key(store.as_ref(), secrets);
        }
        // What it does hold is masked all the same.
        let mut failure = check_agreement(index, store.kind(), &names).err();
        let names: BTreeSet<SecretName> = names.into_iter().collect();
        for gone in state.loaded.difference(&names) {
            if secrets.origin(gone) == Some(Origin::Stored) {
                secrets.remove(gone);
            }
        }
        state.loaded = &state.loaded & &names;
        for name in names {
            match load_one(store.as_ref(), &name, secrets) {
                Ok(()) => {
                    state.loaded.insert(name);
                }
                // One that is damaged hides none of the others.
                Err(error) if is_of_one(&error) => failure = failure.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        state.listed = Some(listed);
        failure.map_or(Ok(()), Err)
    }

    // A poisoned lock only means that another thread panicked while it loaded.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an error is about one value and not about the store.
fn is_of_one(error: &ToolError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadVault | ErrorCode::BadValue | ErrorCode::BadArguments
    )
}

fn load_one(store: &dyn Store, name: &SecretName, secrets: &Secrets) -> Result<(), ToolError> {
    let text = match store.get(&Key::of(name)) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(()),
        Err(error) => {
            // Two values under one name: neither can be used, and both must not be shown.
            if error.code == ErrorCode::BadVault {
                mask_all(store, name, secrets);
            }
            return Err(error);
        }
    };
    let Record { value, policy } = match record::split(name, &text) {
        Ok(record) => record,
        Err(error) => {
            // Nobody may use it any more, and it must not be shown.
            if secrets.origin(name) == Some(Origin::Stored) {
                secrets.remove(name);
            }
            let _ = secrets.mask_only(name, record::value_alone(&text));
            return Err(error);
        }
    };
    // What was given for this run, or when the user was asked, goes before what is kept; but what
    // is kept must not be shown either.
    if matches!(secrets.origin(name), Some(Origin::Given | Origin::Asked)) {
        return secrets.mask_only(name, value);
    }
    let known = secrets.get(name);
    if known.is_some_and(|known| known.expose() == value.expose()) {
        return Ok(());
    }
    let copy = value.duplicate();
    let inserted = secrets.insert_with(name.clone(), value, policy, Origin::Stored);
    if inserted.is_err() {
        // It cannot be used, for its name's case or the lack of place, and is masked all the same.
        let _ = secrets.mask_only(name, copy);
    }
    inserted
}

/// Lets redaction know everything that a store holds under a name.
fn mask_all(store: &dyn Store, name: &SecretName, secrets: &Secrets) {
    for text in store.every(&Key::of(name)).unwrap_or_default() {
        let value = match record::split(name, &text) {
            Ok(record) => record.value,
            Err(_) => record::value_alone(&text),
        };
        let _ = secrets.mask_only(name, value);
    }
}

/// Lets redaction know the key of the undo journal; returns whether there is one.
fn mask_journal_key(store: &dyn Store, secrets: &Secrets) -> bool {
    let name = SecretName::parse("KARYI_JOURNAL_KEY");
    match (name, store.get(&Key::journal())) {
        (Some(name), Ok(Some(key))) => secrets.mask_only(&name, key).is_ok(),
        _ => false,
    }
}

impl Source for Loader {
    fn refresh(&self, secrets: &Secrets, need: Need) {
        let mut state = self.state();
        let index = match Index::read(&self.directory) {
            Ok(index) => index,
            Err(error) => {
                state.failure = Some(error);
                return;
            }
        };
        // It may have been made since the last look.
        if state.has_new_key
            && let Some(store) = state.store.clone()
        {
            state.has_new_key = false;
            state.knows_journal_key = mask_journal_key(store.as_ref(), secrets);
        }
        let is_new = state.generation != Some(index.generation);
        let is_wanted = match need {
            Need::Listed => is_new && (state.store.is_some() || index.kept().next().is_some()),
            Need::Used => is_new || state.failure.is_some(),
        };
        if !is_wanted {
            return;
        }
        let result = self.load(&mut state, secrets, &index);
        state.generation = Some(index.generation);
        state.failure = result.err();
    }

    fn failure(&self) -> Option<ToolError> {
        self.state().failure.clone()
    }

    fn may_hold(&self, name: &str) -> bool {
        let state = self.state();
        let is_listed = |names: &BTreeSet<String>| names.contains(name);
        state.failure.is_some() && state.listed.as_ref().is_none_or(is_listed)
    }
}

#[cfg(test)]
mod tests;
