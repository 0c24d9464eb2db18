//! Interruption and cancellation of a run, or of a part of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

/// A one-way cancellation switch that tasks can await.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    switch: Arc<Switch>,
    /// Switch of the whole run, when this is the one of a part.
    whole: Option<Arc<Switch>>,
}

#[derive(Debug)]
struct Switch {
    state: watch::Sender<bool>,
    flag: Arc<AtomicBool>,
    is_interrupted: AtomicBool,
    /// Switches of parts, which this one cancels, too.
    parts: Mutex<Vec<Weak<Switch>>>,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(false),
            flag: Arc::default(),
            is_interrupted: AtomicBool::default(),
            parts: Mutex::default(),
        }
    }
}

impl Switch {
    fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::SeqCst);
        self.state.send_modify(|_| {});
        self.each_part(Self::interrupt);
    }

    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.state.send_replace(true);
        self.each_part(Self::cancel);
    }

    fn each_part(&self, act: fn(&Self)) {
        let parts: Vec<Arc<Self>> = {
            let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.iter().filter_map(Weak::upgrade).collect()
        };
        parts.iter().for_each(|part| act(part));
    }

    /// Adds the switch of a part, and forgets those that are gone.
    fn add_part(&self, part: &Arc<Self>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(part));
    }
}

impl Cancel {
    /// Returns the switch of a part of the run, such as one turn of a conversation. The run goes on when it is
    /// cancelled: a command that runs is ended, and its shell lives on. It is cancelled with the run.
    #[must_use]
    pub fn of_part(&self) -> Self {
        let part = Self {
            switch: Arc::default(),
            whole: Some(Arc::clone(&self.switch)),
        };
        self.switch.add_part(&part.switch);
        // The run may have been cancelled before the part was known to it.
        if self.is_cancelled() {
            part.cancel();
        } else if self.is_interrupted() {
            part.interrupt();
        }
        part
    }

    /// Returns true when the session goes on after cancellation: only a part of the run ends.
    #[must_use]
    pub fn spares_session(&self) -> bool {
        let whole = self.whole.as_ref();
        whole.is_some_and(|whole| !*whole.state.borrow())
    }

    /// Returns true when a part of the run was cancelled, and the session goes on.
    #[must_use]
    pub fn has_spared_session(&self) -> bool {
        self.is_cancelled() && self.spares_session()
    }

    /// Keeps calls from starting; those that run go on.
    pub fn interrupt(&self) {
        self.switch.interrupt();
    }

    /// Returns true when no further call may start: the run was interrupted or cancelled.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.switch.is_interrupted.load(Ordering::SeqCst) || self.is_cancelled()
    }

    /// Cancels the run, or the part of it.
    pub fn cancel(&self) {
        self.switch.cancel();
    }

    /// Returns true when the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.switch.state.borrow()
    }

    /// Waits until the run is cancelled, and then for `patience`.
    pub async fn cancelled_for(&self, patience: Duration) {
        self.cancelled().await;
        if !patience.is_zero() {
            tokio::time::sleep(patience).await;
        }
    }

    /// Returns a flag that is set on cancellation, for code that cannot await.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.switch.flag)
    }

    /// Waits until no further call may start.
    pub async fn interrupted(&self) {
        let mut watcher = self.switch.state.subscribe();
        // As below.
        let _ = watcher
            .wait_for(|is_cancelled| {
                *is_cancelled || self.switch.is_interrupted.load(Ordering::SeqCst)
            })
            .await;
    }

    /// Waits until the run is cancelled.
    pub async fn cancelled(&self) {
        let mut watcher = self.switch.state.subscribe();
        // `wait_for` fails only when the sender is gone, and `self` owns it.
        let _ = watcher.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// Cancels something when it is dropped.
pub struct CancelOnDrop(pub Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_the_whole_and_the_whole_outlives_a_part() {
        let whole = Cancel::default();
        let (first, second) = (whole.of_part(), whole.of_part());
        first.cancel();
        assert!(first.is_cancelled() && first.spares_session());
        assert!(!whole.is_interrupted() && !second.is_interrupted());
        whole.interrupt();
        assert!(second.is_interrupted() && !second.is_cancelled());
        whole.cancel();
        assert!(second.is_cancelled() && second.flag().load(Ordering::Relaxed));
        assert!(!second.spares_session() && !whole.spares_session());
        assert!(whole.of_part().is_cancelled());
    }
}
