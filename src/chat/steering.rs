//! Texts that the user writes while a turn goes on. They join it at its next request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Texts that wait for the next request of a turn. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Steering(Arc<Mutex<VecDeque<String>>>);

impl Steering {
    /// Adds a text.
    pub fn push(&self, text: String) {
        self.texts().push_back(text);
    }

    /// Returns the texts that wait.
    #[must_use]
    pub fn waiting(&self) -> Vec<String> {
        self.texts().iter().cloned().collect()
    }

    /// Takes the newest text back.
    #[must_use]
    pub fn take_last(&self) -> Option<String> {
        self.texts().pop_back()
    }

    /// Takes all texts.
    #[must_use]
    pub fn take_all(&self) -> Vec<String> {
        self.texts().drain(..).collect()
    }

    /// Returns true when no text waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts().is_empty()
    }

    fn texts(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
