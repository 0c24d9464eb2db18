//! Which keyring a system has, what is its own, and how to see that it is locked without asking anybody.

use std::collections::HashMap;
use std::sync::Arc;

use keyring::Error;
use keyring_core::Entry;
use keyring_core::api::CredentialStore;

use super::asking::{Known, Unlock};
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) use super::service::Shared;
#[cfg(all(unix, not(target_os = "macos")))]
use super::{bus::Found, service::Service};
use crate::error::ToolError;

/// A kind of keyring, and how it is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The secret service of Linux: by any attributes.
    SecretService,
    /// The Keychain of macOS: by service.
    Keychain,
    /// The Credential Manager of Windows: by a pattern of the one name that stands for user and service. It takes
    /// names that differ only in case for the same, and values of at most 2560 bytes.
    CredentialManager,
}

impl Family {
    /// The kind this system has.
    pub(super) const HERE: Self = if cfg!(target_os = "windows") {
        Self::CredentialManager
    } else if cfg!(target_os = "macos") {
        Self::Keychain
    } else {
        Self::SecretService
    };

    /// Returns what finds everything under a service name; with a user at least all of theirs, which only has to be less
    /// where it is slow to look at an entry.
    pub(super) fn query(self, service: &str, user: Option<&str>) -> HashMap<&'static str, String> {
        match self {
            Self::SecretService => {
                let user = user.map(|user| ("username", user.to_owned()));
                let service = ("service", service.to_owned());
                [service].into_iter().chain(user).collect()
            }
            Self::Keychain => HashMap::from([("service", service.to_owned())]),
            Self::CredentialManager => {
                let pattern = format!(r"(?s)\A.*\.{}\z", regex::escape(service));
                HashMap::from([("pattern", pattern)])
            }
        }
    }
}

/// What stores share that are to be the same to the keyring: nothing, on these systems.
#[cfg(not(all(unix, not(target_os = "macos"))))]
#[derive(Clone, Default)]
pub(super) struct Shared;

/// Opens the keyring.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn open(shared: &Shared) -> Result<Arc<CredentialStore>, ToolError> {
    Ok(Arc::new(Service::open(shared)?))
}

/// Opens the keyring.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn open(_: &Shared) -> Result<Arc<CredentialStore>, ToolError> {
    #[cfg(target_os = "macos")]
    let store =
        apple_native_keyring_store::keychain::Store::new().map_err(super::failures::failure)?;
    #[cfg(target_os = "windows")]
    let store = windows_native_keyring_store::Store::new().map_err(super::failures::failure)?;
    Ok(store)
}

/// Checks that the default keyring is there and open; the user may be asked to unlock it.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn check(store: &CredentialStore, unlock: Unlock) -> Result<(), ToolError> {
    let service = store.as_any().downcast_ref::<Service>();
    service.map_or(Ok(()), |service| service.check(unlock))
}

/// Says of what is looked for from now on whether the user may be asked to unlock it.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn may_unlock(store: &CredentialStore, unlock: Unlock) {
    if let Some(service) = store.as_any().downcast_ref::<Service>() {
        service.may_unlock(unlock);
    }
}

/// Nothing to say: these systems unlock the keyring with the user's session.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn may_unlock(_: &CredentialStore, _: Unlock) {}

/// Nothing to check: these systems unlock the keyring with the user's session.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn check(_: &CredentialStore, _: Unlock) -> Result<(), ToolError> {
    Ok(())
}

/// Returns the entries that fit and can be read without asking anybody, and whether there are others.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn open_entries(
    store: &CredentialStore,
    wanted: &HashMap<&str, &str>,
) -> Result<(Vec<Entry>, bool), Error> {
    match store.as_any().downcast_ref::<Service>() {
        Some(service) => service.open_entries(wanted),
        None => Ok((store.search(wanted)?, false)),
    }
}

/// Returns the entries that fit: these systems lock all of them or none.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn open_entries(
    store: &CredentialStore,
    wanted: &HashMap<&str, &str>,
) -> Result<(Vec<Entry>, bool), Error> {
    Ok((store.search(wanted)?, false))
}

/// Checks of an entry without a user that the keyring said so.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn check_entry(entry: &Entry) -> Result<(), Error> {
    let found = entry.as_any().downcast_ref::<Found>();
    found.map_or(Ok(()), Found::check)
}

/// Nothing to check: these systems tell the user with the entry.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn check_entry(_: &Entry) -> Result<(), Error> {
    Ok(())
}

/// Finds out what is easily read of some users, all asked for in one go.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn ahead(store: &CredentialStore, service: &str, users: &[String], known: &Known) {
    if let Some(found) = store.as_any().downcast_ref::<Service>() {
        found.ahead(service, users, known);
    }
}

/// Nothing is asked for ahead: these systems answer each question at once.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn ahead(_: &CredentialStore, _: &str, _: &[String], _: &Known) {}
