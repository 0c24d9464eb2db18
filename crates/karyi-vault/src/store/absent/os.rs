//! Stands in for the keyring in a build without the feature `os`.

use crate::store::Kind;
use crate::store::absent::{Absent, AbsentStore};

/// Whether somebody is there who can unlock the keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// A user.
    Yes,
    /// Nobody.
    No,
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
    pub fn new(_: impl Into<String>, _: Attended) -> Self {
        Self::absent()
    }
}
