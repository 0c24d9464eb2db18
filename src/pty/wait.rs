//! What the job in the foreground is doing: reading the terminal, looking at it, stopped, or busy.
//!
//! The kernel shows for every thread the system call it is blocked in. A read from the terminal, or
//! a wait for several descriptors with the terminal among them, means that the job cannot go on
//! without the user. A wait with a time limit goes on by itself: the job accepts input, no more.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::termios::{LocalFlags, tcgetattr};

use crate::limits;

/// What was seen in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// The shell waits for its next line: nothing runs.
    ShellIdle,
    /// A thread is blocked until the terminal gives it something; the number stands for which one,
    /// and where.
    Reading(u64),
    /// A program of another user runs and the terminal asks for a password: it can be about to.
    Hidden,
    /// A thread waits for the terminal with a time limit.
    Accepting,
    /// Every process of the job is stopped.
    Stopped,
    /// None of these.
    Busy,
}

/// The terminal and shell that are looked at.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) shell: i32,
    pub(super) master: &'a OwnedFd,
    /// The terminal's other side.
    pub(super) slave: &'a OwnedFd,
    /// The shell's standard input.
    pub(super) fifo: &'a OwnedFd,
}

impl Subject<'_> {
    /// Looks once.
    pub(super) fn look(&self) -> Activity {
        // Input that nobody has taken yet makes a blocked reader go on in a moment. Asking first
        // makes the kernel pass on what is still on its way.
        let has_input = is_readable(self.slave);
        match self.look_at_processes() {
            Activity::Reading(_) | Activity::Hidden | Activity::Accepting if has_input => {
                Activity::Busy
            }
            activity => activity,
        }
    }

    /// Whether the terminal hides what is typed but still reads whole lines: a password prompt.
    pub(super) fn hides_input(&self) -> bool {
        tcgetattr(self.master).is_ok_and(|modes| {
            modes.local_flags.contains(LocalFlags::ICANON)
                && !modes.local_flags.contains(LocalFlags::ECHO)
        })
    }
}

/// Whether the terminal shows what is typed.
pub(super) fn shows_input(master: impl AsFd) -> bool {
    tcgetattr(master).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ECHO))
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    nix::poll::poll(&mut asked, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

/// Decides from several looks what the job is doing for certain.
#[derive(Debug)]
pub(super) struct Watch {
    last: Option<Activity>,
    pause: Duration,
    /// When the last look's activity was first seen.
    since: Option<Instant>,
}

/// What is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Idle,
    Reading,
    /// The job accepts input, and for how long it has done nothing else.
    Accepting(Duration),
    Stopped,
    Unknown,
}

impl Watch {
    /// Starts afresh: something has happened.
    pub(super) fn new() -> Self {
        Self {
            last: None,
            pause: limits::WAIT_SCAN_MIN,
            since: None,
        }
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Whether the last look saw the job accept input.
    pub(super) fn accepts(&self) -> bool {
        self.last == Some(Activity::Accepting)
    }

    /// Takes in a look; only two equal ones in a row count.
    pub(super) fn add(&mut self, activity: Activity, now: Instant) -> Finding {
        let is_same = self.last == Some(activity);
        self.last = Some(activity);
        // A look that may be confirmed by the next one is followed by it at once.
        self.pause = match activity {
            Activity::Busy => (self.pause * 2).min(limits::WAIT_SCAN_MAX),
            _ if is_same => (self.pause * 2).min(limits::WAIT_SCAN_MAX),
            _ => limits::WAIT_SCAN_MIN,
        };
        let since = if is_same {
            self.since.unwrap_or(now)
        } else {
            now
        };
        self.since = Some(since);
        let lasted = now.saturating_duration_since(since);
        match activity {
            _ if !is_same => Finding::Unknown,
            Activity::ShellIdle => Finding::Idle,
            Activity::Reading(_) => Finding::Reading,
            Activity::Hidden if lasted >= limits::HIDDEN_PROMPT_QUIET => Finding::Reading,
            Activity::Stopped if lasted >= limits::STOPPED_QUIET => Finding::Stopped,
            Activity::Hidden | Activity::Stopped | Activity::Busy => Finding::Unknown,
            Activity::Accepting => Finding::Accepting(lasted),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! The looks themselves.

    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::io::ErrorKind;
    use std::os::linux::fs::MetadataExt;

    use nix::unistd::tcgetpgrp;

    use super::super::process::{self, Process};
    use super::super::sys;
    use super::super::syscall::{self, Blocked};
    use super::{Activity, Subject};

    /// The device number of `/dev/tty`.
    const CONTROLLING_TERMINAL: u64 = 5 << 8;

    impl Subject<'_> {
        pub(super) fn look_at_processes(&self) -> Activity {
            if self.is_shell_idle() {
                return Activity::ShellIdle;
            }
            let Ok(group) = tcgetpgrp(self.master) else {
                return Activity::Busy;
            };
            let mut members = process::group_members(self.shell, group.as_raw());
            members.retain(|member| !member.is_zombie());
            if is_stopped(&members) && waits_for_child(self.shell) {
                return Activity::Stopped;
            }
            self.look_at(&members)
        }

        /// Whether the shell has read every line and waits for more.
        fn is_shell_idle(&self) -> bool {
            if sys::bytes_waiting(self.fifo).is_ok_and(|count| count > 0) {
                return false;
            }
            let fifo = file_of_own(self.fifo);
            matches!(
                syscall::blocked_in(self.shell, self.shell),
                Ok(Blocked::Read(descriptor)) if fifo.is_some() && file_of(self.shell, descriptor) == fifo
            )
        }

        fn look_at(&self, members: &[Process]) -> Activity {
            let terminal = device_of_own(self.slave);
            let mut activity = Activity::Busy;
            for member in members {
                for thread in process::threads(member.pid) {
                    match self.look_at_thread(member.pid, thread, terminal) {
                        found @ Activity::Reading(_) => return found,
                        found @ (Activity::Accepting | Activity::Hidden) => activity = found,
                        _ => {}
                    }
                }
            }
            activity
        }

        fn look_at_thread(&self, pid: i32, thread: i32, terminal: Option<u64>) -> Activity {
            let is_ours = |descriptor: i32| {
                let device = device_of(pid, descriptor);
                device.is_some() && (device == terminal || device == Some(CONTROLLING_TERMINAL))
            };
            let (is_terminal, has_limit) = match syscall::blocked_in(pid, thread) {
                Ok(Blocked::Read(descriptor)) => (is_ours(descriptor), false),
                Ok(Blocked::Wait(descriptors, has_limit)) => {
                    (descriptors.into_iter().any(is_ours), has_limit)
                }
                Ok(Blocked::Child | Blocked::Other) => (false, false),
                // A program of another user, like sudo: its terminal modes tell.
                Err(error) if error.kind() == ErrorKind::PermissionDenied && self.hides_input() => {
                    return Activity::Hidden;
                }
                Err(_) => (false, false),
            };
            match (is_terminal, has_limit) {
                (false, _) => Activity::Busy,
                (true, true) => Activity::Accepting,
                (true, false) => Activity::Reading(fingerprint(pid, thread)),
            }
        }
    }

    /// Whether a job cannot go on until it is continued: everything is stopped, or waits for what
    /// is. A shell that takes notice of the stop is awake already and goes on.
    fn is_stopped(members: &[Process]) -> bool {
        members.iter().any(Process::is_stopped)
            && members
                .iter()
                .all(|member| member.is_stopped() || waits_for_child(member.pid))
    }

    fn waits_for_child(pid: i32) -> bool {
        matches!(syscall::blocked_in(pid, pid), Ok(Blocked::Child))
    }

    /// Returns a number for the place where a thread is blocked.
    fn fingerprint(pid: i32, thread: i32) -> u64 {
        let mut hasher = DefaultHasher::new();
        let place = std::fs::read(format!("/proc/{pid}/task/{thread}/syscall"));
        (pid, thread, place.unwrap_or_default()).hash(&mut hasher);
        hasher.finish()
    }

    fn device_of(pid: i32, descriptor: i32) -> Option<u64> {
        let file = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        Some(file.st_rdev())
    }

    fn file_of(pid: i32, descriptor: i32) -> Option<(u64, u64)> {
        let file = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        Some((file.st_dev(), file.st_ino()))
    }

    fn file_of_own(descriptor: &std::os::fd::OwnedFd) -> Option<(u64, u64)> {
        let file = nix::sys::stat::fstat(descriptor).ok()?;
        Some((file.st_dev, file.st_ino))
    }

    fn device_of_own(descriptor: &std::os::fd::OwnedFd) -> Option<u64> {
        Some(nix::sys::stat::fstat(descriptor).ok()?.st_rdev)
    }
}

#[cfg(not(target_os = "linux"))]
impl Subject<'_> {
    /// Without `/proc` only a password prompt is told apart.
    fn look_at_processes(&self) -> Activity {
        if self.hides_input() {
            return Activity::Hidden;
        }
        Activity::Busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[Activity], expected: &[Finding]) {
        let mut watch = Watch::new();
        let now = Instant::now();
        let found: Vec<_> = looks.iter().map(|look| watch.add(*look, now)).collect();
        assert_eq!(found, expected, "{looks:?}");
    }

    #[test]
    fn two_equal_looks_make_a_finding() {
        use Activity::{Accepting, Busy, Reading, ShellIdle, Stopped};
        check(
            &[Reading(1), Reading(1)],
            &[Finding::Unknown, Finding::Reading],
        );
        check(
            &[Reading(1), Reading(2)],
            &[Finding::Unknown, Finding::Unknown],
        );
        check(&[Busy, Busy, Busy], &[Finding::Unknown; 3]);
        check(&[Stopped, Stopped], &[Finding::Unknown; 2]);
        check(&[ShellIdle, ShellIdle], &[Finding::Unknown, Finding::Idle]);
        check(&[Accepting, Busy, Accepting], &[Finding::Unknown; 3]);
    }

    #[test]
    fn some_findings_take_time() {
        let mut watch = Watch::new();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut add = |activity, seconds| watch.add(activity, later(seconds));
        assert_eq!(add(Activity::Accepting, 0), Finding::Unknown);
        let accepting = |seconds| Finding::Accepting(Duration::from_secs(seconds));
        assert_eq!(add(Activity::Accepting, 1), accepting(1));
        assert_eq!(add(Activity::Accepting, 3), accepting(3));
        assert_eq!(add(Activity::Busy, 4), Finding::Unknown);
        assert_eq!(add(Activity::Accepting, 5), Finding::Unknown);
        assert_eq!(add(Activity::Accepting, 6), accepting(1));
        assert_eq!(add(Activity::Hidden, 7), Finding::Unknown);
        assert_eq!(add(Activity::Hidden, 7), Finding::Unknown);
        assert_eq!(add(Activity::Hidden, 8), Finding::Reading);
        assert_eq!(add(Activity::Stopped, 9), Finding::Unknown);
        assert_eq!(add(Activity::Stopped, 10), Finding::Stopped);
    }

    #[test]
    fn looks_become_rarer_while_the_job_is_busy() {
        let mut watch = Watch::new();
        for _ in 0..10 {
            watch.add(Activity::Busy, Instant::now());
        }
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MAX);
        watch.add(Activity::Reading(1), Instant::now());
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MIN);
    }
}
