//! How a keyring is asked, and what is known after it was asked for many things at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
#[cfg_attr(
    any(not(unix), target_os = "macos"),
    expect(
        dead_code,
        reason = "only the secret service is asked for many things at once"
    )
)]
pub(super) enum Ahead {
    /// Nothing is kept.
    Nothing,
    /// This is the only thing kept.
    Value(Zeroizing<Vec<u8>>),
    /// It has to be asked for alone: it is locked, or there are several, or it fails.
    Unclear,
}

/// What is known ahead of some users, by their place.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<Vec<Option<Ahead>>>>);

impl Known {
    /// Says what is known of one.
    #[cfg_attr(
        any(not(unix), target_os = "macos"),
        expect(
            dead_code,
            reason = "only the secret service is asked for many things at once"
        )
    )]
    pub(super) fn put(&self, at: usize, ahead: Ahead) {
        let mut known = self.locked();
        if known.len() <= at {
            known.resize_with(at + 1, || None);
        }
        known[at] = Some(ahead);
    }

    /// Takes what is known of one by now.
    pub(super) fn take(&self, at: usize) -> Option<Ahead> {
        self.locked().get_mut(at)?.take()
    }

    // A poisoned lock only means that another thread panicked between two answers.
    fn locked(&self) -> MutexGuard<'_, Vec<Option<Ahead>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
