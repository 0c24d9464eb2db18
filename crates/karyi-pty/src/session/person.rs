//! A person at the terminal of a session: what they type and see passes as it is.

use std::io;

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::session::Session;
use crate::terminal::key::Key;

/// Byte of Ctrl+C.
const INTERRUPT: u8 = 3;

impl Session {
    /// Gives the terminal to a person, or takes it back. Meanwhile no call ends because its job waits for input, line
    /// feeds of its output come with a carriage return where a terminal would add one, and the session does not reply to
    /// queries, because the terminal of the person does. A stopped job goes on.
    pub fn give_to_person(&self, is_given: bool) {
        let mut state = self.shared().lock();
        state.person.has_terminal = is_given;
        let live = state.shell.live.clone().filter(|_| state.job.is_some());
        drop(state);
        if let Some(group) = live
            .filter(|_| is_given)
            .and_then(|live| live.foreground_group())
        {
            let _ = group.signal_at_once(Signal::SIGCONT);
        }
        self.shared().alarm.ring();
    }

    /// Types keys of the person who has the terminal into the job, as they are. Returns the number of bytes that the
    /// terminal took; nothing when no job runs.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn type_as_is(&self, keys: &[u8]) -> io::Result<Option<usize>> {
        let mut state = self.shared().lock();
        let Some(live) = state.shell.live.clone().filter(|_| state.job.is_some()) else {
            return Ok(None);
        };
        if keys.contains(&INTERRUPT) {
            state.record_key(Key::INTERRUPT);
        }
        let count = match nix::unistd::write(&live.master, keys) {
            Ok(count) => count,
            // It is full of keys that were not read.
            Err(Errno::EAGAIN | Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if let Some(job) = &mut state.job {
            job.typed.add(keys.get(..count).unwrap_or_default());
        }
        Ok(Some(count))
    }
}
