//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name or an open change in the index, or needs a name; later looks compare
//! the index. A policy is read with its value: as long as the value stays the same, the session goes by
//! the policy it read first. Nobody waits twice for a store that hangs: it is asked in the background until it answers.

mod retry;
mod texts;
mod unopened;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::index::{Chosen, FILE_NAME, Index};
use crate::vault::keep::{self, check_agreement, elsewhere};
use crate::vault::session::{Lack, LackKind, Need, Secrets, Source};
use crate::vault::store::journal::{self, JournalKey};
use crate::vault::store::os::Attended;
use crate::vault::store::{Key, Kind, Store, is_of_one};
use crate::vault::watch::Watch;
use retry::{Retry, is_hanging};
use texts::{Damage, load_one, mask_beside, mask_journal_key};
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
    /// Whether the user may be asked for something.
    pub attended: Attended,
}

/// The store a session takes its values from.
pub struct Loader {
    directory: PathBuf,
    open: OpenChosen,
    choose: Choose,
    /// The index, as it was read last.
    index: Watch,
    retry: Retry,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The store in use; nothing when nobody has chosen one yet.
    chosen: Option<Chosen>,
    unlisted: Unlisted,
    store: Option<Arc<dyn Store>>,
    /// The one that asks nobody, once it was needed.
    quiet: Option<Arc<dyn Store>>,
    /// The index when the store was read last, but for dates of use: as long as it stays so, what was read is true, or
    /// another try would not find more. Nothing when what was read may be old.
    seen: Option<Index>,
    /// Names that came from the store.
    loaded: BTreeSet<SecretName>,
    /// Whether the store that may ask the user let somebody wait until it was given up, and did not answer since. That
    /// call may hang still, behind a dialogue that nobody sees.
    is_given_up: bool,
    /// Whether the key of the undo journal was made since the store was read.
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
    /// Whether the store said which names it has.
    has_names: bool,
    /// All names of the store and the index, once the store could be listed and read but for single values.
    listed: Option<BTreeSet<String>>,
    /// What is wrong with single values.
    damaged: BTreeMap<SecretName, Damage>,
    /// What is wrong with what the store has beside secrets.
    strangers: Option<ToolError>,
    /// Names that the index lists for another store, and that store.
    elsewhere: Vec<(SecretName, Kind)>,
}

impl Found {
    /// Takes in what a later look found that failed.
    fn add(&mut self, later: Self) {
        if later.listed.is_some() {
            *self = later;
        } else {
            self.damaged.extend(later.damaged);
            self.strangers = later.strangers.or(self.strangers.take());
        }
    }
}

/// What is known of a change of the store before that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// None is open, or it can be neither ended nor settled from here.
    Settled,
    /// One was broken off.
    BrokenOff,
    /// One may be under way.
    UnderWay,
}

/// Returns an index without the dates that every run changes.
fn without_use(mut index: Index) -> Index {
    for listed in index.names.values_mut() {
        listed.used = None;
    }
    index
}

impl State {
    /// Keeps in mind why the store could not be read.
    fn note(&mut self, error: ToolError, attended: Attended) {
        // Where nobody was asked, what came of asking still holds.
        let is_unasked = attended == Attended::No
            && matches!(
                error.code,
                ErrorCode::KeyringLocked | ErrorCode::SecretPromptUnavailable
            );
        let was_asked = |old: &ToolError| {
            !matches!(
                old.code,
                ErrorCode::KeyringTimeout | ErrorCode::KeyringUnavailable
            )
        };
        if !(is_unasked && self.failure.as_ref().is_some_and(was_asked)) {
            self.failure = Some(error);
        }
    }

    /// Whether something is known of a store that may be another one by now.
    fn has_old(&self) -> bool {
        self.failure.is_some() || !self.loaded.is_empty()
    }

    /// Whether another look may find more.
    fn is_incomplete(&self) -> bool {
        self.failure.is_some() || !self.found.damaged.is_empty()
    }

    /// Whether the user was asked in vain during the change that has ended with an index.
    fn was_asked_before(&self, index: &Index) -> bool {
        let ends = |seen: &Index| {
            seen.settled().is_none() && seen.generation.wrapping_add(1) == index.generation
        };
        let is_answer = |failure: &ToolError| {
            matches!(
                failure.code,
                ErrorCode::Declined
                    | ErrorCode::WrongKey
                    | ErrorCode::KeyringLocked
                    | ErrorCode::KeyringTimeout
            )
        };
        self.failure.as_ref().is_some_and(is_answer) && self.seen.as_ref().is_some_and(ends)
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
            retry: Retry::new(limits::VAULT_RETRY_PAUSE),
            state: Mutex::default(),
        }
    }

    /// Says which store is in use. Another one than before is opened in its place. A file that no index lists and that is
    /// in use is opened though no name is listed.
    #[must_use]
    pub fn chosen_by(self, choose: Choose) -> Self {
        Self { choose, ..self }
    }

    /// Says how long a store that could not be read is left alone.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self {
            retry: Retry::new(pause),
            ..self
        }
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
        self.opened(
            &mut state,
            &Opening {
                index: &index,
                secrets,
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

    /// Goes by the store that an index names: one that was opened before gives way to it.
    fn choose(&self, state: &mut State, index: &Index) {
        let (chosen, unlisted) = (self.choose)(index);
        state.unlisted = unlisted;
        if state.chosen != chosen {
            (state.store, state.quiet, state.seen) = (None, None, None);
            state.is_given_up = false;
            self.retry.not_again();
            state.chosen = chosen;
        }
    }

    /// Reads the store and keeps in mind what came of it.
    fn load(&self, state: &mut State, opening: &Opening<'_>) {
        // Only what was broken off before the store is read is over when it has answered.
        let change = self.change(opening.index);
        let (mut found, start) = (Found::default(), Instant::now());
        match self.read(state, &mut found, opening) {
            Ok(()) => {
                match opening.attended {
                    Attended::Yes => state.is_given_up = false,
                    Attended::No => self.come_back(state, opening),
                }
                self.retry.not_again();
                // Whoever read no store that lasts ends no change of one.
                let lasts = |store: &Arc<dyn Store>| store.kind().is_persistent();
                state.seen = match state.store.as_ref().is_none_or(lasts) {
                    true => self.settled(opening.index, change, &found),
                    false => Some(opening.index.clone()),
                };
                state.failure = None;
                state.found = found;
            }
            Err(error) => {
                let (took, has_names) = (start.elapsed(), found.has_names);
                if opening.attended == Attended::Yes {
                    state.is_given_up = is_hanging(&error, took);
                    state.found = found;
                } else {
                    state.found.add(found);
                }
                state.seen = Some(opening.index.clone());
                if is_hanging(&error, took) {
                    self.once_it_answers(state, opening, &error, has_names);
                } else if !self.retry.hangs() {
                    self.retry.after(&error);
                }
                state.note(error, opening.attended);
            }
        }
    }

    /// Uses the store again that may ask the user, after the other one could be read.
    fn come_back(&self, state: &mut State, opening: &Opening<'_>) {
        state.quiet = None;
        if std::mem::take(&mut state.is_given_up) {
            state.store = None;
        }
        let opening = Opening {
            attended: Attended::Yes,
            ..*opening
        };
        // That asks nothing.
        let _ = self.opened(state, &opening);
    }

    /// Has a store that let somebody wait tried again once it answers. One that does, and is too slow for what is asked
    /// of it then, is left alone for longer.
    fn once_it_answers(
        &self,
        state: &mut State,
        opening: &Opening<'_>,
        error: &ToolError,
        has_names: bool,
    ) {
        if self.retry.hangs() {
            return;
        }
        let is_in_vain = opening.attended == Attended::No && self.retry.has_answered();
        let opening = Opening {
            attended: Attended::No,
            ..*opening
        };
        match self.opened(state, &opening) {
            Ok(store) => self
                .retry
                .once_it_answers(store, error, has_names || is_in_vain),
            Err(_) => self.retry.after(error),
        }
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
        let (names, locked) = store.list_open()?;
        found.has_names = true;
        let all = names.iter().cloned().chain(index.kept());
        let listed: BTreeSet<String> = all.map(|name| name.to_string()).collect();
        // What it does hold is masked all the same.
        let failure = check_agreement(index, store.kind(), &names).err();
        let names: BTreeSet<SecretName> = names.into_iter().collect();
        // What is not there may be locked.
        if locked.is_none() {
            for gone in state.loaded.difference(&names) {
                secrets.remove_stored(gone);
            }
            state.loaded = &state.loaded & &names;
        }
        let keys: Vec<Key> = names.iter().map(Key::of).collect();
        let mut lost = locked;
        for (name, got) in names.into_iter().zip(store.get_each(&keys)) {
            match load_one(store.as_ref(), &name, got, secrets) {
                Ok(()) => {
                    state.loaded.insert(name);
                }
                // One that is damaged hides none of the others.
                Err(damage) if is_of_one(&damage.error) => {
                    found.damaged.insert(name, damage);
                }
                // What came all the same is masked.
                Err(damage) => drop(lost.get_or_insert(damage.error)),
            }
        }
        // It comes last: other programs may have made it hang. The key of the journal may be another one by now.
        let beside = mask_beside(store.as_ref(), secrets);
        found.strangers = beside.damage;
        if let Some(error) = lost.or(beside.lost) {
            return Err(error);
        }
        found.listed = Some(listed);
        failure.map_or(Ok(()), Err)
    }

    /// Reads what is to be read. Returns whether another look is needed only when the index changes, or the store
    /// failed.
    fn look(&self, state: &mut State, secrets: &Secrets, need: Need) -> bool {
        let index = match Index::read(&self.directory) {
            Ok(index) => without_use(index),
            Err(error) => {
                state.unreadable = Some(error);
                // Once it can be read again, the store is read again, too.
                state.seen = None;
                return true;
            }
        };
        state.unreadable = None;
        self.choose(state, &index);
        // It may have been made since the last look.
        if state.has_new_key
            && let Some(store) = state.store.clone()
        {
            state.has_new_key = mask_journal_key(store.as_ref(), secrets).is_err();
        }
        let Some(attended) = self.attended(state, &index, need) else {
            return true;
        };
        let opening = Opening {
            index: &index,
            secrets,
            attended,
        };
        self.load(state, &opening);
        state.seen.is_some()
    }

    /// Returns who may be asked when the store is read now; nothing when it is not read.
    fn attended(&self, state: &State, index: &Index, need: Need) -> Option<Attended> {
        let is_new = state.seen.as_ref() != Some(index);
        let is_listed = state.store.is_some()
            // Also what may be there or not, since its keeping or removal broke off.
            || !index.names.is_empty()
            || index.settled().is_none()
            || state.has_old()
            || state.unlisted == Unlisted::InUse;
        match need {
            // Nobody waits again, but for a moment when somebody could change what is kept.
            _ if self.retry.hangs() => is_new.then_some(Attended::No),
            // The store that was given up would be given up at once, whatever another one can say by now. And who did
            // not answer for the beginning of a change is not asked again for its end.
            Need::Listed if is_new && is_listed => {
                let is_unasked = state.is_given_up || state.was_asked_before(index);
                Some(if is_unasked {
                    Attended::No
                } else {
                    Attended::Yes
                })
            }
            Need::Used if is_new || state.is_incomplete() => Some(Attended::Yes),
            // What came back by itself is masked from now on; a question would be one too many.
            Need::Listed => self.retry.is_due().then_some(Attended::No),
            Need::Used => None,
        }
    }

    /// Returns what is known of a change of the store by an index that was read.
    fn change(&self, index: &Index) -> Change {
        if index.settled().is_some() {
            return Change::Settled;
        }
        match Index::is_broken_off(&self.directory, index.generation) {
            Ok(true) => Change::BrokenOff,
            // A file system that takes no writing is hardly changed by others, and to read the store at each look would
            // not end here. A change that others end shows in the index all the same.
            Err(error) if error.code == ErrorCode::ReadOnly => Change::Settled,
            Ok(false) | Err(_) => Change::UnderWay,
        }
    }

    /// Returns the index that says of what was read now whether it is still true. A change of the store that was broken
    /// off before ends here, once the store has answered: what an ended program had asked of it is done or never will
    /// be, and one that goes on keeps the lock as long as a call hangs that it gave up. Nothing when somebody may have
    /// changed the store meanwhile: what was read may be old.
    fn settled(&self, read: &Index, change: Change, found: &Found) -> Option<Index> {
        let mut read = read.clone();
        let holds_any = || found.listed.as_ref().is_some_and(|all| !all.is_empty());
        match change {
            // The open change is all that has runs look for what no name is listed of: it ends when that is listed.
            Change::BrokenOff if read.names.is_empty() && holds_any() => Some(read),
            Change::Settled => Some(read),
            Change::UnderWay => None,
            Change::BrokenOff => {
                let now = Index::settle(&self.directory, read.generation);
                read.generation = read.generation.wrapping_add(1);
                let now = now.ok().flatten().map(without_use);
                now.filter(|now| *now == read)
            }
        }
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
        self.index.is_behind() || self.retry.is_due()
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
