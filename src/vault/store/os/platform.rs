//! Which keyring a system has, what is its own, and how to see that it is locked without asking anybody.

use std::collections::HashMap;
use std::sync::Arc;

use keyring::Error;
use keyring_core::api::CredentialStore;

use crate::error::ToolError;

/// Whether the keyring may ask the user to unlock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unlock {
    /// It may.
    May,
    /// It must not: a dialog nobody answers hangs.
    MustNot,
}

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

/// Opens the keyring.
pub(super) fn open() -> Result<Arc<CredentialStore>, Error> {
    #[cfg(all(unix, not(target_os = "macos")))]
    let store = zbus_secret_service_keyring_store::Store::new()?;
    #[cfg(target_os = "macos")]
    let store = apple_native_keyring_store::keychain::Store::new()?;
    #[cfg(target_os = "windows")]
    let store = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

/// Checks that the default keyring is there and open; the user may be asked to unlock it.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn check(unlock: Unlock) -> Result<(), ToolError> {
    use secret_service::EncryptionType;
    use secret_service::blocking::SecretService;

    use crate::error::ErrorCode;

    let unavailable = |error: secret_service::Error| {
        let message = format!("the secret service cannot be reached: {error}");
        ToolError::new(ErrorCode::KeyringUnavailable, message)
    };
    let locked = |message: &str| ToolError::new(ErrorCode::KeyringLocked, message);
    let service = SecretService::connect(EncryptionType::Plain).map_err(unavailable)?;
    let collection = match service.get_default_collection() {
        Ok(collection) => collection,
        Err(secret_service::Error::NoResult) => {
            let message = "the secret service has no default keyring";
            let hint = "make one with the program of the desktop, or use --vault age";
            return Err(ToolError::new(ErrorCode::KeyringUnavailable, message).with_hint(hint));
        }
        Err(error) => return Err(unavailable(error)),
    };
    if !collection.is_locked().map_err(unavailable)? {
        return Ok(());
    }
    match unlock {
        Unlock::MustNot => Err(locked(
            "the default keyring is locked, and nobody is there to unlock it",
        )),
        Unlock::May => collection
            .unlock()
            .map_err(|_| locked("the default keyring is locked and was not unlocked")),
    }
}

/// Nothing to check: these systems unlock the keyring with the user's session.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn check(_: Unlock) -> Result<(), ToolError> {
    Ok(())
}
