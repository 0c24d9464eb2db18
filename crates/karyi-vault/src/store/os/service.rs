//! The secret service of Linux: a connection to it, and the check that it is there and unlocked. The check comes
//! before anything that could open a dialogue, and uses a connection that no value passes.

use std::collections::HashMap;

use secret_service::{EncryptionType, Error, SecretService};
use tokio::runtime::{Builder, Runtime};

use super::Attended;
use karyi_core::error::{ErrorCode, ToolError};

/// A connection to the secret service and the runtime that drives it, on the thread that asks and on no other.
pub(super) struct Service {
    /// Taken only when this is dropped.
    connection: Option<SecretService<'static>>,
    /// Taken only when this is dropped.
    runtime: Option<Runtime>,
}

impl Service {
    /// Connects to the secret service.
    ///
    /// # Errors
    /// It is not there, or does not speak this encryption.
    pub(super) fn connect(encryption: EncryptionType) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| Error::Unavailable)?;
        let connection = runtime.block_on(SecretService::connect(encryption))?;
        Ok(Self {
            connection: Some(connection),
            runtime: Some(runtime),
        })
    }

    /// Asks for something and waits for the answer.
    ///
    /// # Errors
    /// What the secret service says.
    pub(super) fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&SecretService<'static>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match (&self.runtime, &self.connection) {
            (Some(runtime), Some(connection)) => runtime.block_on(question(connection)),
            _ => Err(Error::Unavailable),
        }
    }
}

impl Drop for Service {
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

/// The way to ask whether the keyring is locked.
pub(super) struct Door(Service);

impl Door {
    /// Connects to the secret service.
    pub(super) fn connect() -> Result<Self, ToolError> {
        let service = Service::connect(EncryptionType::Plain);
        service.map(Self).map_err(unavailable)
    }

    /// Checks that the default keyring is there and open, and that entries under a service name are. A user may be
    /// asked to unlock them.
    pub(super) fn check(&self, service: &str, attended: Attended) -> Result<(), ToolError> {
        let state = self.0.ask(async |keyring| {
            let collection = match keyring.get_default_collection().await {
                Ok(collection) => collection,
                Err(Error::NoResult) => return Ok(State::Missing),
                Err(error) => return Err(error),
            };
            let is_locked = collection.is_locked().await?;
            Ok(match attended {
                Attended::Yes if is_locked && collection.unlock().await.is_err() => {
                    State::LeftLocked
                }
                Attended::Yes => State::Open,
                Attended::No if is_locked => State::Locked,
                Attended::No => {
                    let query = HashMap::from([("service", service)]);
                    let found = keyring.search_items(query).await?;
                    match found.locked.is_empty() {
                        true => State::Open,
                        false => State::LockedBeside,
                    }
                }
            })
        });
        state.map_err(unavailable)?.check()
    }
}

/// State of the keyring as the check finds it.
#[derive(Clone, Copy)]
enum State {
    /// Everything under the service name can be read.
    Open,
    /// There is no default keyring.
    Missing,
    /// The default keyring is locked, and nobody may be asked.
    Locked,
    /// The default keyring is locked after a user was asked.
    LeftLocked,
    /// Another keyring with entries of ours is locked.
    LockedBeside,
}

impl State {
    fn check(self) -> Result<(), ToolError> {
        let locked = |message: &str| Err(ToolError::new(ErrorCode::KeyringLocked, message));
        match self {
            Self::Open => Ok(()),
            Self::Missing => Err(no_keyring()),
            Self::Locked => {
                locked("the default keyring is locked, and nobody is there to unlock it")
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
