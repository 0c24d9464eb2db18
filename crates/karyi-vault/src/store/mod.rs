//! Stores: the places where values outlive a session, behind one trait.
//!
//! A store knows keys and texts and nothing of policies or notes; [`record`] puts the policy beside
//! its value, and `vault::vault` adds the index. Every call blocks and every one comes back: the
//! keyring is asked by a thread of its own with a deadline. What goes wrong is told
//! by code: `keyring_unavailable`, `keyring_locked`, `keyring_timeout`, `wrong_key`, `bad_vault`.

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

/// What kind of store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The keyring of the operating system.
    Os,
    /// A file encrypted with age.
    Age,
    /// Memory, gone with the process.
    Memory,
    /// Variables the process was started with; they cannot be changed.
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

    /// Whether values outlive the process.
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

/// What a text is kept under: the name of a secret, or a word of karyi's own that is no name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// Returns the key of a secret.
    #[must_use]
    pub fn of(name: &SecretName) -> Self {
        Self(name.as_str().to_owned())
    }

    /// Returns the key of karyi's own key of the undo journal.
    #[must_use]
    pub fn journal() -> Self {
        Self(".journal".to_owned())
    }

    /// Returns the key under which a store is tried.
    #[must_use]
    pub fn probe() -> Self {
        Self(".probe".to_owned())
    }

    /// Returns a key that another program made up, for tests.
    #[cfg(test)]
    pub(crate) fn foreign(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether another program made it up: it is neither a name nor a word of karyi's own.
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

/// The text under a key, if there is one, or the reason why the store cannot be read.
pub type GetResult = Result<Option<SecretValue>, ToolError>;

/// Whether an error is about one value and not about the store.
#[must_use]
pub fn concerns_one_value(error: &ToolError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadVault | ErrorCode::BadValue | ErrorCode::BadArguments
    )
}

/// One thing that a store holds.
pub struct StoredEntry {
    /// What it is kept under. Another program may have put more than one thing under a key, and made keys up.
    pub key: Key,
    /// The text, or why it cannot be read.
    pub text: Result<SecretValue, ToolError>,
}

/// What a store holds, by its keys.
pub type StoredEntries = BTreeMap<Key, Vec<Result<SecretValue, ToolError>>>;

/// Returns everything that a store holds, by its keys.
///
/// # Errors
/// The reason why the store cannot be read.
pub fn read_entries(store: &dyn Store) -> Result<StoredEntries, ToolError> {
    let mut by_key = StoredEntries::new();
    for StoredEntry { key, text } in store.read_all()? {
        by_key.entry(key).or_default().push(text);
    }
    Ok(by_key)
}

/// A place where values are kept.
pub trait Store: Send + Sync {
    /// Returns what kind of store it is.
    fn kind(&self) -> Kind;

    /// Finds out whether values can be read and written now, without reading one.
    ///
    /// # Errors
    /// The reason why not.
    fn probe(&self) -> Result<(), ToolError>;

    /// Returns the names of the secrets it holds, sorted, without reading a value.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn list(&self) -> Result<Vec<SecretName>, ToolError>;

    /// Returns the text under a key; nothing when there is none.
    ///
    /// # Errors
    /// The reason why the store cannot be read, `bad_vault` when what it holds is no text.
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError>;

    /// Returns everything it holds.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn read_all(&self) -> Result<Vec<StoredEntry>, ToolError> {
        let names = self.list()?;
        let keys = names.iter().map(Key::of).chain([Key::journal()]);
        let held = keys.filter_map(|key| {
            let text = self.get(&key).transpose()?;
            Some(StoredEntry { key, text })
        });
        Ok(held.collect())
    }

    /// Keeps a text under a key, in place of an earlier one.
    ///
    /// # Errors
    /// The reason why the store cannot be written.
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError>;

    /// Removes what is under a key. Returns whether there was something.
    ///
    /// # Errors
    /// The reason why the store cannot be written.
    fn remove(&self, key: &Key) -> Result<bool, ToolError>;

    /// Removes what is left of a store that nothing is kept in any more, such as an empty file.
    ///
    /// # Errors
    /// The reason why the store cannot be written.
    fn remove_empty(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Keeps the texts under some keys and removes what is under others, in their order. A store that is one file
    /// writes it once.
    ///
    /// # Errors
    /// The reason why the store cannot be written; what came before is done, unless it is one file.
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
