//! Wakes the session's thread: at once, or at a point in time.
//!
//! Setting and clearing a timer for each sleep costs more than all other system calls of a command: both reprogram the
//! processor's clock. So a timer that is set stays set. A later sleep may be ended early by it and then sets it again;
//! all sleeps before that cost nothing.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use nix::poll::PollTimeout;
#[cfg(target_os = "linux")]
use nix::sys::{
    time::TimeSpec,
    timer::{Expiration, TimerSetTimeFlags},
    timerfd::{ClockId, TimerFd, TimerFlags},
};

use crate::host::error_hints::MissingResource;

/// Alarm of the session's thread, which callers set, too.
#[derive(Debug)]
pub(crate) struct Alarm {
    calls: UnixStream,
    caller: UnixStream,
    /// Absent when the system has none left.
    #[cfg(target_os = "linux")]
    timer: Option<TimerFd>,
    /// The time for which the timer was last set.
    #[cfg(target_os = "linux")]
    at: Mutex<Option<Instant>>,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    /// The system has no socket left.
    pub(crate) fn new() -> io::Result<Self> {
        let (calls, caller) = UnixStream::pair().map_err(MissingResource::of_sockets)?;
        calls.set_nonblocking(true)?;
        caller.set_nonblocking(true)?;
        Ok(Self {
            calls,
            caller,
            #[cfg(target_os = "linux")]
            timer: new_timer(),
            #[cfg(target_os = "linux")]
            at: Mutex::default(),
        })
    }

    /// Wakes the thread now.
    pub(crate) fn ring(&self) {
        // A full socket wakes as well.
        let _ = (&self.caller).write(&[1]);
    }

    /// Wakes the thread at a point in time, or before.
    pub(crate) fn ring_by(&self, due: Instant) {
        if !self.set_timer(due) {
            self.ring();
        }
    }

    /// Returns the descriptors that are readable when it rings.
    pub(crate) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        #[cfg(target_os = "linux")]
        let timer = self.timer.as_ref().map(AsFd::as_fd);
        #[cfg(not(target_os = "linux"))]
        let timer = None;
        [self.calls.as_fd()].into_iter().chain(timer)
    }

    /// Returns the time limit of a sleep until `due` that these descriptors may end.
    pub(crate) fn limit(&self, due: Option<Instant>) -> PollTimeout {
        let Some(due) = due.filter(|due| !self.set_timer(*due)) else {
            return PollTimeout::NONE;
        };
        let left = due.saturating_duration_since(Instant::now());
        // Rounded up: waking early would only mean to sleep again.
        PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
    }

    /// Makes all descriptors silent until it rings again.
    pub(crate) fn silence(&self) {
        let mut bytes = [0; 64];
        while (&self.calls)
            .read(&mut bytes)
            .is_ok_and(|count| count == bytes.len())
        {}
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer {
            let _ = timer.wait();
        }
    }

    /// Makes the timer readable at a point in time in the future, or before; returns false if that fails.
    #[cfg(target_os = "linux")]
    fn set_timer(&self, due: Instant) -> bool {
        let now = Instant::now();
        let Some(timer) = self.timer.as_ref().filter(|_| now < due) else {
            return false;
        };
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if at.is_some_and(|at| now < at && at <= due) {
            return true;
        }
        let left = TimeSpec::from_duration(due.saturating_duration_since(now));
        let is_set = timer
            .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
            .is_ok();
        *at = is_set.then_some(due);
        is_set
    }

    /// Returns false: this system has no such timer.
    #[cfg(not(target_os = "linux"))]
    fn set_timer(&self, _: Instant) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
fn new_timer() -> Option<TimerFd> {
    let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
    TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).ok()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, poll};

    use super::*;

    /// Sleeps until the alarm rings, or for a limited time; returns true if it rang.
    fn rings(alarm: &Alarm, limit: PollTimeout) -> bool {
        let sources = alarm.sources();
        let mut polled: Vec<_> = sources
            .map(|source| PollFd::new(source, PollFlags::POLLIN))
            .collect();
        poll(&mut polled, limit).unwrap() > 0
    }

    #[test]
    fn an_alarm_rings_in_time_for_every_sleep() {
        let alarm = Alarm::new().unwrap();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        // A later time is replaced, an earlier one stays.
        for due in [60_000, 20, 30] {
            assert_eq!(alarm.limit(Some(at(due))), PollTimeout::NONE);
        }
        assert_eq!(*alarm.at.lock().unwrap(), Some(at(20)));
        assert!(rings(&alarm, PollTimeout::from(10_000_u16)) && Instant::now() >= at(20));
        // After it rang it is silent until the next time.
        alarm.silence();
        assert!(!rings(&alarm, PollTimeout::ZERO));
        alarm.ring_by(Instant::now() + Duration::from_millis(5));
        assert!(rings(&alarm, PollTimeout::from(10_000_u16)));
    }

    #[test]
    fn a_time_that_is_over_ends_the_sleep() {
        let alarm = Alarm::new().unwrap();
        assert_eq!(alarm.limit(Some(Instant::now())), PollTimeout::ZERO);
        assert_eq!(alarm.limit(None), PollTimeout::NONE);
        alarm.ring_by(Instant::now());
        assert!(rings(&alarm, PollTimeout::ZERO));
        alarm.silence();
        assert!(!rings(&alarm, PollTimeout::ZERO));
        alarm.ring();
        assert!(rings(&alarm, PollTimeout::ZERO));
    }
}
