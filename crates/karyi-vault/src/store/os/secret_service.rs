//! Connection to the secret service of Linux, and the check that it is available and unlocked. The check precedes
//! anything that could open a dialogue, over a connection that no value passes.

use std::collections::HashMap;

use secret_service::{EncryptionType, Error, SecretService};
use tokio::runtime::{Builder, Runtime};

use super::UserPresence;
use karyi_core::error::{ErrorCode, ToolError};

/// Connection to the secret service, with the runtime that drives it on the calling thread.
pub(super) struct SecretServiceConnection {
    /// Taken only when this is dropped.
    connection: Option<SecretService<'static>>,
    /// Taken only when this is dropped.
    runtime: Option<Runtime>,
}

impl SecretServiceConnection {
    /// Connects to the secret service.
    ///
    /// # Errors
    /// It is not available, or does not support this encryption.
    pub(super) fn connect(encryption: EncryptionType) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| Error::Unavailable)?;
        let connection = runtime.block_on(SecretService::connect(encryption))?;
        Ok(Self {
            connection: Some(connection),
            runtime: Some(runtime),
        })
    }

    /// Makes a request and waits for the reply.
    ///
    /// # Errors
    /// Errors of the secret service.
    pub(super) fn call<T>(
        &self,
        request: impl AsyncFnOnce(&SecretService<'static>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match (&self.runtime, &self.connection) {
            (Some(runtime), Some(connection)) => runtime.block_on(request(connection)),
            _ => Err(Error::Unavailable),
        }
    }
}

impl Drop for SecretServiceConnection {
    /// Ends the connection inside its runtime, and waits for nothing: the thread that drops it may belong to another
    /// runtime, which forbids both.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let inside = runtime.enter();
        drop(self.connection.take());
        drop(inside);
        runtime.shutdown_background();
    }
}

/// Connection that checks for a locked keyring.
pub(super) struct LockCheck(SecretServiceConnection);

impl LockCheck {
    /// Connects to the secret service.
    pub(super) fn connect() -> Result<Self, ToolError> {
        let service = SecretServiceConnection::connect(EncryptionType::Plain);
        service.map(Self).map_err(unavailable)
    }

    /// Checks that the default keyring is available and unlocked, and that all entries of the service are.
    /// A user may be asked to unlock them.
    pub(super) fn check(&self, service: &str, presence: UserPresence) -> Result<(), ToolError> {
        let state = self.0.call(async |keyring| {
            let collection = match keyring.get_default_collection().await {
                Ok(collection) => collection,
                Err(Error::NoResult) => return Ok(KeyringState::Missing),
                Err(error) => return Err(error),
            };
            let is_locked = collection.is_locked().await?;
            Ok(match presence {
                UserPresence::Present if is_locked && collection.unlock().await.is_err() => {
                    KeyringState::LeftLocked
                }
                UserPresence::Present => KeyringState::Open,
                UserPresence::Absent if is_locked => KeyringState::Locked,
                UserPresence::Absent => {
                    let query = HashMap::from([("service", service)]);
                    let found = keyring.search_items(query).await?;
                    match found.locked.is_empty() {
                        true => KeyringState::Open,
                        false => KeyringState::LockedBeside,
                    }
                }
            })
        });
        state.map_err(unavailable)?.check()
    }
}

/// State of the keyring.
#[derive(Clone, Copy)]
enum KeyringState {
    /// All entries of the service can be read.
    Open,
    /// There is no default keyring.
    Missing,
    /// The default keyring is locked, and no user is present.
    Locked,
    /// The user did not unlock the default keyring.
    LeftLocked,
    /// Another keyring with entries of karyi is locked.
    LockedBeside,
}

impl KeyringState {
    fn check(self) -> Result<(), ToolError> {
        let locked = |message: &str| Err(ToolError::new(ErrorCode::KeyringLocked, message));
        match self {
            Self::Open => Ok(()),
            Self::Missing => Err(no_keyring()),
            Self::Locked => {
                locked("the default keyring is locked, and no user is present to unlock it")
            }
            Self::LeftLocked => locked("the default keyring is locked and was not unlocked"),
            Self::LockedBeside => {
                locked("a keyring beside the default one holds entries of karyi and is locked")
            }
        }
    }
}

fn no_keyring() -> ToolError {
    let message = "the secret service has no default keyring";
    let hint = "make one with the program of the desktop, without one as docs/vault.md says (\"Where there is no desktop\"), or use --vault age";
    ToolError::new(ErrorCode::KeyringUnavailable, message).with_hint(hint)
}

fn unavailable(error: Error) -> ToolError {
    let message = format!("the secret service cannot be reached: {error}");
    ToolError::new(ErrorCode::KeyringUnavailable, message)
}
