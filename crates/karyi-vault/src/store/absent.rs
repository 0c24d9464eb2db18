//! Substitutes for stores that this build lacks. Every use fails and names the missing feature.

use std::marker::PhantomData;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

use crate::store::slow_notice::Notice;
use crate::store::{Key, Kind, Store};

/// Kind of a missing store.
pub trait Absent: Send + Sync {
    /// Its kind.
    const KIND: Kind;
}

/// Store whose every use fails.
pub struct AbsentStore<A>(PhantomData<A>);

impl<A: Absent> AbsentStore<A> {
    pub(super) fn absent() -> Self {
        Self(PhantomData)
    }

    /// Does nothing: no call of this store takes time.
    #[must_use]
    pub fn with_notice(self, _: Notice) -> Self {
        self
    }
}

/// Returns the error of any use.
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
