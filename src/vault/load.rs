//! Gives a running session what the store holds, and keeps it up to date.
//!
//! Every value is loaded, used or not, since redaction must know them all. The store is opened at
//! the first look that finds a name in the index or needs one; later looks compare the generation of
//! the index. A policy is read with its value: as long as the value stays the same, the session goes
//! by the policy it read first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::{FILE_NAME, Index};
use crate::vault::keep::{check_agreement, elsewhere};
use crate::vault::session::{self, Lack, LackKind, Need, Origin, Secrets, Source};
use crate::vault::store::journal::{self, JournalKey};
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Key, Kind, Store, disk};
use crate::vault::watch::Watch;

/// Opens a store; it may ask the user for a key.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Store>, ToolError> + Send + Sync>;

/// What there is of an encrypted file that no index lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlisted {
    /// No such file.
    #[default]
    Nothing,
    /// It is the store of the session.
    InUse,
    /// The session has another store, or none.
    NotInUse,
}

/// The store a session takes its values from.
pub struct Loader {
    directory: PathBuf,
    open: Open,
    /// The index, as it was read last.
    index: Watch,
    unlisted: Unlisted,
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
    /// Why the store could not be read.
    failure: Option<ToolError>,
    /// What is wrong with single values.
    damaged: BTreeMap<SecretName, Damage>,
    /// Names that the index lists for another store, and that store.
    elsewhere: Vec<(SecretName, Kind)>,
}

/// What is wrong with one value.
struct Damage {
    error: ToolError,
    /// Whether redaction knows everything that is kept under the name.
    is_masked: bool,
}

impl State {
    /// Whether another look may find more.
    fn is_incomplete(&self) -> bool {
        self.failure.is_some() || !self.damaged.is_empty()
    }

    fn lack_elsewhere(&self, names: &[(SecretName, Kind)]) -> Option<Lack> {
        lack_elsewhere(names, self.store.as_ref()?.kind())
    }

    /// Returns what is wrong with the values that redaction knows, or with those it does not know.
    fn damage(&self, is_masked: bool) -> Option<Lack> {
        let wanted = || {
            self.damaged
                .iter()
                .filter(|(_, d)| d.is_masked == is_masked)
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
        Self {
            index: Watch::new(directory.join(FILE_NAME)),
            directory,
            open,
            unlisted: Unlisted::default(),
            state: Mutex::default(),
        }
    }

    /// Says what there is of a file that no index lists. One in use is opened though no name is listed.
    #[must_use]
    pub fn beside(self, unlisted: Unlisted) -> Self {
        Self { unlisted, ..self }
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
        state.damaged.clear();
        let store = self.opened(state)?;
        state.elsewhere = elsewhere(index, store.kind());
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
        mask_strangers(store.as_ref(), secrets)?;
        // What it does hold is masked all the same.
        let failure = check_agreement(index, store.kind(), &names).err();
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
                Err(damage) if is_of_one(&damage.error) => {
                    state.damaged.insert(name, damage);
                }
                Err(damage) => return Err(damage.error),
            }
        }
        state.listed = Some(listed);
        failure.map_or(Ok(()), Err)
    }

    fn look(&self, state: &mut State, secrets: &Secrets, need: Need) -> bool {
        let index = match Index::read(&self.directory) {
            Ok(index) => index,
            Err(error) => {
                state.failure = Some(error);
                // Once it can be read again, the store is read again, too.
                state.generation = None;
                return true;
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
            Need::Listed => {
                let is_listed = state.store.is_some() || index.kept().next().is_some();
                is_new && (is_listed || self.unlisted == Unlisted::InUse)
            }
            Need::Used => is_new || state.is_incomplete(),
        };
        let is_settled = index.settled().is_some();
        if !is_wanted {
            return is_settled;
        }
        let result = self.load(state, secrets, &index);
        // While the store is being changed, what was read may be old: it is read again at the next look.
        state.generation = index.settled();
        state.failure = result.err();
        is_settled
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

fn load_one(store: &dyn Store, name: &SecretName, secrets: &Secrets) -> Result<(), Damage> {
    let text = match store.get(&Key::of(name)) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(()),
        Err(error) => {
            // Two values under one name: neither can be used, and both must not be shown.
            let is_bad = error.code == ErrorCode::BadVault;
            let is_masked = is_bad && mask_all(store, &Key::of(name), name, secrets);
            return Err(Damage { error, is_masked });
        }
    };
    let Record { value, policy } = match record::split(name, &text) {
        Ok(record) => record,
        Err(error) => {
            // Nobody may use it any more, and it must not be shown.
            if secrets.origin(name) == Some(Origin::Stored) {
                secrets.remove(name);
            }
            let masked = secrets.mask_only(name, record::value_alone(&text));
            let is_masked = masked.is_ok();
            return Err(Damage { error, is_masked });
        }
    };
    // What was given for this run, or when the user was asked, goes before what is kept; but what
    // is kept must not be shown either.
    if matches!(secrets.origin(name), Some(Origin::Given | Origin::Asked)) {
        let masked = secrets.mask_only(name, value);
        return masked.map_err(|error| Damage {
            error,
            is_masked: false,
        });
    }
    let known = secrets.get(name);
    if known.is_some_and(|known| known.expose() == value.expose()) {
        return Ok(());
    }
    let copy = value.duplicate();
    let inserted = secrets.insert_with(name.clone(), value, policy, Origin::Stored);
    inserted.map_err(|error| {
        // It cannot be used, for its name's case or the lack of place, and is masked all the same.
        let is_masked = secrets.mask_only(name, copy).is_ok();
        Damage { error, is_masked }
    })
}

/// Lets redaction know everything that a store holds under a key, as `name`. Returns whether it knows all of it.
fn mask_all(store: &dyn Store, key: &Key, name: &SecretName, secrets: &Secrets) -> bool {
    let Ok(every) = store.every(key) else {
        return false;
    };
    let mask = |text: &SecretValue| {
        let value = match record::split(name, text) {
            Ok(record) => record.value,
            Err(_) => record::value_alone(text),
        };
        secrets.mask_only(name, value).is_ok()
    };
    let masked = every.texts.iter().filter(|text| mask(text)).count();
    every.is_whole && masked == every.texts.len()
}

/// Lets redaction know what other programs put into the store under words that are no names. What is no text, or
/// too short, is none of what karyi masks.
fn mask_strangers(store: &dyn Store, secrets: &Secrets) -> Result<(), ToolError> {
    for (at, key) in store.strangers()?.iter().enumerate() {
        if let Some(name) = SecretName::parse(&format!("KARYI_KEYRING_{}", at + 1)) {
            mask_all(store, key, &name, secrets);
        }
    }
    Ok(())
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
        let failure = state.failure.clone().map(of_the_store);
        let unread = failure.or_else(|| state.damage(false));
        let elsewhere = state.lack_elsewhere(&state.elsewhere);
        let unlisted = lack_unlisted(self.unlisted);
        let all = [unread, elsewhere, unlisted, state.damage(true)];
        all.into_iter().flatten().collect()
    }

    fn lack_of(&self, name: &str) -> Option<Lack> {
        let state = self.state();
        let known = SecretName::parse(name);
        let damaged = known.and_then(|name| Some((state.damaged.get(&name)?, name)));
        if let Some((damage, name)) = damaged {
            return Some(Lack {
                kind: LackKind::Unusable,
                error: damage.error.clone(),
                names: vec![name],
            });
        }
        let there = state
            .elsewhere
            .iter()
            .find(|(other, _)| other.as_str() == name);
        if let Some(there) = there {
            return state.lack_elsewhere(std::slice::from_ref(there));
        }
        let is_listed = |names: &BTreeSet<String>| names.contains(name);
        let failure = state.failure.clone();
        failure
            .filter(|_| state.listed.as_ref().is_none_or(is_listed))
            .map(of_the_store)
    }
}

fn of_the_store(error: ToolError) -> Lack {
    Lack {
        kind: LackKind::Unread,
        error,
        names: Vec::new(),
    }
}

/// Returns what a session with a store of some kind lacks of another store.
fn lack_elsewhere(names: &[(SecretName, Kind)], kind: Kind) -> Option<Lack> {
    let (_, store) = names.first()?;
    let listed: Vec<String> = names
        .iter()
        .map(|(name, store)| format!("{name} ({store})"))
        .collect();
    let message = format!(
        "secrets are kept in another store than the one in use, which is {kind}: {}",
        session::listed(&listed)
    );
    let hint = format!(
        "use that store with --vault {store}, or have all in one: `karyi var migrate --to {store}`"
    );
    Some(Lack {
        kind: LackKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: names.iter().map(|(name, _)| name.clone()).collect(),
    })
}

/// Returns what a session lacks of an encrypted file that no index lists.
fn lack_unlisted(unlisted: Unlisted) -> Option<Lack> {
    let message = "the encrypted file vault.age is there, no index lists what it holds, and it is not the store in use";
    let hint = "use it with --vault age, and have it listed again with `karyi var doctor --repair --vault age` and \
                --age-identity FILE or its passphrase; or move it away";
    (unlisted == Unlisted::NotInUse).then(|| Lack {
        kind: LackKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: Vec::new(),
    })
}

/// A session without a store that lasts: it knows nothing of what the index lists.
pub struct Unopened {
    directory: PathBuf,
    kind: Kind,
    unlisted: Unlisted,
    elsewhere: Mutex<Vec<(SecretName, Kind)>>,
}

impl Unopened {
    /// Names the directory of the index, and what the session has instead of a store.
    #[must_use]
    pub fn new(directory: PathBuf, kind: Kind, unlisted: Unlisted) -> Self {
        Self {
            directory,
            kind,
            unlisted,
            elsewhere: Mutex::default(),
        }
    }

    fn names(&self) -> MutexGuard<'_, Vec<(SecretName, Kind)>> {
        self.elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Unopened {
    fn refresh(&self, _: &Secrets, _: Need) {
        // One that cannot be read lists nothing; `karyi var` tells of it.
        if let Ok(index) = Index::read(&self.directory) {
            *self.names() = elsewhere(&index, self.kind);
        }
    }

    fn lacks(&self) -> Vec<Lack> {
        let elsewhere = lack_elsewhere(&self.names(), self.kind);
        let all = [elsewhere, lack_unlisted(self.unlisted)];
        all.into_iter().flatten().collect()
    }

    fn lack_of(&self, name: &str) -> Option<Lack> {
        let names = self.names();
        let there = names.iter().find(|(other, _)| other.as_str() == name)?;
        lack_elsewhere(std::slice::from_ref(there), self.kind)
    }
}

#[cfg(test)]
mod tests;
