//! The store in the keyring of the operating system: the secret service over D-Bus on Linux, the
//! Keychain on macOS, the Credential Manager on Windows.
//!
//! Everything is asked through `keyring-core`, by a thread with a deadline. Where nobody can unlock
//! the keyring it is not asked to: a locked one is told so at once. The errors of that crate may hold
//! what the keyring holds, so they are mapped by kind and never printed with `Debug`.

mod asking;
#[cfg(all(unix, not(target_os = "macos")))]
mod bus;
mod failures;
#[cfg(all(unix, not(target_os = "macos")))]
mod named;
mod patience;
mod platform;
mod progress;
#[cfg(all(unix, not(target_os = "macos")))]
mod service;
mod worker;

pub use patience::Notice;
pub(super) use patience::Patience;
pub use platform::Family;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keyring::Error;
use keyring_core::Entry;
use keyring_core::api::CredentialStore;
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::store::disk::Guard;
use crate::vault::store::{Every, Got, Key, Kind, Store, is_of_one};
use asking::{Ahead, Known, Unlock};
use failures::{failure, locked_meanwhile, others_locked};
use platform::Shared;
use worker::Worker;

/// An entry, and what it is kept under, if anything.
type Kept = (Option<String>, Entry);

/// Whether somebody is there who can unlock the keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// A user, who gets a minute.
    Yes,
    /// Nobody: a locked keyring is an error.
    No,
}

/// Values in the keyring.
pub struct OsStore {
    service: String,
    attended: Attended,
    /// Whether the user is there, and may not be asked now.
    is_quiet: bool,
    deadline: Duration,
    family: Family,
    /// The keyring, where it is not the one of this system.
    given: Option<Arc<CredentialStore>>,
    /// A keyring that asks its user about each program takes this one and the quiet one for the same.
    shared: Shared,
    worker: Worker<Connection>,
}

/// What is done with the keyring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Change,
}

/// The connection to the keyring.
#[derive(Default)]
struct Connection {
    /// The keyring, once it was opened.
    store: Option<Arc<CredentialStore>>,
    /// When it was last seen to be unlocked.
    checked: Option<Instant>,
}

impl Connection {
    fn open(&mut self, shared: &Shared, unlock: Unlock) -> Result<Arc<CredentialStore>, ToolError> {
        // Without it the next call connects again, as after a keyring that was started anew.
        let store = match self.store.take() {
            Some(store) => store,
            None => platform::open(shared)?,
        };
        platform::may_unlock(&*store, unlock);
        let is_fresh = |then: Instant| then.elapsed() < limits::KEYRING_CHECK_AGE;
        if !self.checked.is_some_and(is_fresh) {
            let checked = platform::check(&*store, unlock);
            let is_there = |error: &ToolError| error.code == ErrorCode::KeyringLocked;
            self.store =
                Some(Arc::clone(&store)).filter(|_| checked.as_ref().err().is_none_or(is_there));
            checked?;
            self.checked = Some(Instant::now());
        }
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }
}

impl OsStore {
    /// Makes a store under a service name. Nothing is opened yet.
    #[must_use]
    pub fn new(service: impl Into<String>, attended: Attended) -> Self {
        let deadline = match attended {
            Attended::Yes => limits::KEYRING_UNLOCK_TIMEOUT,
            Attended::No => limits::KEYRING_TIMEOUT,
        };
        Self::with_deadline(service, attended, deadline)
    }

    /// Makes a store whose calls may take so long each.
    #[must_use]
    pub fn with_deadline(
        service: impl Into<String>,
        attended: Attended,
        deadline: Duration,
    ) -> Self {
        Self {
            service: service.into(),
            attended,
            is_quiet: false,
            deadline,
            family: Family::HERE,
            given: None,
            shared: Shared::default(),
            worker: Worker::new(deadline),
        }
    }

    /// Makes a store over another keyring than the one of this system. It asks nobody to unlock it.
    #[must_use]
    pub fn over(service: impl Into<String>, family: Family, keyring: Arc<CredentialStore>) -> Self {
        Self {
            family,
            given: Some(keyring),
            ..Self::new(service, Attended::No)
        }
    }

    /// Has somebody told when the keyring lets a user wait.
    #[must_use]
    pub fn telling(mut self, notice: Notice) -> Self {
        self.worker.patience.notice = Some(notice);
        self
    }

    /// Returns what the entries are kept under, each once and sorted. None of them may be locked.
    fn users(&self) -> Result<Vec<String>, ToolError> {
        let query = self.family.query(&self.service, None);
        let found = self.with(move |store, _| search(store, &query))?;
        let entries = self.with_users(found)?;
        Ok(sorted(entries.into_iter().filter_map(|(user, _)| user)))
    }

    /// Returns the entries that can be read, with what they are kept under, if anything, and why others cannot. No value
    /// is read.
    fn open_entries(&self) -> Result<(Vec<Kept>, Option<ToolError>), ToolError> {
        let query = self.family.query(&self.service, None);
        let (found, has_locked) = self.with(move |store, _| open(store, &query))?;
        let told = self.each(found, |entry, service| {
            Ok(match check(&entry) {
                Ok(()) => Ok((user_of(&entry, service), entry)),
                Err(error) => Err(failure(error)),
            })
        })?;
        let (mut kept, mut lost) = (Vec::new(), has_locked.then(others_locked));
        for one in told {
            match one {
                Ok(one) => kept.push(one),
                Err(error) => drop(lost.get_or_insert(error)),
            }
        }
        self.note(lost.as_ref());
        Ok((kept, lost))
    }

    fn with_users(&self, entries: Vec<Entry>) -> Result<Vec<Kept>, ToolError> {
        self.each(entries, |entry, service| {
            check(&entry)?;
            Ok((user_of(&entry, service), entry))
        })
    }

    /// Does something with each of many things of the keyring, some at a time: they share a deadline.
    fn each<A: Send + 'static, B: Send + 'static>(
        &self,
        all: Vec<A>,
        task: fn(A, &str) -> Result<B, Error>,
    ) -> Result<Vec<B>, ToolError> {
        let (mut all, mut done) = (all.into_iter(), Vec::new());
        loop {
            let part: Vec<A> = all.by_ref().take(limits::KEYRING_PART).collect();
            if part.is_empty() {
                return Ok(done);
            }
            done.extend(self.with(move |_, service| {
                let part = part.into_iter().map(|one| task(one, service));
                part.collect::<Result<Vec<B>, Error>>()
            })?);
        }
    }

    /// Returns the text under a key, or all there is to say of it.
    fn get_alone(&self, key: &Key) -> Got {
        let user = key.as_str().to_owned();
        let read = move |store: &Arc<CredentialStore>, service: &str| match store
            .build(service, &user, None)?
            .get_secret()
        {
            Ok(bytes) => Ok(Some(Zeroizing::new(bytes))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        };
        self.with(read)?
            .map(|bytes| text_under(key, bytes))
            .transpose()
    }

    /// Has the next call connect again where a keyring failed that may have been started anew.
    fn note(&self, lost: Option<&ToolError>) {
        if lost.is_some_and(|error| error.code == ErrorCode::KeyringUnavailable) {
            // Who hangs is left to itself by now.
            let _ = self.worker.run(|connection, _| {
                *connection = Connection::default();
                Ok(())
            });
        }
    }

    /// Looks for something in the keyring, in its thread.
    fn with<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Arc<CredentialStore>, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.call(Does::Read, task)
    }

    /// Does something with the keyring, in its thread. What it is to change it does not change any more once the
    /// deadline is over.
    fn call<T: Send + 'static>(
        &self,
        does: Does,
        task: impl FnOnce(&Arc<CredentialStore>, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        let service = self.service.clone();
        let (given, shared) = (self.given.clone(), self.shared.clone());
        let unlock = match self.attended {
            Attended::Yes => Unlock::May,
            Attended::No => Unlock::MustNot,
        };
        let result = self.worker.run(move |connection, progress| {
            let store = match given {
                Some(given) => given,
                None => connection.open(&shared, unlock)?,
            };
            if does == Does::Change {
                progress.begin()?;
            }
            let result = task(&store, &service);
            if matches!(result, Err(Error::PlatformFailure(_))) {
                // The keyring may have been started anew; the next call connects again.
                *connection = Connection::default();
            }
            result.map_err(failure)
        });
        result.map_err(|error| match error.code {
            ErrorCode::KeyringLocked if self.is_quiet => locked_meanwhile(),
            _ => error,
        })
    }
}

impl Store for OsStore {
    fn kind(&self) -> Kind {
        Kind::Os
    }

    fn quiet(&self) -> Option<Arc<dyn Store>> {
        // With a thread of its own: that of this one may be busy with a dialogue.
        (self.attended == Attended::Yes).then(|| {
            let deadline = self.deadline.min(limits::KEYRING_TIMEOUT);
            let quiet = Self::with_deadline(&self.service, Attended::No, deadline);
            Arc::new(Self {
                is_quiet: true,
                shared: self.shared.clone(),
                ..quiet
            }) as Arc<dyn Store>
        })
    }

    fn hold(&self, lock: Guard) {
        self.worker.patience.hold(lock);
    }

    fn probe(&self) -> Result<(), ToolError> {
        let key = Key::journal();
        let query = self.family.query(&self.service, None);
        self.with(move |store, service| {
            // Looking for something unlocks the keyring and reads nothing.
            store.build(service, key.as_str(), None).map(drop)?;
            search(store, &query).map(drop)
        })
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        let users = self.users()?;
        let names = users.iter().filter_map(|user| SecretName::parse(user));
        Ok(names.collect())
    }

    fn list_open(&self) -> Result<(Vec<SecretName>, Option<ToolError>), ToolError> {
        let (entries, lost) = self.open_entries()?;
        let users = sorted(entries.into_iter().filter_map(|(user, _)| user));
        let names = users.iter().filter_map(|user| SecretName::parse(user));
        Ok((names.collect(), lost))
    }

    fn strangers(&self) -> Result<Vec<Key>, ToolError> {
        let users = self.users()?;
        let keys = users.iter().filter_map(|user| Key::of_stranger(user));
        Ok(keys.collect())
    }

    fn get(&self, key: &Key) -> Got {
        let mut each = self.get_each(std::slice::from_ref(key));
        each.next().unwrap_or(Ok(None))
    }

    fn get_each<'a>(&'a self, keys: &'a [Key]) -> Box<dyn Iterator<Item = Got> + 'a> {
        let parts = keys.chunks(limits::KEYRING_PART);
        Box::new(parts.flat_map(move |part| {
            let users: Vec<String> = part.iter().map(|key| key.as_str().to_owned()).collect();
            let known = Known::default();
            let filled = known.clone();
            let mut asked = self.with(move |store, service| {
                platform::ahead(&**store, service, &users, &filled);
                Ok(())
            });
            part.iter().enumerate().map(move |(at, key)| {
                // What came before the deadline counts, whatever came of the others.
                match (known.take(at), &asked) {
                    (Some(Ahead::Nothing), _) => Ok(None),
                    (Some(Ahead::Value(bytes)), _) => text_under(key, bytes).map(Some),
                    (Some(Ahead::Unclear) | None, Ok(())) => {
                        let got = self.get_alone(key);
                        // Others may be unlocked.
                        let is_of_all = |error: &&ToolError| {
                            !is_of_one(error) && error.code != ErrorCode::KeyringLocked
                        };
                        let lost = got.as_ref().err().filter(is_of_all);
                        asked = lost.cloned().map_or(Ok(()), Err);
                        got
                    }
                    (Some(Ahead::Unclear) | None, Err(error)) => Err(error.clone()),
                }
            })
        }))
    }

    fn every(&self, key: &Key) -> Result<Every, ToolError> {
        let user = key.as_str().to_owned();
        let query = self.family.query(&self.service, Some(&user));
        let every = self.with(move |store, service| {
            let (entries, has_locked) = open(store, &query)?;
            for entry in &entries {
                check(entry)?;
            }
            let is_wanted = |entry: &Entry| user_of(entry, service).is_some_and(|of| of == user);
            let mut every = read_all(entries.into_iter().filter(is_wanted).collect());
            every.lost = every.lost.or(has_locked.then(others_locked));
            Ok(every)
        })?;
        self.note(every.lost.as_ref());
        Ok(every)
    }

    fn foreign(&self) -> Result<Vec<Every>, ToolError> {
        let mut by_user: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for (user, entry) in self.open_entries()?.0 {
            // One without a user is no less a value that may be shown.
            let user = user.unwrap_or_default();
            if Key::of_stranger(&user).is_some() {
                by_user.entry(user).or_default().push(entry);
            }
        }
        // What came before the deadline counts, whatever comes of the others.
        let came: Arc<Mutex<Vec<Every>>> = Arc::default();
        let mut groups = by_user.into_values();
        let lost = loop {
            let part: Vec<_> = groups.by_ref().take(limits::KEYRING_PART).collect();
            if part.is_empty() {
                break None;
            }
            let to = Arc::clone(&came);
            let read = self.with(move |_, _| {
                part.into_iter()
                    .map(read_all)
                    .for_each(|every| locked(&to).push(every));
                Ok(())
            });
            if let Err(error) = read {
                break Some(error);
            }
        };
        let mut all = std::mem::take(&mut *locked(&came));
        all.iter().for_each(|every| self.note(every.lost.as_ref()));
        all.extend(lost.map(|error| Every {
            lost: Some(error),
            ..Every::default()
        }));
        Ok(all)
    }

    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        let (user, text) = (key.as_str().to_owned(), text.duplicate());
        self.call(Does::Change, move |store, service| {
            let entry = store.build(service, &user, None)?;
            entry.set_secret(text.expose().as_bytes())
        })
    }

    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        let user = key.as_str().to_owned();
        self.call(Does::Change, move |store, service| {
            match store.build(service, &user, None)?.delete_credential() {
                Ok(()) => Ok(true),
                Err(Error::NoEntry) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }
}

/// Checks of an entry without a user that the keyring said so.
fn check(entry: &Entry) -> Result<(), Error> {
    match entry.get_specifiers() {
        Some(_) => Ok(()),
        None => platform::check_entry(entry),
    }
}

/// Reads entries. One that cannot be read, or is no text, hides none of the others; one that went since it was found is
/// none.
fn read_all(entries: Vec<Entry>) -> Every {
    let mut every = Every::default();
    for entry in entries {
        match entry.get_secret() {
            Ok(bytes) => match text_of(bytes) {
                Some(text) => every.texts.push(text),
                None => every.is_whole = false,
            },
            Err(Error::NoEntry) => {}
            Err(error) => match failure(error) {
                error if is_of_one(&error) => every.is_whole = false,
                error => drop(every.lost.get_or_insert(error)),
            },
        }
    }
    every
}

// A poisoned lock only means that another thread panicked between two entries.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns everything that fits and is not locked, and whether anything else is, without reading a value.
fn open(
    store: &Arc<CredentialStore>,
    query: &HashMap<&'static str, String>,
) -> Result<(Vec<Entry>, bool), Error> {
    let wanted = query.iter().map(|(key, text)| (*key, text.as_str()));
    match platform::open_entries(&**store, &wanted.collect()) {
        Err(Error::NoEntry) => Ok((Vec::new(), false)),
        found => found,
    }
}

/// Returns words each once, in their order.
fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    words.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Returns the text under a key, which is wiped if it is none.
fn text_under(key: &Key, mut bytes: Zeroizing<Vec<u8>>) -> Result<SecretValue, ToolError> {
    if let Some(text) = text_of(std::mem::take(&mut *bytes)) {
        return Ok(text);
    }
    let name = key.as_str();
    let message = format!("what the keyring holds under {name} is no text");
    let hint =
        format!("keep a text with `karyi var set {name}`, or remove it with `karyi var rm {name}`");
    Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint))
}

/// Returns bytes as a text; those that are none are wiped.
fn text_of(bytes: Vec<u8>) -> Option<SecretValue> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(SecretValue::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            None
        }
    }
}

/// Returns what an entry under a service name is kept under, if anything. The Credential Manager has one name for both, which
/// its store parts at the last dot, though the service may have one.
fn user_of(entry: &Entry, service: &str) -> Option<String> {
    let (of, user) = entry.get_specifiers()?;
    let whole = format!("{user}.{of}");
    let user = whole.strip_suffix(service)?.strip_suffix('.');
    user.map(str::to_owned)
}

/// Returns everything that fits, without reading a value.
fn search(
    store: &Arc<CredentialStore>,
    query: &HashMap<&'static str, String>,
) -> Result<Vec<Entry>, Error> {
    let wanted = query.iter().map(|(key, text)| (*key, text.as_str()));
    match store.search(&wanted.collect()) {
        Ok(entries) => Ok(entries),
        Err(Error::NoEntry) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_a_lock_asks_nobody_and_waits_for_seconds() {
        let quiet = OsStore::new("karyi-test", Attended::Yes).quiet();
        assert_eq!(quiet.map(|store| store.kind()), Some(Kind::Os));
        assert!(OsStore::new("karyi-test", Attended::No).quiet().is_none());
    }
}
