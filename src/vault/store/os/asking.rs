//! How a keyring is asked, and what is known after it was asked for many things at once.

use zeroize::Zeroizing;

/// Whether the keyring may ask the user to unlock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unlock {
    /// It may.
    May,
    /// It must not: a dialog nobody answers hangs.
    MustNot,
}

/// What is known of a user before they are asked for alone.
pub(super) enum Ahead {
    /// Nothing is kept.
    Nothing,
    /// This is the only thing kept.
    Value(Zeroizing<Vec<u8>>),
    /// It has to be asked for alone: it is locked, or there are several, or it fails.
    Unclear,
}
