//! Store of unattended runs: environment variables named `KARYI_VAR_NAME`.
//!
//! The command-line front end removes them from the environment at the start and passes them here. The store is
//! read-only.

use crate::store::{Key, Kind, Store};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// Prefix of these variables; the name of the secret follows.
pub const PREFIX: &str = "KARYI_VAR_";

/// Values from the environment at the start.
#[derive(Default)]
pub struct EnvStore {
    values: Vec<(SecretName, SecretValue)>,
}

impl EnvStore {
    /// Makes the store. Of two values with one name the first counts.
    #[must_use]
    pub fn new(mut values: Vec<(SecretName, SecretValue)>) -> Self {
        values.sort_by(|(one, _), (other, _)| one.cmp(other));
        values.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Self { values }
    }
}

impl Store for EnvStore {
    fn kind(&self) -> Kind {
        Kind::Env
    }

    fn probe(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        Ok(self.values.iter().map(|(name, _)| name.clone()).collect())
    }

    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        let mut values = self.values.iter();
        let found = values.find(|(name, _)| name.as_str() == key.as_str());
        Ok(found.map(|(_, value)| value.duplicate()))
    }

    fn set(&self, _: &Key, _: &SecretValue) -> Result<(), ToolError> {
        Err(read_only())
    }

    fn remove(&self, _: &Key) -> Result<bool, ToolError> {
        Err(read_only())
    }
}

fn read_only() -> ToolError {
    let message = "the store env is read-only: it holds the variables that karyi was started with";
    ToolError::new(ErrorCode::VaultReadOnly, message)
}
