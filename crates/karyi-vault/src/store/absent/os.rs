//! Substitute for the keyring in a build without the feature `os`.

use crate::store::Kind;
use crate::store::absent::{Absent, AbsentStore};

/// Presence of a user who can unlock the keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserPresence {
    /// A user is present.
    Present,
    /// No user is present.
    Absent,
}

/// The keyring of the operating system.
pub struct Os;

impl Absent for Os {
    const KIND: Kind = Kind::Os;
}

/// The keyring, which this build lacks.
pub type OsStore = AbsentStore<Os>;

impl OsStore {
    /// Makes the store; every use of it fails.
    #[must_use]
    pub fn new(_: impl Into<String>, _: UserPresence) -> Self {
        Self::absent()
    }
}
