//! Stores of secrets, behind one trait.
//!
//! A store maps keys to texts; [`record`] adds the policy to a value, and [`crate::vault`] the index. Every call
//! blocks for a limited time: a thread with a deadline calls the keyring. Failures have a code: `keyring_unavailable`,
//! `keyring_locked`, `keyring_timeout`, `wrong_key`, `bad_vault`.

#[cfg(not(all(feature = "os", feature = "age")))]
mod absent;
#[cfg(feature = "age")]
pub mod age;
#[cfg(not(feature = "age"))]
#[path = "absent/age.rs"]
pub mod age;
pub mod env;
pub mod journal_key;
pub mod memory;
pub mod nul_pairs;
#[cfg(feature = "os")]
pub mod os;
#[cfg(not(feature = "os"))]
#[path = "absent/os.rs"]
pub mod os;
pub mod private_file;
pub mod record;
pub mod slow_notice;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// Kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The keyring of the operating system.
    Os,
    /// A file encrypted with age.
    Age,
    /// Memory of the process.
    Memory,
    /// Environment variables at the start of the process; read-only.
    Env,
}

impl Kind {
    /// Returns the word used on the command line and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Os => "os",
            Self::Age => "age",
            Self::Memory => "memory",
            Self::Env => "env",
        }
    }

    /// Returns true when values outlive the process.
    #[must_use]
    pub fn is_persistent(self) -> bool {
        matches!(self, Self::Os | Self::Age)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Key of an entry: the name of a secret, or a reserved word that is no valid name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// Returns the key of a secret.
    #[must_use]
    pub fn of(name: &SecretName) -> Self {
        Self(name.as_str().to_owned())
    }

    /// Returns the key under which the key of the undo journal is stored.
    #[must_use]
    pub fn journal() -> Self {
        Self(".journal".to_owned())
    }

    /// Returns the key of the entry that tests a store.
    #[must_use]
    pub fn probe() -> Self {
        Self(".probe".to_owned())
    }

    /// Returns a key of another program, for tests.
    #[cfg(test)]
    pub(crate) fn foreign(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns true for a key of another program: neither a name nor a reserved word.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        SecretName::parse(&self.0).is_none() && ![Self::journal(), Self::probe()].contains(self)
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text under a key, if there is one, or the error of the store.
pub type GetResult = Result<Option<SecretValue>, ToolError>;

/// Returns true when an error concerns one value and not the whole store.
#[must_use]
pub fn concerns_one_value(error: &ToolError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadVault | ErrorCode::BadValue | ErrorCode::BadArguments
    )
}

/// Entry of a store.
pub struct StoredEntry {
    /// Key. Another program may have stored several entries under one key, or other keys.
    pub key: Key,
    /// Text, or the reason why it is unreadable.
    pub text: Result<SecretValue, ToolError>,
}

/// Entries of a store, by key.
pub type StoredEntries = BTreeMap<Key, Vec<Result<SecretValue, ToolError>>>;

/// Returns all entries of a store, by key.
///
/// # Errors
/// The store cannot be read.
pub fn read_entries(store: &dyn Store) -> Result<StoredEntries, ToolError> {
    let mut by_key = StoredEntries::new();
    for StoredEntry { key, text } in store.read_all()? {
        by_key.entry(key).or_default().push(text);
    }
    Ok(by_key)
}

/// Store of secrets.
pub trait Store: Send + Sync {
    /// Returns the kind of store.
    fn kind(&self) -> Kind;

    /// Checks that values can be read and written now, without reading one.
    ///
    /// # Errors
    /// The store cannot be used.
    fn probe(&self) -> Result<(), ToolError>;

    /// Returns the names of the secrets, sorted, without reading a value.
    ///
    /// # Errors
    /// The store cannot be read.
    fn list(&self) -> Result<Vec<SecretName>, ToolError>;

    /// Returns the text under a key, if there is one.
    ///
    /// # Errors
    /// The store cannot be read; `bad_vault` when the entry is not text.
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError>;

    /// Returns all entries.
    ///
    /// # Errors
    /// The store cannot be read.
    fn read_all(&self) -> Result<Vec<StoredEntry>, ToolError> {
        let names = self.list()?;
        let keys = names.iter().map(Key::of).chain([Key::journal()]);
        let held = keys.filter_map(|key| {
            let text = self.get(&key).transpose()?;
            Some(StoredEntry { key, text })
        });
        Ok(held.collect())
    }

    /// Stores a text under a key, in place of an earlier one.
    ///
    /// # Errors
    /// The store cannot be written.
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError>;

    /// Removes the entry of a key. Returns true when there was one.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove(&self, key: &Key) -> Result<bool, ToolError>;

    /// Removes the remains of an empty store, such as its file.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove_empty(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Stores and removes texts, in order. A store that is one file writes it once.
    ///
    /// # Errors
    /// The store cannot be written. Earlier changes are made, unless the store is one file.
    fn apply(&self, changes: &[(Key, Option<SecretValue>)]) -> Result<(), ToolError> {
        for (key, text) in changes {
            match text {
                Some(text) => self.set(key, text)?,
                None => {
                    self.remove(key)?;
                }
            }
        }
        Ok(())
    }
}
