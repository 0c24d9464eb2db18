//! Store in memory, for sessions that store nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{Key, Kind, Store};
use karyi_core::error::ToolError;
use karyi_core::secret::{SecretName, SecretValue};

/// Values in memory, wiped on drop.
#[derive(Default)]
pub struct MemoryStore {
    texts: Mutex<BTreeMap<Key, SecretValue>>,
}

impl MemoryStore {
    // A poisoned lock only means that another thread panicked between two whole changes.
    fn texts(&self) -> MutexGuard<'_, BTreeMap<Key, SecretValue>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn kind(&self) -> Kind {
        Kind::Memory
    }

    fn probe(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        let texts = self.texts();
        let names = texts
            .keys()
            .filter_map(|key| SecretName::parse(key.as_str()));
        Ok(names.collect())
    }

    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        Ok(self.texts().get(key).map(SecretValue::duplicate))
    }

    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.texts().insert(key.clone(), text.duplicate());
        Ok(())
    }

    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        Ok(self.texts().remove(key).is_some())
    }
}
