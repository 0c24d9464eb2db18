//! Store in the keyring of the operating system: the secret service over D-Bus on Linux, the Keychain on macOS, the
//! Credential Manager on Windows.
//!
//! A thread with a deadline calls `keyring-core`. Without a user no unlocking is requested: a locked keyring is an
//! error at once. Errors of that crate may contain secrets, so they are mapped by kind and never printed with `Debug`.

mod error_mapping;
mod platform;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service_store;
mod worker;

pub use platform::KeyringKind;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyring_core::api::CredentialStore;
use keyring_core::{Entry, Error};
use zeroize::Zeroizing;

use crate::store::slow_notice::{Notice, SlowNotice};
use crate::store::{GetResult, Key, Kind, Store, StoredEntry};
use error_mapping::{map_error, unknown_outcome};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use platform::LockCheck;
use worker::Worker;

/// Presence of a user who can unlock the keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserPresence {
    /// A user is present and has a minute to unlock it.
    Present,
    /// No user is present: a locked keyring is an error.
    Absent,
}

/// Store in the keyring.
pub struct OsStore {
    service: String,
    attended: UserPresence,
    family: KeyringKind,
    /// Keyring, when it is not that of this system.
    given: Option<Arc<CredentialStore>>,
    worker: Worker<Connection>,
}

/// Kind of access to the keyring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Change,
}

/// Connection to the keyring.
#[derive(Default)]
struct Connection {
    /// Open keyring, and the check for its lock.
    keyring: Option<(Arc<CredentialStore>, LockCheck)>,
    /// Time of the last check that found it unlocked.
    checked: Option<Instant>,
}

impl Connection {
    fn open(
        &mut self,
        service: &str,
        attended: UserPresence,
    ) -> Result<Arc<CredentialStore>, ToolError> {
        let (store, lock_check) = match &self.keyring {
            Some(keyring) => keyring,
            None => self.keyring.insert(platform::open()?),
        };
        let is_fresh = |then: Instant| then.elapsed() < limits::KEYRING_CHECK_AGE;
        if !self.checked.is_some_and(is_fresh) {
            lock_check.check(service, attended)?;
            self.checked = Some(Instant::now());
        }
        Ok(Arc::clone(store))
    }
}

impl OsStore {
    /// Makes a store under a service name. It opens nothing.
    #[must_use]
    pub fn new(service: impl Into<String>, attended: UserPresence) -> Self {
        let deadline = match attended {
            UserPresence::Present => limits::KEYRING_UNLOCK_TIMEOUT,
            UserPresence::Absent => limits::KEYRING_TIMEOUT,
        };
        Self::with_deadline(service, attended, deadline)
    }

    /// Makes a store with a deadline for each call.
    #[must_use]
    pub fn with_deadline(
        service: impl Into<String>,
        attended: UserPresence,
        deadline: Duration,
    ) -> Self {
        Self {
            service: service.into(),
            attended,
            family: KeyringKind::HERE,
            given: None,
            worker: Worker::new(deadline),
        }
    }

    /// Makes a store over another keyring than that of this system. It never asks a user to unlock it.
    #[must_use]
    pub fn over(
        service: impl Into<String>,
        family: KeyringKind,
        keyring: Arc<CredentialStore>,
    ) -> Self {
        Self {
            family,
            given: Some(keyring),
            ..Self::new(service, UserPresence::Absent)
        }
    }

    /// Sets the notice for the user that the keyring takes time.
    #[must_use]
    pub fn with_notice(mut self, notice: Notice) -> Self {
        self.worker.slow_notice = SlowNotice::with_notice(notice);
        self
    }

    /// Returns the user names of the entries, each once and sorted.
    fn users(&self) -> Result<BTreeSet<String>, ToolError> {
        let entries = self.entries()?;
        Ok(entries.into_iter().map(|(user, _)| user).collect())
    }

    /// Returns the entries with their user names, without reading a value. An entry without a user name has an empty
    /// one.
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
            // An entry may have been removed after the search.
            Err(error) if error.code == ErrorCode::KeyringUnavailable => self.with(list),
            found => found,
        }
    }

    /// Reads from the keyring, in its thread.
    fn with<T: Send + 'static>(
        &self,
        task: impl FnOnce(&CredentialStore, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.call(Access::Read, task)
    }

    fn call<T: Send + 'static>(
        &self,
        access: Access,
        task: impl FnOnce(&CredentialStore, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (service, attended) = (self.service.clone(), self.attended);
        let given = self.given.clone();
        self.worker.run(move |connection, waiter| {
            let store = match given {
                Some(given) => given,
                None => connection.open(&service, attended)?,
            };
            if access == Access::Change {
                waiter.check()?;
            }
            let result = task(&*store, &service);
            if matches!(result, Err(Error::PlatformFailure(_))) {
                // The keyring may have restarted; the next call connects again.
                *connection = Connection::default();
            }
            result.map_err(map_error)
        })
    }

    /// Changes the entry of a key.
    fn change<T: Send + 'static>(
        &self,
        key: &Key,
        change: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ToolError> {
        let user = key.as_str().to_owned();
        let is_labelled = self.family == KeyringKind::SecretService;
        let changed = self.call(Access::Change, move |store, service| {
            let label = format!("{user} of {service}");
            let label = HashMap::from([("label", label.as_str())]);
            let label = Some(&label).filter(|_| is_labelled);
            change(store.build(service, &user, label)?)
        });
        changed.map_err(unknown_outcome)
    }
}

impl Store for OsStore {
    fn kind(&self) -> Kind {
        Kind::Os
    }

    fn probe(&self) -> Result<(), ToolError> {
        let query = self.family.query(&self.service);
        // A search unlocks the keyring and reads nothing.
        self.with(move |store, _| search(store, &query).map(drop))
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        let users = self.users()?;
        let names = users.iter().filter_map(|user| SecretName::parse(user));
        Ok(names.collect())
    }

    fn get(&self, key: &Key) -> GetResult {
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

    fn read_all(&self) -> Result<Vec<StoredEntry>, ToolError> {
        let (mut all, mut entries) = (Vec::new(), self.entries()?.into_iter());
        loop {
            // The entries of a part share a deadline.
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
                    // It was removed after the search.
                    Err(Error::NoEntry) => continue,
                    Err(error) => Err(map_error(error)),
                    Ok(bytes) => text_under(&key, bytes),
                };
                all.push(StoredEntry { key, text });
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

/// Returns the matching entries, without reading a value.
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

/// Decodes the text of an entry; other bytes are wiped.
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

/// Returns the user name of an entry of a service, if it has one. The Credential Manager has one name for both, which
/// its crate splits at the last dot, although the service may contain one.
///
/// # Errors
/// Errors of the keyring: an unreachable keyring has not lost its entries.
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
