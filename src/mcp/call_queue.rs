//! When each call of a connection may start: as if they ran one after another, in the order they
//! came, like the calls of one block.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::exec::plan::{Claim, Planner};
use crate::tool::Effect;
use crate::tool::effect::Access;
use crate::tool::sessions::Sessions;

/// The calls of one connection.
pub struct CallQueue {
    sessions: Arc<Sessions>,
    state: Mutex<State>,
}

struct State {
    planner: Planner,
    waiting: HashMap<usize, oneshot::Sender<()>>,
    next: usize,
}

/// A call's turn; given back when dropped.
pub struct Turn {
    _ticket: Ticket,
}

/// A place in the queue; given up when dropped.
pub struct Ticket {
    queue: Arc<CallQueue>,
    number: usize,
    ready: oneshot::Receiver<()>,
}

impl Ticket {
    /// Waits for the turn; nothing when it will never ready.
    pub async fn turn(mut self) -> Option<Turn> {
        (&mut self.ready).await.ok()?;
        Some(Turn { _ticket: self })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}

impl CallQueue {
    /// Makes the empty queue.
    #[must_use]
    pub fn new(sessions: Arc<Sessions>) -> Arc<Self> {
        let state = Mutex::new(State {
            planner: Planner::overlapping(),
            waiting: HashMap::new(),
            next: 0,
        });
        Arc::new(Self { sessions, state })
    }

    /// Takes the next place in the queue.
    #[must_use]
    pub fn enter(self: &Arc<Self>, effect: Effect) -> Ticket {
        let (sender, ready) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            let number = state.next;
            state.next += 1;
            state.planner.push(number, effect);
            state.waiting.insert(number, sender);
            number
        };
        self.advance();
        Ticket {
            queue: Arc::clone(self),
            number,
            ready,
        }
    }

    /// Takes a call out, whether it waits or runs.
    fn leave(&self, number: usize) {
        {
            let mut state = self.lock();
            state.waiting.remove(&number);
            state.planner.withdraw(number);
            state.planner.finish(number);
        }
        self.advance();
    }

    /// Lets those start whose turn has ready. Who gives up in this moment leaves by itself.
    fn advance(&self) {
        let cwd = self.sessions.cwd();
        let mut state = self.lock();
        for number in startable(&mut state.planner, &cwd) {
            if let Some(sender) = state.waiting.remove(&number) {
                let _ = sender.send(());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn startable(planner: &mut Planner, cwd: &Path) -> Vec<usize> {
    let resolve = |access: &Access| Claim::of(access, cwd);
    planner.startable(&resolve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_pty::{Rc, SessionOptions, ShellSecrets};

    fn queue() -> Arc<CallQueue> {
        CallQueue::new(Arc::new(Sessions::new(SessionOptions {
            shell: None,
            preferred_shell: None,
            bootstrap: "/nowhere".into(),
            runtime_dir: "/nowhere".into(),
            cwd: "/".into(),
            env: Vec::new(),
            rc: Rc::None,
            seed: None,
            secrets: ShellSecrets::default(),
        })))
    }

    fn waiting(queue: &CallQueue) -> (usize, usize) {
        let state = queue.lock();
        (state.planner.waiting(), state.waiting.len())
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_queue_at_once() {
        let queue = queue();
        let first = queue.enter(Effect::Session).turn().await.unwrap();
        for _ in 0..1000 {
            drop(queue.enter(Effect::Session));
        }
        assert_eq!(waiting(&queue), (0, 0));
        let abandoned = queue.enter(Effect::Session);
        let last = queue.enter(Effect::Session);
        drop(abandoned);
        drop(first);
        assert!(last.turn().await.is_some());
        assert!(queue.lock().planner.is_done());
    }

    #[test]
    fn giving_up_many_places_at_once_goes_no_deeper_than_one() {
        let queue = queue();
        let mut tickets: Vec<Ticket> = (0..20_000).map(|_| queue.enter(Effect::Session)).collect();
        // Those that wait go first, then the one that runs lets nobody start.
        tickets.reverse();
        drop(tickets);
        assert_eq!(waiting(&queue), (0, 0));
    }
}
