//! Keyring of each system, and its search query.

use std::collections::HashMap;
use std::sync::Arc;

use keyring_core::api::CredentialStore;

#[cfg(all(unix, not(target_os = "macos")))]
pub(super) use super::secret_service::LockCheck;
use crate::store::os::error_mapping::map_error;
use karyi_core::error::ToolError;

/// Kind of keyring, by its search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyringKind {
    /// The secret service of Linux: search by any attributes.
    SecretService,
    /// The Keychain of macOS: search by service.
    Keychain,
    /// The Credential Manager of Windows: search by a pattern for the one name of user and service. Names that differ
    /// only in case are equal, and a value has at most 2560 bytes.
    CredentialManager,
}

impl KeyringKind {
    /// Kind of this system.
    pub(super) const HERE: Self = if cfg!(target_os = "windows") {
        Self::CredentialManager
    } else if cfg!(target_os = "macos") {
        Self::Keychain
    } else {
        Self::SecretService
    };

    /// Returns the query for all entries of a service.
    pub(super) fn query(self, service: &str) -> HashMap<&'static str, String> {
        match self {
            Self::SecretService | Self::Keychain => {
                HashMap::from([("service", service.to_owned())])
            }
            Self::CredentialManager => {
                let pattern = format!(r"(?s)\A.*\.{}\z", regex::escape(service));
                HashMap::from([("pattern", pattern)])
            }
        }
    }
}

/// Opens the keyring.
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn open() -> Result<(Arc<CredentialStore>, LockCheck), ToolError> {
    let lock_check = LockCheck::connect()?;
    let store = super::secret_service_store::open().map_err(map_error)?;
    Ok((store, lock_check))
}

/// Opens the keyring.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn open() -> Result<(Arc<CredentialStore>, LockCheck), ToolError> {
    #[cfg(target_os = "macos")]
    let store = apple_native_keyring_store::keychain::Store::new().map_err(map_error)?;
    #[cfg(target_os = "windows")]
    let store = windows_native_keyring_store::Store::new().map_err(map_error)?;
    Ok((store, LockCheck))
}

/// No check: these systems unlock the keyring with the user's session.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) struct LockCheck;

#[cfg(not(all(unix, not(target_os = "macos"))))]
impl LockCheck {
    pub(super) fn check(&self, _: &str, _: super::UserPresence) -> Result<(), ToolError> {
        Ok(())
    }
}
