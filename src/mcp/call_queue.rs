//! Orders the calls of one connection: they run as if one after another, like the calls of one
//! block, and in parallel where that makes no difference.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::exec::plan::{Claim, Planner};
use crate::tool::Effect;
use crate::tool::effect::Access;
use crate::tool::own_directories::OwnDirectories;
use crate::tool::sessions::Sessions;
use crate::tool::settings::ToolSettings;

/// Queue of the calls of one connection.
pub struct CallQueue {
    sessions: Arc<Sessions>,
    settings: Arc<ToolSettings>,
    state: Mutex<State>,
}

struct State {
    planner: Planner,
    waiting: HashMap<usize, oneshot::Sender<()>>,
    next: usize,
}

/// Permission to run; the call leaves the queue when this is dropped.
pub struct Turn {
    _ticket: Ticket,
}

/// Place in the queue; the call leaves the queue when this is dropped.
pub struct Ticket {
    queue: Arc<CallQueue>,
    number: usize,
    ready: oneshot::Receiver<()>,
}

impl Ticket {
    /// Waits for the call's turn; none if the queue is gone.
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
    /// Creates an empty queue.
    #[must_use]
    pub fn new(sessions: Arc<Sessions>, settings: Arc<ToolSettings>) -> Arc<Self> {
        let state = Mutex::new(State {
            planner: Planner::overlapping(),
            waiting: HashMap::new(),
            next: 0,
        });
        Arc::new(Self {
            sessions,
            settings,
            state,
        })
    }

    /// Adds a call to the end of the queue.
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

    /// Removes a call, whether it waits or runs.
    fn leave(&self, number: usize) {
        {
            let mut state = self.lock();
            state.waiting.remove(&number);
            state.planner.withdraw(number);
            state.planner.finish(number);
        }
        self.advance();
    }

    /// Starts the calls whose turn has come. A call that is dropped at this moment removes itself.
    fn advance(&self) {
        let cwd = self.sessions.cwd();
        let mut state = self.lock();
        for number in startable(&mut state.planner, &cwd, &self.settings.directories) {
            if let Some(sender) = state.waiting.remove(&number) {
                let _ = sender.send(());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn startable(planner: &mut Planner, cwd: &Path, directories: &OwnDirectories) -> Vec<usize> {
    let resolve = |access: &Access| Claim::of(access, directories.directory(access.base, cwd));
    planner.startable(&resolve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_pty::{SessionOptions, ShellSecrets, StartupFiles};

    fn queue() -> Arc<CallQueue> {
        CallQueue::new(
            Arc::new(Sessions::new(SessionOptions {
                shell: None,
                preferred_shell: None,
                bootstrap: "/nowhere".into(),
                runtime_dir: "/nowhere".into(),
                cwd: "/".into(),
                env: Vec::new(),
                overrides: Vec::new(),
                rc: StartupFiles::None,
                fork_state: None,
                secrets: ShellSecrets::default(),
            })),
            Arc::default(),
        )
    }

    fn waiting(queue: &CallQueue) -> (usize, usize) {
        let state = queue.lock();
        (state.planner.waiting(), state.waiting.len())
    }

    #[tokio::test]
    async fn a_dropped_ticket_leaves_the_queue_at_once() {
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
    fn dropping_many_tickets_does_not_recurse() {
        let queue = queue();
        let mut tickets: Vec<Ticket> = (0..20_000).map(|_| queue.enter(Effect::Session)).collect();
        // Waiting calls are dropped first, so the running one starts none of them.
        tickets.reverse();
        drop(tickets);
        assert_eq!(waiting(&queue), (0, 0));
    }
}
