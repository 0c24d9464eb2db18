//! Detects what the job in the foreground does: read the terminal, poll it, work, or nothing because it is stopped.
//!
//! The kernel shows the system call each thread is blocked in. A read from the terminal, or a wait for descriptors
//! with the terminal among them, means that the job cannot continue without the user. A wait with a time limit, or for
//! other sources as well, ends by itself: the job accepts input, no more. Where the kernel does not show system calls,
//! the result comes from the modes of the terminal and from silence, and is only probable.

#[cfg(target_os = "linux")]
mod descriptors;
mod guess;
#[cfg(target_os = "linux")]
mod scan;
#[cfg(target_os = "linux")]
mod stuck_shell;
#[cfg(target_os = "linux")]
pub(crate) mod syscall;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices, Termios, tcgetattr};
use nix::unistd::tcgetpgrp;

use karyi_core::limits;
use karyi_core::secret::ByteSet;

use crate::sys;

pub(crate) use guess::Guess;
#[cfg(target_os = "linux")]
pub(crate) use scan::Scanner;

/// Result of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The shell waits for its next line: nothing runs.
    ShellIdle,
    /// The shell may wait for its next line: its own group is in the foreground and it has read every line.
    ShellSilent,
    /// A thread is blocked in a read of the terminal; the number identifies the thread and its place.
    Reading(u64),
    /// A program of another user runs, and the terminal's modes are those of a password prompt.
    Hidden,
    /// A thread waits for the terminal with a time limit, or for other sources as well.
    Accepting,
    /// Every process of the job is stopped.
    Stopped,
    /// Some processes of the job are stopped, others are not.
    PartlyStopped,
    /// The kernel does not show the job; this is a guess from the terminal.
    Opaque(Guess),
    /// The terminal was hung up: input and output are impossible.
    HungUp,
    /// The process with this id reads the shell's input.
    StealsInput(i32),
    /// None of these.
    Busy,
}

/// The terminal and the shell to scan.
#[derive(Debug)]
pub(crate) struct WatchedTerminal<'a> {
    pub(crate) shell: i32,
    pub(crate) master: &'a OwnedFd,
    /// The slave side of the terminal.
    pub(crate) slave: &'a OwnedFd,
    /// The shell's standard input.
    pub(crate) fifo: &'a OwnedFd,
    /// True if the kernel shows the system calls of threads.
    pub(crate) shows_syscalls: bool,
    /// True if the output ends within a line, as after a question.
    pub(crate) is_line_open: bool,
}

impl WatchedTerminal<'_> {
    /// Scans once.
    pub(crate) fn scan(&self, scanner: &mut Scanner) -> Activity {
        // With unread input a blocked reader continues in a moment. The poll makes the kernel deliver input that is on
        // its way.
        let state = poll_slave(self.slave);
        if state.contains(PollFlags::POLLHUP) || has_no_session(self.master) {
            return Activity::HungUp;
        }
        let has_input = state.contains(PollFlags::POLLIN);
        match self.scan_job(scanner) {
            activity @ (Activity::ShellIdle | Activity::ShellSilent | Activity::Stopped) => {
                activity
            }
            _ if has_input => Activity::Busy,
            activity => activity,
        }
    }

    #[cfg(target_os = "linux")]
    fn scan_job(&self, scanner: &mut Scanner) -> Activity {
        if self.shows_syscalls {
            return self.scan_processes(scanner);
        }
        self.scan_terminal_only()
    }

    #[cfg(not(target_os = "linux"))]
    fn scan_job(&self, _scanner: &mut Scanner) -> Activity {
        self.scan_terminal_only()
    }

    /// Scans where the kernel shows no process.
    fn scan_terminal_only(&self) -> Activity {
        let is_shell = tcgetpgrp(self.master).is_ok_and(|group| group.as_raw() == self.shell);
        let guess = self.guess();
        // A shell that asks a question has read every line, too.
        if is_shell && self.has_taken_lines() && guess == Guess::Nothing {
            return Activity::ShellSilent;
        }
        Activity::Opaque(guess)
    }

    /// Returns true if the shell has read every line it got.
    fn has_taken_lines(&self) -> bool {
        sys::bytes_waiting(self.fifo).is_ok_and(|count| count == 0)
    }

    /// Guesses from the terminal alone.
    fn guess(&self) -> Guess {
        tcgetattr(self.master).map_or(Guess::Nothing, |modes| {
            Guess::from_terminal(&modes, self.is_line_open)
        })
    }

    /// Returns true if the terminal the job reads is at a password prompt: it collects lines without echo.
    pub(crate) fn hides_input(&self, scanner: &Scanner) -> bool {
        let Ok(modes) = tcgetattr(self.master) else {
            return false;
        };
        is_password_prompt(&modes)
            || !modes.local_flags.contains(LocalFlags::ECHO) && scanner.hides_input_inside()
    }

    /// Returns true if bytes reach the job unchanged: neither our terminal nor an inner terminal that the job reads
    /// acts on one of them.
    pub(crate) fn passes_unchanged(&self, bytes: ByteSet, scanner: &Scanner) -> bool {
        let passes = |modes: &Termios| passes_unchanged(modes, bytes);
        bytes.is_empty()
            || tcgetattr(self.master).is_ok_and(|modes| passes(&modes))
                && scanner.modes_inside().is_none_or(|modes| passes(&modes))
    }

    /// Returns true if the terminal collects lines.
    pub(crate) fn is_canonical(&self) -> bool {
        tcgetattr(self.master).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ICANON))
    }
}

fn is_password_prompt(modes: &Termios) -> bool {
    modes.local_flags.contains(LocalFlags::ICANON) && !modes.local_flags.contains(LocalFlags::ECHO)
}

/// Returns true if a terminal in these modes passes bytes unchanged.
fn passes_unchanged(modes: &Termios, bytes: ByteSet) -> bool {
    use SpecialCharacterIndices as Place;
    let (local, input) = (modes.local_flags, modes.input_flags);
    let is_canonical = local.contains(LocalFlags::ICANON);
    let mut acted_on: Vec<Place> = Vec::new();
    if is_canonical {
        let lines = [
            Place::VEOF,
            Place::VEOL,
            Place::VEOL2,
            Place::VERASE,
            Place::VKILL,
        ];
        acted_on.extend(lines);
    }
    if is_canonical && local.contains(LocalFlags::IEXTEN) {
        acted_on.extend([Place::VWERASE, Place::VREPRINT, Place::VLNEXT]);
    }
    if local.contains(LocalFlags::ISIG) {
        acted_on.extend([Place::VINTR, Place::VQUIT, Place::VSUSP]);
    }
    if input.contains(InputFlags::IXON) {
        acted_on.extend([Place::VSTART, Place::VSTOP]);
    }
    let is_special = |place: &Place| {
        let byte = modes.control_chars.get(*place as usize).copied();
        byte.is_some_and(|byte| byte != 0 && bytes.has(byte))
    };
    let cuts = input.contains(InputFlags::ISTRIP) && (0x80..=u8::MAX).any(|byte| bytes.has(byte));
    // A program that reads keys takes them for keys.
    let is_key = |byte: u8| bytes.has(byte) && !(is_canonical && byte == b'\t');
    !cuts && !acted_on.iter().any(is_special) && !(0..b' ').chain([0x7f]).any(is_key)
}

/// Returns true if the terminal echoes input.
pub(crate) fn shows_input(master: impl AsFd) -> bool {
    tcgetattr(master).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ECHO))
}

/// Returns true if the terminal belongs to no session.
pub(crate) fn has_no_session(master: &OwnedFd) -> bool {
    tcgetpgrp(master).is_ok_and(|group| group.as_raw() == 0)
}

/// Polls the terminal for unread input and for a hang-up.
fn poll_slave(slave: &OwnedFd) -> PollFlags {
    let mut polled = [PollFd::new(slave.as_fd(), PollFlags::POLLIN)];
    let _ = nix::poll::poll(&mut polled, PollTimeout::ZERO);
    let [polled] = polled;
    polled.revents().unwrap_or(PollFlags::empty())
}

#[cfg(not(target_os = "linux"))]
impl WatchedTerminal<'_> {
    /// Not supported on this platform.
    pub(crate) fn kill_input_thief(&self, _pid: i32) {}

    /// Not supported on this platform.
    pub(crate) fn continue_stopped_copies(&self) -> bool {
        false
    }
}

/// Not supported on this platform.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Default)]
pub(crate) struct Scanner;

#[cfg(not(target_os = "linux"))]
impl Scanner {
    /// Returns false: inner terminals are unknown.
    fn hides_input_inside(&self) -> bool {
        false
    }

    /// Returns false: readers are unknown.
    pub(crate) fn has_seen_reading(&self, _pid: i32) -> bool {
        false
    }

    /// Returns `None`: inner terminals are unknown.
    fn modes_inside(&self) -> Option<Termios> {
        None
    }
}

/// Derives from several scans what the job certainly does.
#[derive(Debug)]
pub(crate) struct Watch {
    last: Option<Activity>,
    pause: Duration,
    /// The time of the first of the equal scans.
    since: Option<Instant>,
}

/// Conclusion from several scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The shell waits for its next line.
    Idle,
    /// The job waits for input.
    Reading(Certainty),
    /// The job has accepted input and done nothing else for this time.
    Accepting(Duration, Certainty),
    /// The job is stopped.
    Stopped,
    /// Some of the job is stopped, and the rest runs on.
    PartlyStopped,
    /// The process with this id reads the shell's input.
    StealsInput(i32),
    /// The terminal was hung up.
    HungUp,
    /// Nothing shows what the job does, and it has been silent for this time.
    Silent(Duration),
    /// Nothing is certain.
    Unknown,
}

/// Source of a finding: the kernel, or a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    Known,
    Probable,
}

impl Watch {
    /// Starts without any scan.
    pub(crate) fn new() -> Self {
        Self {
            last: None,
            pause: limits::WAIT_SCAN_MIN,
            since: None,
        }
    }

    /// Returns the pause before the next scan.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Returns how certain it is that the job accepts input, if the last scan found that.
    pub(crate) fn accepts(&self) -> Option<Certainty> {
        match self.last {
            Some(Activity::Accepting) => Some(Certainty::Known),
            Some(Activity::Opaque(Guess::Keys)) => Some(Certainty::Probable),
            _ => None,
        }
    }

    /// Returns true if the last scan saw the job at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.last == Some(Activity::Busy)
    }

    /// Returns true if the last scan saw the job stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.last == Some(Activity::Stopped)
    }

    /// Adds a scan and the processor time it took; only two equal ones in a row count.
    pub(crate) fn add(&mut self, activity: Activity, now: Instant, cost: Duration) -> Finding {
        let is_same = self.last == Some(activity);
        self.last = Some(activity);
        let since = self.since.filter(|_| is_same).unwrap_or(now);
        self.since = Some(since);
        let duration = now.saturating_duration_since(since);
        let longest = (cost * limits::WAIT_SCAN_SHARE)
            .clamp(limits::WAIT_SCAN_MAX, limits::WAIT_SCAN_REST_MAX);
        // The next scan may confirm this one, so it follows at once.
        self.pause = match activity {
            _ if is_same || activity == Activity::Busy => (self.pause * 2).min(longest),
            _ => limits::WAIT_SCAN_MIN,
        };
        // A large job gets no quick scans at the beginning either.
        if cost > limits::WAIT_SCAN_MIN && activity == Activity::Busy {
            self.pause = longest;
        }
        if is_same {
            finding_after(activity, duration)
        } else {
            Finding::Unknown
        }
    }
}

/// Returns the finding when scans have shown the same activity for a time.
fn finding_after(activity: Activity, duration: Duration) -> Finding {
    use Certainty::{Known, Probable};
    let is_quiet = duration >= limits::GUESS_QUIET;
    match activity {
        Activity::HungUp => Finding::HungUp,
        Activity::StealsInput(pid) => Finding::StealsInput(pid),
        Activity::ShellIdle => Finding::Idle,
        Activity::ShellSilent if is_quiet => Finding::Idle,
        Activity::Reading(_) => Finding::Reading(Known),
        Activity::Hidden if duration >= limits::HIDDEN_PROMPT_QUIET => Finding::Reading(Known),
        Activity::Opaque(Guess::Password) if duration >= limits::HIDDEN_PROMPT_QUIET => {
            Finding::Reading(Probable)
        }
        Activity::Opaque(Guess::Question) if is_quiet => Finding::Reading(Probable),
        Activity::Opaque(Guess::Keys) => Finding::Accepting(duration, Probable),
        Activity::Opaque(Guess::Nothing) | Activity::ShellSilent => Finding::Silent(duration),
        Activity::Stopped if duration >= limits::STOPPED_QUIET => Finding::Stopped,
        Activity::PartlyStopped if duration >= limits::STOPPED_QUIET => Finding::PartlyStopped,
        Activity::Accepting => Finding::Accepting(duration, Known),
        Activity::Hidden | Activity::Opaque(_) | Activity::Busy => Finding::Unknown,
        Activity::Stopped | Activity::PartlyStopped => Finding::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(activities: &[Activity], expected: &[Finding]) {
        let mut watch = Watch::new();
        let now = Instant::now();
        let found: Vec<_> = activities
            .iter()
            .map(|look| watch.add(*look, now, Duration::ZERO))
            .collect();
        assert_eq!(found, expected, "{activities:?}");
    }

    #[test]
    fn two_equal_scans_make_a_finding() {
        use Activity::{Accepting, Busy, Reading, ShellIdle, Stopped};
        let reading = Finding::Reading(Certainty::Known);
        check(&[Reading(1), Reading(1)], &[Finding::Unknown, reading]);
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
        let mut add = |activity, seconds| watch.add(activity, later(seconds), Duration::ZERO);
        assert_eq!(add(Activity::Accepting, 0), Finding::Unknown);
        let accepting =
            |seconds| Finding::Accepting(Duration::from_secs(seconds), Certainty::Known);
        assert_eq!(add(Activity::Accepting, 1), accepting(1));
        assert_eq!(add(Activity::Accepting, 3), accepting(3));
        assert_eq!(add(Activity::Busy, 4), Finding::Unknown);
        assert_eq!(add(Activity::Accepting, 5), Finding::Unknown);
        assert_eq!(add(Activity::Accepting, 6), accepting(1));
        assert_eq!(add(Activity::Hidden, 7), Finding::Unknown);
        assert_eq!(add(Activity::Hidden, 7), Finding::Unknown);
        assert_eq!(add(Activity::Hidden, 8), Finding::Reading(Certainty::Known));
        assert_eq!(add(Activity::Stopped, 9), Finding::Unknown);
        assert_eq!(add(Activity::Stopped, 10), Finding::Stopped);
    }

    #[test]
    fn scans_become_rarer_while_the_job_is_busy() {
        let mut watch = Watch::new();
        for _ in 0..10 {
            watch.add(Activity::Busy, Instant::now(), Duration::ZERO);
        }
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MAX);
        watch.add(Activity::Reading(1), Instant::now(), Duration::ZERO);
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MIN);
    }

    #[test]
    fn guesses_take_time_and_are_only_probable() {
        let start = Instant::now();
        let check = |activity, lasted_ms, expected| {
            let mut watch = Watch::new();
            let later = start + Duration::from_millis(lasted_ms);
            watch.add(activity, start, Duration::ZERO);
            let found = watch.add(activity, later, Duration::ZERO);
            assert_eq!(found, expected, "{activity:?} {lasted_ms}");
        };
        let duration = Duration::from_millis;
        let reading = Finding::Reading(Certainty::Probable);
        check(Activity::Opaque(Guess::Password), 49, Finding::Unknown);
        check(Activity::Opaque(Guess::Password), 50, reading);
        check(Activity::Opaque(Guess::Question), 999, Finding::Unknown);
        check(Activity::Opaque(Guess::Question), 1000, reading);
        let keys = Finding::Accepting(duration(9), Certainty::Probable);
        check(Activity::Opaque(Guess::Keys), 9, keys);
        check(
            Activity::Opaque(Guess::Nothing),
            9,
            Finding::Silent(duration(9)),
        );
        check(Activity::ShellSilent, 999, Finding::Silent(duration(999)));
        check(Activity::ShellSilent, 1000, Finding::Idle);
    }

    #[test]
    fn expensive_scans_become_rare() {
        let mut watch = Watch::new();
        let cost = Duration::from_millis(5);
        watch.add(Activity::Busy, Instant::now(), cost);
        assert_eq!(watch.pause(), cost * limits::WAIT_SCAN_SHARE);
        // Never for longer than somebody would wait.
        watch.add(Activity::Busy, Instant::now(), Duration::from_secs(100));
        assert_eq!(watch.pause(), limits::WAIT_SCAN_REST_MAX);
        watch.add(Activity::Reading(1), Instant::now(), cost);
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MIN);
    }
}
