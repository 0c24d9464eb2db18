//! Which keyring a system has, and how it is searched.

use std::collections::HashMap;
use std::sync::Arc;

use keyring_core::api::CredentialStore;

#[cfg(all(unix, not(target_os = "macos")))]
pub(super) use super::service::Door;
use crate::store::os::failures::failure;
use karyi_core::error::ToolError;

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

    /// Returns what finds everything under a service name.
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
pub(super) fn open() -> Result<(Arc<CredentialStore>, Door), ToolError> {
    let door = Door::connect()?;
    let store = super::secrets::open().map_err(failure)?;
    Ok((store, door))
}

/// Opens the keyring.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) fn open() -> Result<(Arc<CredentialStore>, Door), ToolError> {
    #[cfg(target_os = "macos")]
    let store = apple_native_keyring_store::keychain::Store::new().map_err(failure)?;
    #[cfg(target_os = "windows")]
    let store = windows_native_keyring_store::Store::new().map_err(failure)?;
    Ok((store, Door))
}

/// Nothing to check: these systems unlock the keyring with the user's session.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(super) struct Door;

#[cfg(not(all(unix, not(target_os = "macos"))))]
impl Door {
    pub(super) fn check(&self, _: &str, _: super::Attended) -> Result<(), ToolError> {
        Ok(())
    }
}
