//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name in the index or needs one; later looks compare the generation of
//! the index. A policy is read with its value: as long as the value stays the same, the session goes
//! by the policy it read first.

mod texts;
mod unopened;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::index::{FILE_NAME, Index};
use crate::vault::keep::{self, check_agreement, elsewhere};
use crate::vault::session::{Lack, LackKind, Need, Secrets, Source};
use crate::vault::store::journal::{self, JournalKey};
use crate::vault::store::os::Attended;
use crate::vault::store::{Kind, Store};
use crate::vault::watch::Watch;
use texts::{Damage, is_of_one, load_one, mask_journal_key, mask_strangers};
use unopened::{lack_elsewhere, lack_unlisted, of_the_store};

pub use unopened::{Unlisted, Unopened};

/// Opens a store; it may ask the user for a key.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// Opens the store that an index names.
pub type OpenChosen = Box<dyn Fn(&Opening<'_>) -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// What a store is opened with.
pub struct Opening<'a> {
    /// The index as it is now.
    pub index: &'a Index,
    /// Its generation, when what is read stays true as long as that does.
    pub generation: Option<u64>,
    /// Who is to know what opens the store, which must not be shown.
    pub secrets: &'a Secrets,
    /// Whether the user may be asked for something.
    pub attended: Attended,
}

/// The store a session takes its values from.
pub struct Loader {
    directory: PathBuf,
    open: OpenChosen,
    /// The index, as it was read last.
    index: Watch,
    unlisted: Unlisted,
    /// How long a store that could not be read is left alone.
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    store: Option<Arc<dyn Store>>,
    /// The one that asks nobody, once it was needed.
    quiet: Option<Arc<dyn Store>>,
    /// The generation of the index when the store was read last.
    generation: Option<u64>,
    /// When that was.
    looked: Option<Instant>,
    /// Names that came from the store.
    loaded: BTreeSet<SecretName>,
    /// Whether redaction knows the key of the undo journal.
    knows_journal_key: bool,
    /// Whether it was made since.
    has_new_key: bool,
    /// Why the index cannot be read now.
    unreadable: Option<ToolError>,
    /// Why the store could not be read.
    failure: Option<ToolError>,
    found: Found,
}

/// What one look at the store found.
#[derive(Default)]
struct Found {
    /// All names of the store and the index, once the store could be listed and read but for single values.
    listed: Option<BTreeSet<String>>,
    /// What is wrong with single values.
    damaged: BTreeMap<SecretName, Damage>,
    /// What is wrong with entries of other programs.
    strangers: Option<ToolError>,
    /// Names that the index lists for another store, and that store.
    elsewhere: Vec<(SecretName, Kind)>,
}

impl State {
    /// Whether another look may find more.
    fn is_incomplete(&self) -> bool {
        self.failure.is_some() || !self.found.damaged.is_empty()
    }

    fn lack_elsewhere(&self, names: &[(SecretName, Kind)]) -> Option<Lack> {
        lack_elsewhere(names, self.store.as_ref()?.kind())
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
            unlisted: Unlisted::default(),
            pause: limits::VAULT_RETRY_PAUSE,
            state: Mutex::default(),
        }
    }

    /// Says what there is of a file that no index lists. One in use is opened though no name is listed.
    #[must_use]
    pub fn beside(self, unlisted: Unlisted) -> Self {
        Self { unlisted, ..self }
    }

    /// Says how long a store that could not be read is left alone.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Opens the store whether it is needed or not, for what is kept in it beside values.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn store(&self) -> Result<Arc<dyn Store>, ToolError> {
        let mut state = self.state();
        let index = Index::read(&self.directory)?;
        self.opened(
            &mut state,
            &Opening {
                index: &index,
                generation: None,
                secrets: &Secrets::default(),
                attended: Attended::Yes,
            },
        )
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
        let key = keep::journal_key(&self.directory, &store)?;
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

    fn opened(
        &self,
        state: &mut State,
        opening: &Opening<'_>,
    ) -> Result<Arc<dyn Store>, ToolError> {
        let opened = match opening.attended {
            Attended::Yes => &mut state.store,
            Attended::No => &mut state.quiet,
        };
        if let Some(store) = opened {
            return Ok(Arc::clone(store));
        }
        let store = (self.open)(opening)?;
        *opened = Some(Arc::clone(&store));
        Ok(store)
    }

    /// Reads the store and keeps in mind what came of it.
    fn load(&self, state: &mut State, opening: &Opening<'_>) {
        let mut found = Found::default();
        let result = self.read(state, &mut found, opening);
        state.looked = Some(Instant::now());
        if opening.attended == Attended::No {
            // What the user was told when they could be asked still holds.
            if result.is_err() {
                return;
            }
            state.quiet = None;
            let opening = Opening {
                attended: Attended::Yes,
                ..*opening
            };
            // From now on the one that may ask is used again; opening it asks nothing.
            let _ = self.opened(state, &opening);
        }
        state.generation = opening.generation;
        state.failure = result.err();
        state.found = found;
    }

    fn read(
        &self,
        state: &mut State,
        found: &mut Found,
        opening: &Opening<'_>,
    ) -> Result<(), ToolError> {
        let (index, secrets) = (opening.index, opening.secrets);
        let store = self.opened(state, opening)?;
        found.elsewhere = elsewhere(index, store.kind());
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
        found.strangers = mask_strangers(store.as_ref(), secrets)?;
        // What it does hold is masked all the same.
        let failure = check_agreement(index, store.kind(), &names).err();
        let names: BTreeSet<SecretName> = names.into_iter().collect();
        for gone in state.loaded.difference(&names) {
            secrets.remove_stored(gone);
        }
        state.loaded = &state.loaded & &names;
        for name in names {
            match load_one(store.as_ref(), &name, secrets) {
                Ok(()) => {
                    state.loaded.insert(name);
                }
                // One that is damaged hides none of the others.
                Err(damage) if is_of_one(&damage.error) => {
                    found.damaged.insert(name, damage);
                }
                Err(damage) => return Err(damage.error),
            }
        }
        found.listed = Some(listed);
        failure.map_or(Ok(()), Err)
    }

    /// Reads what is to be read. Returns whether the index says that nobody is changing the store.
    fn look(&self, state: &mut State, secrets: &Secrets, need: Need) -> bool {
        let index = match Index::read(&self.directory) {
            Ok(index) => index,
            Err(error) => {
                state.unreadable = Some(error);
                // Once it can be read again, the store is read again, too.
                state.generation = None;
                return true;
            }
        };
        state.unreadable = None;
        // It may have been made since the last look.
        if state.has_new_key
            && let Some(store) = state.store.clone()
        {
            state.has_new_key = false;
            state.knows_journal_key = mask_journal_key(store.as_ref(), secrets);
        }
        let (index, is_settled) = self.settled(index);
        // Another file may have the same generation by chance.
        let is_other = self.index.is_behind() && state.failure.is_none();
        let is_new = is_other || state.generation != Some(index.generation);
        let is_listed = state.store.is_some()
            || index.kept().next().is_some()
            || self.unlisted == Unlisted::InUse;
        let attended = match need {
            Need::Listed if is_new && is_listed && (is_settled || state.failure.is_none()) => {
                Attended::Yes
            }
            Need::Used if is_new || state.is_incomplete() => Attended::Yes,
            // What came back by itself is masked from now on; a question would be one too many.
            Need::Listed if self.is_due(state) => Attended::No,
            Need::Listed | Need::Used => return is_settled,
        };
        let opening = Opening {
            index: &index,
            // While the store is being changed, what is read may be old: it is read again at the next look.
            generation: is_settled.then_some(index.generation),
            secrets,
            attended,
        };
        self.load(state, &opening);
        is_settled
    }

    /// Returns the index when nobody is changing the store, and whether that is so. Where nothing can be written
    /// nobody changes anything.
    fn settled(&self, index: Index) -> (Index, bool) {
        if index.settled().is_some() {
            return (index, true);
        }
        match Index::settle(&self.directory) {
            Ok(Some(index)) => (index, true),
            Ok(None) => (index, false),
            Err(_) => (index, true),
        }
    }

    /// Whether a store that could not be read may be there by now.
    fn is_due(&self, state: &State) -> bool {
        let pause = match state.failure.as_ref().map(|error| error.code) {
            None => return false,
            // That takes seconds each time.
            Some(ErrorCode::KeyringTimeout | ErrorCode::WrongKey) => {
                self.pause.saturating_mul(limits::VAULT_SLOW_RETRY)
            }
            Some(_) => self.pause,
        };
        state.looked.is_none_or(|then| then.elapsed() >= pause)
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
        let unlisted = lack_unlisted(self.unlisted);
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
