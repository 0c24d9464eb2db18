//! A thread that speaks to the keyring, so that a keyring that hangs holds up nobody for long.
//!
//! Nothing ends a call that hangs inside the bus or behind a dialog nobody sees: at its deadline the
//! thread is left to itself, with all it holds, and the next call gets a new one, but none is made as long
//! as that one hangs. The end of the process does not wait for it. What such a call did not begin to change
//! by then it never changes; what it did begin to change may change until it ends, and it keeps the lock of
//! that as long.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::patience::Patience;
use super::progress::Progress;
use crate::error::{ErrorCode, ToolError};

type Task<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Runs tasks one after another, in a thread that keeps an `S` between them.
pub(super) struct Worker<S> {
    deadline: Duration,
    pub(super) patience: Patience,
    tasks: Mutex<Option<Sender<Task<S>>>>,
}

impl<S: Default + 'static> Worker<S> {
    /// Makes a worker whose tasks may take so long each. Its thread starts with the first one.
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            patience: Patience::default(),
            tasks: Mutex::new(None),
        }
    }

    /// Runs a task and waits for it. It says when it begins to change something.
    ///
    /// # Errors
    /// What the task says, or `keyring_timeout`.
    pub(super) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut S, &Progress) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let mut tasks = self.tasks();
        if self.patience.is_over() {
            return Err(self.timeout());
        }
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let noted = Arc::clone(&progress);
        // Kept until its end: what is kept there is given back then.
        let task: Task<S> = Box::new(move |state| drop(sender.send(task(state, &noted))));
        let thread = match tasks.take() {
            Some(thread) => thread,
            None => start()?,
        };
        if thread.send(task).is_err() {
            return Err(ended());
        }
        let result = self.wait(&receiver, &progress);
        let is_abandoned = result
            .as_ref()
            .is_err_and(|error| error.code == ErrorCode::KeyringTimeout);
        if is_abandoned {
            self.patience.give_up(Arc::downgrade(&progress));
        } else {
            *tasks = Some(thread);
        }
        result
    }

    fn wait<T>(
        &self,
        receiver: &Receiver<Result<T, ToolError>>,
        progress: &Progress,
    ) -> Result<T, ToolError> {
        let error = match self.patience.receive(receiver, self.deadline) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => ended(),
            Err(RecvTimeoutError::Timeout) => self.timeout(),
        };
        Err(if progress.leave() {
            open_end(error)
        } else {
            error
        })
    }

    fn timeout(&self) -> ToolError {
        let seconds = self.deadline.as_secs_f32();
        let message = format!("the keyring did not answer within {seconds} s");
        ToolError::new(ErrorCode::KeyringTimeout, message)
    }

    // A poisoned lock only means that another thread panicked between two tasks.
    fn tasks(&self) -> MutexGuard<'_, Option<Sender<Task<S>>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Returns the error of a change whose end nobody saw.
fn open_end(error: ToolError) -> ToolError {
    let message = format!(
        "{}; what it was asked to change may have been changed, or may be yet",
        error.message
    );
    ToolError::new(error.code, message)
        .with_hint("once the keyring answers, look with `karyi var list`, and do it again")
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
    use crate::vault::store::disk;

    #[test]
    fn tasks_share_what_the_thread_keeps() {
        let worker = Worker::<Vec<u32>>::new(Duration::from_secs(60));
        for number in 0..3 {
            let add = move |state: &mut Vec<u32>, _: &Progress| {
                state.push(number);
                Ok(state.clone())
            };
            assert_eq!(worker.run(add).unwrap(), (0..=number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_task_that_hangs_is_abandoned_and_nobody_waits_for_it_again() {
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
        assert_eq!(next.flatten().next(), Some(0));
    }

    #[test]
    fn whoever_waits_for_long_is_told_once() {
        let mut worker = Worker::<()>::new(Duration::from_secs(60));
        let (tell, told) = mpsc::channel();
        let tries = AtomicU8::new(0);
        // At the first try something else is being said.
        worker.patience.notice = Some(Arc::new(move |most| {
            tell.send(most).unwrap_or_default();
            tries.fetch_add(1, Ordering::SeqCst) > 0
        }));
        worker.run(|(), _| Ok(())).unwrap();
        assert_eq!(told.try_recv().ok(), None);
        std::thread::scope(|scope| {
            let (answer, answered) = mpsc::channel::<()>();
            let slow = scope.spawn(|| worker.run(move |(), _| Ok(answered.recv().is_err())));
            for _ in 0..2 {
                assert_eq!(told.recv().ok(), Some(Duration::from_secs(60)));
            }
            drop(answer);
            assert_eq!(slow.join().unwrap(), Ok(true));
        });
        assert_eq!(told.try_recv().ok(), None);
    }

    /// Runs a task that hangs before or after it begins to change something. Returns the error, and whether it went
    /// on to change it once nobody waited any more.
    fn left(begins: bool) -> (ToolError, bool) {
        let worker = Worker::<()>::new(Duration::from_millis(200));
        let (release, hung) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let result = worker.run(move |(), progress| {
            if begins {
                progress.begin()?;
            }
            let _ = hung.recv();
            let _ = tell.send(progress.begin().is_ok());
            Ok(())
        });
        drop(release);
        (result.unwrap_err(), told.recv().unwrap())
    }

    #[test]
    fn what_was_not_begun_in_time_is_never_done() {
        let (error, is_done) = left(false);
        assert_eq!(
            (error.code, error.message.as_str(), is_done),
            (
                ErrorCode::KeyringTimeout,
                "the keyring did not answer within 0.2 s",
                false
            )
        );
        let (error, is_done) = left(true);
        assert_eq!(
            (error.code, error.message.as_str(), is_done),
            (
                ErrorCode::KeyringTimeout,
                "the keyring did not answer within 0.2 s; what it was asked to change may have been changed, or may \
                 be yet",
                true
            )
        );
    }

    #[test]
    fn what_may_be_done_yet_keeps_its_lock_until_it_ends() {
        for begins in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("x");
            let worker = Worker::<()>::new(Duration::from_millis(200));
            let (release, hung) = mpsc::channel::<()>();
            let result = worker.run(move |(), progress| {
                if begins {
                    progress.begin()?;
                }
                let _ = hung.recv();
                Ok(())
            });
            assert_eq!(result.unwrap_err().code, ErrorCode::KeyringTimeout);
            let is_free = || disk::lock_if_free(&path).unwrap().is_some();
            worker.patience.hold(disk::lock(&path).unwrap());
            assert_eq!(is_free(), !begins);
            drop(release);
            while !is_free() {
                std::thread::yield_now();
            }
        }
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
