//! Substitute for the encrypted file in a build without the feature `age`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karyi_core::error::ToolError;
use karyi_core::secret::SecretValue;
use zeroize::Zeroizing;

use crate::store::Kind;
use crate::store::absent::{Absent, AbsentStore, error};

/// Provides the key of the file; never called.
pub type GetKey = Arc<dyn Fn(KeyRequest) -> Result<AgeKey, ToolError> + Send + Sync>;

/// Reason for requesting the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRequest {
    /// The file is about to be made.
    New,
    /// The file is to be opened.
    First,
    /// The last key did not open the file.
    Again,
}

/// A key that opens nothing.
pub struct AgeKey;

impl AgeKey {
    /// Accepts a passphrase.
    #[must_use]
    pub fn passphrase(_: &SecretValue) -> Self {
        Self
    }

    /// Accepts a passphrase.
    #[must_use]
    pub fn with_work(_: &SecretValue, _: u8) -> Self {
        Self
    }

    /// Refuses an identity file.
    ///
    /// # Errors
    /// Always.
    pub fn identity(_: &Path, _: Option<&SecretValue>) -> Result<Self, ToolError> {
        Err(error(Kind::Age))
    }

    /// Marks the passphrase as typed.
    #[must_use]
    pub fn typed(self) -> Self {
        self
    }
}

/// The encrypted file.
pub struct Age;

impl Absent for Age {
    const KIND: Kind = Kind::Age;
}

/// The encrypted file, which this build lacks.
pub type AgeStore = AbsentStore<Age>;

impl AgeStore {
    /// Makes the store; every use of it fails.
    #[must_use]
    pub fn new(_: PathBuf, _: GetKey) -> Self {
        Self::absent()
    }
}

/// Reads no identity file.
///
/// # Errors
/// Always.
pub fn identity_bytes(_: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, ToolError> {
    Err(error(Kind::Age))
}

/// Makes no identity.
///
/// # Errors
/// Always.
pub fn new_identity() -> Result<(String, SecretValue), ToolError> {
    Err(error(Kind::Age))
}

/// Refuses a passphrase.
///
/// # Errors
/// Always.
pub fn passphrase_of(_: &[u8]) -> Result<SecretValue, ToolError> {
    Err(error(Kind::Age))
}

/// Returns no key.
#[must_use]
pub fn secret_lines(_: &[u8]) -> Vec<SecretValue> {
    Vec::new()
}

/// Returns false.
#[must_use]
pub fn is_for_identity(_: &Path) -> bool {
    false
}
