//! Thread that calls the keyring, so that a hanging keyring blocks no caller for long.
//!
//! A call that hangs inside the bus or behind an unseen dialogue cannot be ended. At its deadline it is abandoned, and
//! as long as it hangs every other call fails at once. It never starts a change after its deadline. The end of the
//! process does not wait for it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::store::slow_notice::SlowNotice;
use karyi_core::error::{ErrorCode, ToolError};

type Task<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Lets a task check that its caller still waits.
pub(super) struct Waiter(Weak<()>);

impl Waiter {
    /// Checks that the caller still waits: a later change of another process must not be overwritten.
    ///
    /// # Errors
    /// `keyring_timeout`; its caller is gone.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        match self.0.upgrade() {
            Some(_) => Ok(()),
            None => Err(ToolError::new(ErrorCode::KeyringTimeout, "nobody waits")),
        }
    }
}

/// Runs tasks one after another, in a thread with a state `S`.
pub(super) struct Worker<S> {
    deadline: Duration,
    pub(super) slow_notice: SlowNotice,
    thread: Mutex<Thread<S>>,
}

struct Thread<S> {
    /// Channel to the thread, if it is started.
    tasks: Option<Sender<Task<S>>>,
    /// The last task that missed its deadline, while it runs.
    late: Weak<()>,
}

impl<S: Default + 'static> Worker<S> {
    /// Makes a worker with a deadline for each task. Its thread starts with the first one.
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            slow_notice: SlowNotice::default(),
            thread: Mutex::new(Thread {
                tasks: None,
                late: Weak::new(),
            }),
        }
    }

    /// Runs a task and waits for it.
    ///
    /// # Errors
    /// Errors of the task, or `keyring_timeout`.
    pub(super) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut S, &Waiter) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        // A poisoned lock only means that another thread panicked between two tasks.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.late.upgrade().is_some() {
            return Err(self.timeout());
        }
        let (sender, receiver) = mpsc::channel();
        let running = Arc::new(());
        let late = Arc::downgrade(&running);
        let waiting = Arc::new(());
        let waiter = Waiter(Arc::downgrade(&waiting));
        let task: Task<S> = Box::new(move |state| {
            let result = task(state, &waiter);
            drop(running);
            drop(sender.send(result));
        });
        let tasks = match thread.tasks.take() {
            Some(tasks) => tasks,
            None => start()?,
        };
        if tasks.send(task).is_err() {
            return Err(ended());
        }
        let result = match self.slow_notice.receive(&receiver, self.deadline) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            Err(RecvTimeoutError::Timeout) => {
                drop(waiting);
                thread.late = late;
                Err(self.timeout())
            }
        };
        thread.tasks = Some(tasks);
        result
    }

    fn timeout(&self) -> ToolError {
        let seconds = self.deadline.as_secs_f32();
        let message = format!("the keyring did not answer within {seconds} s");
        ToolError::new(ErrorCode::KeyringTimeout, message)
    }
}

fn start<S: Default + 'static>() -> Result<Sender<Task<S>>, ToolError> {
    let (sender, tasks) = mpsc::channel::<Task<S>>();
    let work = move || {
        let mut state = S::default();
        for task in tasks {
            task(&mut state);
        }
    };
    std::thread::Builder::new()
        .name("keyring".into())
        .spawn(work)
        .map_err(|error| {
            let message = format!("starting the thread of the keyring: {error}");
            ToolError::new(ErrorCode::KeyringUnavailable, message)
        })?;
    Ok(sender)
}

fn ended() -> ToolError {
    let message = "the connection to the keyring broke";
    ToolError::new(ErrorCode::KeyringUnavailable, message)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    fn tasks_share_the_state_of_the_thread() {
        let worker = Worker::<Vec<u32>>::new(Duration::from_secs(60));
        for number in 0..3 {
            let add = move |state: &mut Vec<u32>, _: &Waiter| {
                state.push(number);
                Ok(state.clone())
            };
            assert_eq!(worker.run(add).unwrap(), (0..=number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_hanging_task_is_abandoned_and_never_awaited_again() {
        let worker = Worker::<u32>::new(Duration::from_millis(200));
        let (release, hung) = mpsc::channel::<()>();
        let start = Instant::now();
        let result = worker.run(move |state, _| {
            *state = 7;
            let _ = hung.recv();
            Ok(())
        });
        assert_eq!(result.unwrap_err().code, ErrorCode::KeyringTimeout);
        assert!(start.elapsed() < Duration::from_secs(30));
        let worker = Worker {
            deadline: Duration::from_secs(60),
            ..worker
        };
        // As long as it hangs so would the next one.
        let next = worker.run(|state, _| Ok(*state));
        let next = next.map_err(|error| error.code);
        assert_eq!(next, Err(ErrorCode::KeyringTimeout));
        assert!(start.elapsed() < Duration::from_secs(30));
        drop(release);
        let next = std::iter::repeat_with(|| worker.run(|state, _| Ok(*state)).ok());
        assert_eq!(next.flatten().next(), Some(7));
    }

    #[test]
    fn a_long_wait_causes_one_notice() {
        let mut worker = Worker::<()>::new(Duration::from_secs(60));
        let (sender, receiver) = mpsc::channel();
        let tries = AtomicU8::new(0);
        // At the first try something else is being said.
        worker.slow_notice = SlowNotice::with_notice(Arc::new(move |most| {
            sender.send(most).unwrap_or_default();
            tries.fetch_add(1, Ordering::SeqCst) > 0
        }));
        worker.run(|(), _| Ok(())).unwrap();
        assert_eq!(receiver.try_recv().ok(), None);
        std::thread::scope(|scope| {
            let (answer, answered) = mpsc::channel::<()>();
            let slow = scope.spawn(|| worker.run(move |(), _| Ok(answered.recv().is_err())));
            for _ in 0..2 {
                assert_eq!(receiver.recv().ok(), Some(Duration::from_secs(60)));
            }
            drop(answer);
            assert_eq!(slow.join().unwrap(), Ok(true));
        });
        assert_eq!(receiver.try_recv().ok(), None);
    }

    #[test]
    fn a_task_that_missed_its_start_never_runs() {
        let worker = Worker::<()>::new(Duration::from_millis(200));
        let (release, hung) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let result = worker.run(move |(), waiter| {
            waiter.check()?;
            let _ = hung.recv();
            let _ = sender.send(waiter.check().is_ok());
            Ok(())
        });
        assert_eq!(result.unwrap_err().code, ErrorCode::KeyringTimeout);
        drop(release);
        assert_eq!(receiver.recv(), Ok(false));
    }

    #[test]
    fn a_task_that_panics_is_an_error() {
        let worker = Worker::<u32>::new(Duration::from_secs(60));
        let result = worker.run::<()>(|_, _| panic!("on purpose"));
        assert_eq!(result.unwrap_err().code, ErrorCode::KeyringUnavailable);
        let next = (0..100).find_map(|_| worker.run(|state, _| Ok(*state)).ok());
        assert_eq!(next, Some(0));
    }
}
