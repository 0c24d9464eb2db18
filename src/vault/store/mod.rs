//! Stores: the places where values outlive a session, behind one trait.
//!
//! A store knows keys and texts and nothing of policies or notes; [`record`] puts the policy beside
//! its value, and `vault::keep` adds the index. Every call blocks and every one comes back: the
//! keyring is asked by a thread of its own that is abandoned at a deadline. What goes wrong is told
//! by code: `keyring_unavailable`, `keyring_locked`, `keyring_timeout`, `wrong_key`, `bad_vault`.

pub mod age;
pub mod disk;
pub mod env;
pub mod journal;
pub mod memory;
pub mod os;
pub mod pairs;
pub mod record;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use disk::Guard;

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

    /// Returns the key of another program's entry; nothing for a name or a word of karyi's own.
    #[must_use]
    pub fn of_stranger(text: &str) -> Option<Self> {
        let key = Self(text.to_owned());
        (SecretName::parse(text).is_none() && key != Self::journal()).then_some(key)
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text under a key, if there is one, or the reason why the store cannot be read.
pub type Got = Result<Option<SecretValue>, ToolError>;

/// Whether an error is about one value and not about the store.
#[must_use]
pub fn is_of_one(error: &ToolError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadVault | ErrorCode::BadValue | ErrorCode::BadArguments
    )
}

/// What is kept under one key.
pub struct Every {
    /// The texts.
    pub texts: Vec<SecretValue>,
    /// Whether nothing else is there that is no text.
    pub is_whole: bool,
    /// Why others could not be read now, if there are any.
    pub lost: Option<ToolError>,
}

impl Default for Every {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            is_whole: true,
            lost: None,
        }
    }
}

/// A place where values are kept.
pub trait Store: Send + Sync {
    /// Returns what kind of store it is.
    fn kind(&self) -> Kind;

    /// Returns the same store for whoever holds a lock that others wait for: where the user would have to be asked, it
    /// fails. Nothing when this one asks nobody.
    fn quiet(&self) -> Option<Arc<dyn Store>> {
        None
    }

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

    /// Returns the names of those secrets that can be read now, sorted, and why there are others that cannot.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn list_open(&self) -> Result<(Vec<SecretName>, Option<ToolError>), ToolError> {
        Ok((self.list()?, None))
    }

    /// Returns the text under a key; nothing when there is none.
    ///
    /// # Errors
    /// The reason why the store cannot be read, `bad_vault` when what it holds is no text.
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError>;

    /// Returns the text under each of some keys, as `get` does, one after the other. A store that keeps its caller waiting
    /// for each asks for some ahead. One that cannot be read is not asked for the rest.
    fn get_each<'a>(&'a self, keys: &'a [Key]) -> Box<dyn Iterator<Item = Got> + 'a> {
        let mut lost = None;
        Box::new(keys.iter().map(move |key| match &lost {
            Some(error) => Err(ToolError::clone(error)),
            None => {
                let got = self.get(key);
                lost = got
                    .as_ref()
                    .err()
                    .filter(|error| !is_of_one(error))
                    .cloned();
                got
            }
        }))
    }

    /// Returns all texts under a key: another program may have put more than one there.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn every(&self, key: &Key) -> Result<Every, ToolError> {
        Ok(Every {
            texts: self.get(key)?.into_iter().collect(),
            ..Every::default()
        })
    }

    /// Returns the keys that another program made up and that are no names, sorted, without reading a value.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn strangers(&self) -> Result<Vec<Key>, ToolError> {
        Ok(Vec::new())
    }

    /// Returns the texts under those keys, by key.
    ///
    /// # Errors
    /// The reason why the store cannot be read.
    fn foreign(&self) -> Result<Vec<Every>, ToolError> {
        self.strangers()?
            .iter()
            .map(|key| self.every(key))
            .collect()
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
    fn clear_away(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Keeps a lock until the change has ended that was begun and given up at its deadline: it may be done yet. Where there
    /// is none the lock is given back at once.
    fn hold(&self, lock: Guard) {
        drop(lock);
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
