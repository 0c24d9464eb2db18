//! The store in the keyring of the operating system: the secret service over D-Bus on Linux, the
//! Keychain on macOS, the Credential Manager on Windows.
//!
//! Everything is asked through `keyring-core`, by a thread with a deadline. Where nobody can unlock
//! the keyring it is not asked to: a locked one is told so at once. The errors of that crate may hold
//! what the keyring holds, so they are mapped by kind and never printed with `Debug`.

mod failures;
mod platform;
#[cfg(all(unix, not(target_os = "macos")))]
mod secrets;
#[cfg(all(unix, not(target_os = "macos")))]
mod service;
mod worker;

pub use platform::Family;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyring_core::api::CredentialStore;
use keyring_core::{Entry, Error};
use zeroize::Zeroizing;

use crate::store::patience::{Notice, Patience};
use crate::store::{Got, Held, Key, Kind, Store};
use failures::{failure, open_end};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use platform::Door;
use worker::Worker;

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
    family: Family,
    /// The keyring, where it is not the one of this system.
    given: Option<Arc<CredentialStore>>,
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
    /// The keyring, once it was opened, and what tells whether it is locked.
    keyring: Option<(Arc<CredentialStore>, Door)>,
    /// When it was last seen to be unlocked.
    checked: Option<Instant>,
}

impl Connection {
    fn open(
        &mut self,
        service: &str,
        attended: Attended,
    ) -> Result<Arc<CredentialStore>, ToolError> {
        let (store, door) = match &self.keyring {
            Some(keyring) => keyring,
            None => self.keyring.insert(platform::open()?),
        };
        let is_fresh = |then: Instant| then.elapsed() < limits::KEYRING_CHECK_AGE;
        if !self.checked.is_some_and(is_fresh) {
            door.check(service, attended)?;
            self.checked = Some(Instant::now());
        }
        Ok(Arc::clone(store))
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
            family: Family::HERE,
            given: None,
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
        self.worker.patience = Patience::telling(notice);
        self
    }

    /// Returns what the entries are kept under, each once and sorted.
    fn users(&self) -> Result<BTreeSet<String>, ToolError> {
        let entries = self.entries()?;
        Ok(entries.into_iter().map(|(user, _)| user).collect())
    }

    /// Returns the entries and what they are kept under, without reading a value. One without a user is kept under an
    /// empty text.
    fn entries(&self) -> Result<Vec<(String, Entry)>, ToolError> {
        let query = self.family.query(&self.service);
        let list = move |store: &CredentialStore, service: &str| {
            let named = search(store, &query)?.into_iter().map(|entry| {
                let user = user_of(&entry, service)?;
                Ok((user.unwrap_or_default(), entry))
            });
            named.collect()
        };
        match self.with(list.clone()) {
            // One may have gone after it was found.
            Err(error) if error.code == ErrorCode::KeyringUnavailable => self.with(list),
            found => found,
        }
    }

    /// Looks for something in the keyring, in its thread.
    fn with<T: Send + 'static>(
        &self,
        task: impl FnOnce(&CredentialStore, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.call(Does::Read, task)
    }

    fn call<T: Send + 'static>(
        &self,
        does: Does,
        task: impl FnOnce(&CredentialStore, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (service, attended) = (self.service.clone(), self.attended);
        let given = self.given.clone();
        self.worker.run(move |connection, waiter| {
            let store = match given {
                Some(given) => given,
                None => connection.open(&service, attended)?,
            };
            if does == Does::Change {
                waiter.check()?;
            }
            let result = task(&*store, &service);
            if matches!(result, Err(Error::PlatformFailure(_))) {
                // The keyring may have been started anew; the next call connects again.
                *connection = Connection::default();
            }
            result.map_err(failure)
        })
    }

    /// Changes what is kept for a user.
    fn change<T: Send + 'static>(
        &self,
        key: &Key,
        change: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        let user = key.as_str().to_owned();
        let is_labelled = self.family == Family::SecretService;
        let changed = self.call(Does::Change, move |store, service| {
            let label = format!("{user} of {service}");
            let label = HashMap::from([("label", label.as_str())]);
            let label = Some(&label).filter(|_| is_labelled);
            change(store.build(service, &user, label)?)
        });
        changed.map_err(open_end)
    }
}

impl Store for OsStore {
    fn kind(&self) -> Kind {
        Kind::Os
    }

    fn probe(&self) -> Result<(), ToolError> {
        let query = self.family.query(&self.service);
        // Looking for something unlocks the keyring and reads nothing.
        self.with(move |store, _| search(store, &query).map(drop))
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        let users = self.users()?;
        let names = users.iter().filter_map(|user| SecretName::parse(user));
        Ok(names.collect())
    }

    fn get(&self, key: &Key) -> Got {
        let user = key.as_str().to_owned();
        let bytes = self.with(move |store, service| {
            match store.build(service, &user, None)?.get_secret() {
                Ok(bytes) => Ok(Some(Zeroizing::new(bytes))),
                Err(Error::NoEntry) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        bytes.map(|bytes| text_under(key, bytes)).transpose()
    }

    fn read_all(&self) -> Result<Vec<Held>, ToolError> {
        let (mut all, mut entries) = (Vec::new(), self.entries()?.into_iter());
        loop {
            // They share a deadline.
            let part: Vec<_> = entries.by_ref().take(limits::KEYRING_PART).collect();
            if part.is_empty() {
                return Ok(all);
            }
            let read = self.with(move |_, _| {
                let read = part.into_iter().map(|(user, entry)| {
                    let bytes = entry.get_secret().map(Zeroizing::new);
                    (Key(user), bytes)
                });
                Ok(read.collect::<Vec<_>>())
            });
            for (key, bytes) in read? {
                let text = match bytes {
                    // It went since it was found.
                    Err(Error::NoEntry) => continue,
                    Err(error) => Err(failure(error)),
                    Ok(bytes) => text_under(&key, bytes),
                };
                all.push(Held { key, text });
            }
        }
    }

    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        let text = text.duplicate();
        self.change(key, move |entry| entry.set_secret(text.expose().as_bytes()))
    }

    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.change(key, |entry| match entry.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(error),
        })
    }
}

/// Returns everything that fits, without reading a value.
fn search(
    store: &CredentialStore,
    query: &HashMap<&'static str, String>,
) -> Result<Vec<Entry>, Error> {
    let wanted = query.iter().map(|(key, text)| (*key, text.as_str()));
    match store.search(&wanted.collect()) {
        Err(Error::NoEntry) => Ok(Vec::new()),
        found => found,
    }
}

/// Returns the text under a key; bytes that are none are wiped.
fn text_under(key: &Key, mut bytes: Zeroizing<Vec<u8>>) -> Result<SecretValue, ToolError> {
    match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Ok(SecretValue::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            let name = key.as_str();
            let message = format!("what the keyring holds under {name} is no text");
            let hint = format!(
                "keep a text with `karyi var set {name}`, or remove it with `karyi var rm {name}`"
            );
            Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint))
        }
    }
}

/// Returns what an entry under a service name is kept under, if anything. The Credential Manager has one name for both, which
/// its store parts at the last dot, though the service may have one.
///
/// # Errors
/// The keyring did not say: one that went away has not lost its entries.
fn user_of(entry: &Entry, service: &str) -> Result<Option<String>, Error> {
    let Some((of, user)) = entry.get_specifiers() else {
        return entry.get_attributes().map(|_| None);
    };
    let whole = format!("{user}.{of}");
    let user = whole
        .strip_suffix(service)
        .and_then(|user| user.strip_suffix('.'));
    Ok(user.map(str::to_owned))
}
