//! Whether the secret service of Linux is there and unlocked. It is asked before anything that could open a dialogue, and
//! over a connection that no value passes.

use std::collections::HashMap;

use secret_service::EncryptionType;
use secret_service::blocking::SecretService;

use super::Attended;
use karyi_core::error::{ErrorCode, ToolError};

/// The way to ask whether the keyring is locked.
pub(super) struct Door(SecretService<'static>);

impl Door {
    /// Connects to the secret service.
    pub(super) fn connect() -> Result<Self, ToolError> {
        let service = SecretService::connect(EncryptionType::Plain);
        service.map(Self).map_err(unavailable)
    }

    /// Checks that the default keyring is there and open, and that entries under a service name are. A user may be asked
    /// to unlock them.
    pub(super) fn check(&self, service: &str, attended: Attended) -> Result<(), ToolError> {
        let locked = |message: &str| Err(ToolError::new(ErrorCode::KeyringLocked, message));
        let collection = match self.0.get_default_collection() {
            Ok(collection) => collection,
            Err(secret_service::Error::NoResult) => return Err(no_keyring()),
            Err(error) => return Err(unavailable(error)),
        };
        let is_locked = collection.is_locked().map_err(unavailable)?;
        match attended {
            Attended::Yes if is_locked && collection.unlock().is_err() => {
                locked("the default keyring is locked and was not unlocked")
            }
            Attended::Yes => Ok(()),
            Attended::No if is_locked => {
                locked("the default keyring is locked, and nobody is there to unlock it")
            }
            Attended::No => {
                let wanted = HashMap::from([("service", service)]);
                let found = self.0.search_items(wanted).map_err(unavailable)?;
                match found.locked.is_empty() {
                    true => Ok(()),
                    false => locked(
                        "a keyring beside the default one holds entries of karyi and is locked",
                    ),
                }
            }
        }
    }
}

fn no_keyring() -> ToolError {
    let message = "the secret service has no default keyring";
    let hint = "make one with the program of the desktop, without one as docs/vault.md says (\"Where there is no desktop\"), or use --vault age";
    ToolError::new(ErrorCode::KeyringUnavailable, message).with_hint(hint)
}

fn unavailable(error: secret_service::Error) -> ToolError {
    let message = format!("the secret service cannot be reached: {error}");
    ToolError::new(ErrorCode::KeyringUnavailable, message)
}
