//! When each call of a connection may start: as if they ran one after another, in the order they
//! came, like the calls of one block.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::exec::plan::Planner;
use crate::files::place::Place;
use crate::tool::Effect;
use crate::tool::effect::Access;
use crate::tool::sessions::Sessions;

/// The calls of one connection.
pub struct Lanes {
    sessions: Arc<Sessions>,
    state: Mutex<State>,
}

struct State {
    planner: Planner,
    waiting: HashMap<usize, oneshot::Sender<Turn>>,
    next: usize,
}

/// A call's turn; given back when dropped.
pub struct Turn {
    lanes: Arc<Lanes>,
    number: usize,
}

/// A place in the queue.
pub struct Ticket(oneshot::Receiver<Turn>);

impl Ticket {
    /// Waits for the turn; nothing when it will never come.
    pub async fn turn(self) -> Option<Turn> {
        self.0.await.ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lanes.lock().planner.finish(self.number);
        self.lanes.advance();
    }
}

impl Lanes {
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

    /// Takes the next place in the queue. When the ticket is dropped the place is given up.
    #[must_use]
    pub fn queue(self: &Arc<Self>, effect: Effect) -> Ticket {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.lock();
            let number = state.next;
            state.next += 1;
            state.planner.push(number, effect);
            state.waiting.insert(number, sender);
        }
        self.advance();
        Ticket(receiver)
    }

    /// Lets those start whose turn has come.
    fn advance(self: &Arc<Self>) {
        let cwd = self.sessions.cwd();
        let mut refused = Vec::new();
        {
            let mut state = self.lock();
            for number in startable(&mut state.planner, &cwd) {
                let turn = Turn {
                    lanes: Arc::clone(self),
                    number,
                };
                match state.waiting.remove(&number) {
                    Some(sender) => refused.extend(sender.send(turn).err()),
                    None => refused.push(turn),
                }
            }
        }
        // Given back outside the lock; that lets others start.
        drop(refused);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn startable(planner: &mut Planner, cwd: &Path) -> Vec<usize> {
    let resolve = |access: &Access| Place::touched(&cwd.join(access.path.source()));
    planner.startable(&resolve)
}
