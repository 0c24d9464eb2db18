//! Timer for time limits of short waits.
//!
//! Setting and clearing a timer for each wait costs more than all other system calls of a command: both reprogram the
//! processor's clock. So a timer that is set stays set. A later wait may be woken early by it and then sets it again;
//! all waits before that cost nothing.

use std::os::fd::{AsFd, BorrowedFd};
#[cfg(target_os = "linux")]
use std::time::Instant;

#[cfg(target_os = "linux")]
use nix::sys::{
    time::TimeSpec,
    timer::{Expiration, TimerSetTimeFlags},
    timerfd::{ClockId, TimerFd, TimerFlags},
};

/// File descriptor that becomes readable at a point in time, or before.
#[derive(Debug)]
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: TimerFd,
    /// The time for which the timer was last set.
    #[cfg(target_os = "linux")]
    at: Option<Instant>,
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Creates a timer; returns `None` when the system has none left.
    pub(crate) fn new() -> Option<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).ok()?;
        Some(Self { timer, at: None })
    }

    /// Makes the descriptor readable at a point in time in the future, or before; returns false if that fails.
    pub(crate) fn set(&mut self, now: Instant, until: Instant) -> bool {
        if self.at.is_some_and(|at| now < at && at <= until) {
            return true;
        }
        let left = until.saturating_duration_since(now);
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        let is_set = self.timer.set(once, TimerSetTimeFlags::empty()).is_ok();
        self.at = is_set.then_some(until);
        is_set
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// Returns `None`: without timers only the session's thread reads the terminal.
    pub(crate) fn new() -> Option<Self> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.never {}
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    /// Waits until the alarm is readable.
    fn is_readable(alarm: &Alarm) -> bool {
        let mut polled = [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(10_000_u16)).unwrap() == 1
    }

    #[test]
    fn an_alarm_is_readable_in_time_for_every_wait() {
        let mut alarm = Alarm::new().unwrap();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        // A later time is replaced, an earlier one stays.
        assert!(
            alarm.set(start, at(60_000)) && alarm.set(start, at(20)) && alarm.set(start, at(30))
        );
        assert_eq!(alarm.at, Some(at(20)));
        assert!(is_readable(&alarm) && Instant::now() >= at(20));
        // After it was readable it is silent until the next time.
        assert!(alarm.set(at(20), at(60_000)));
        let mut polled = [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut polled, PollTimeout::ZERO), Ok(0));
        assert!(alarm.set(at(20), at(20)));
    }
}
