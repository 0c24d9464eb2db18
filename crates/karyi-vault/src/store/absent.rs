//! Stores that this build of karyi lacks: every use fails and says which feature is missing.

use std::marker::PhantomData;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

use crate::store::patience::Notice;
use crate::store::{Key, Kind, Store};

/// Names the store that is missing.
pub trait Absent: Send + Sync {
    /// Its kind.
    const KIND: Kind;
}

/// A store that every use fails of.
pub struct AbsentStore<A>(PhantomData<A>);

impl<A: Absent> AbsentStore<A> {
    pub(super) fn absent() -> Self {
        Self(PhantomData)
    }

    /// Does nothing: nobody waits for this store.
    #[must_use]
    pub fn telling(self, _: Notice) -> Self {
        self
    }
}

/// Returns the error of every use.
pub(super) fn error(kind: Kind) -> ToolError {
    let code = match kind {
        Kind::Os => ErrorCode::KeyringUnavailable,
        Kind::Age | Kind::Memory | Kind::Env => ErrorCode::VaultUnavailable,
    };
    let message = format!("this karyi was built without the store \"{kind}\"");
    let hint =
        format!("build it with the feature vault-{kind}, or choose another store with --vault");
    ToolError::new(code, message).with_hint(hint)
}

impl<A: Absent> Store for AbsentStore<A> {
    fn kind(&self) -> Kind {
        A::KIND
    }

    fn probe(&self) -> Result<(), ToolError> {
        Err(error(A::KIND))
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        Err(error(A::KIND))
    }

    fn get(&self, _: &Key) -> Result<Option<SecretValue>, ToolError> {
        Err(error(A::KIND))
    }

    fn set(&self, _: &Key, _: &SecretValue) -> Result<(), ToolError> {
        Err(error(A::KIND))
    }

    fn remove(&self, _: &Key) -> Result<bool, ToolError> {
        Err(error(A::KIND))
    }
}
