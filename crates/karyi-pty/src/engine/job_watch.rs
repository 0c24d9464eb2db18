//! Watches what the job in the foreground waits for.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use karyi_core::limits;
use karyi_core::secret::ByteSet;

use crate::engine::state::{Shared, State};
use crate::terminal::live_shell::LiveShell;
use crate::wait::{Certainty, Finding, Scanner, Watch};

/// History of the scans of a job, and the time of the next one.
pub(crate) struct JobWatch {
    watch: Watch,
    scanner: Scanner,
    /// Numbers of the job and the call that it is about.
    watched: (u64, u64),
    next_scan: Instant,
    /// Number of consecutive looks at a shell that had lost its input, and the time of the last one.
    lost_input: (u32, Instant),
}

impl JobWatch {
    /// Creates a watch without a job.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            watch: Watch::new(),
            scanner: Scanner::default(),
            watched: (0, 0),
            next_scan: now,
            lost_input: (0, now),
        }
    }

    /// Forgets all scans because the job made progress.
    pub(crate) fn reset(&mut self) {
        self.watch = Watch::new();
        self.next_scan = Instant::now() + self.watch.pause();
    }

    /// Follows the job in the foreground and its call; returns true if one of them is new.
    pub(crate) fn follow(&mut self, watched: (u64, u64)) -> bool {
        if self.watched == watched {
            return false;
        }
        let is_same_job = self.watched.0 == watched.0;
        self.watched = watched;
        // The end of a call changes nothing about its job.
        if watched.1 != 0 || !is_same_job {
            self.reset();
        }
        // A new job acts first, and often ends in less time than a scan takes.
        if is_same_job {
            self.scan_at(Instant::now());
        }
        true
    }

    /// Returns true if it is about the job and the call of a state.
    pub(crate) fn is_about(&self, state: &State) -> bool {
        state.watched() == self.watched
    }

    /// Sets the time of the next scan.
    pub(crate) fn scan_at(&mut self, at: Instant) {
        self.next_scan = at;
    }

    /// Returns the time of the next scan.
    pub(crate) fn next_scan(&self) -> Instant {
        self.next_scan
    }

    /// Scans the job, also for callers that only ask for its state.
    pub(crate) fn scan(&mut self, live: &LiveShell, shared: &Shared) -> Finding {
        live.continue_if_stopped();
        let start = processor_time();
        let activity = live.watched_terminal().scan(&mut self.scanner);
        let now = Instant::now();
        let cost = processor_time().saturating_sub(start);
        self.watch
            .note_processor_time(self.scanner.processor_time());
        let finding = self.watch.add(activity, now, cost);
        let mut state = shared.lock();
        let job = state.watched().0;
        state.seen.observation.record(job, finding, &self.watch);
        let is_attached = state.call.is_some() || state.seen.observation.has_waiters();
        self.next_scan = now
            + match is_attached {
                true => self.watch.pause(),
                false => limits::WAIT_SCAN_DETACHED,
            };
        // A scan from before the call is no result for it.
        match self.is_about(&state) {
            true => finding,
            false => Finding::Unknown,
        }
    }

    /// Returns how certain it is that the job has done nothing but accept input for long enough to say so.
    pub(crate) fn accepts_quietly(&self) -> Option<Certainty> {
        self.watch.accepts_quietly(Instant::now())
    }

    /// Returns true if the last scan saw the job stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.watch.is_stopped()
    }

    /// Returns true if the terminal hides what is typed.
    pub(crate) fn hides_input(&self, live: &LiveShell) -> bool {
        live.watched_terminal().hides_input(&self.scanner)
    }

    /// Returns true if the terminal passes these bytes on as they are.
    pub(crate) fn passes_unchanged(&self, bytes: ByteSet, live: &LiveShell) -> bool {
        live.watched_terminal()
            .passes_unchanged(bytes, &self.scanner)
    }

    /// Returns true if the last scan saw the shell itself read the terminal.
    pub(crate) fn shell_reads_terminal(&self, live: &LiveShell) -> bool {
        self.scanner.has_seen_reading(live.pid)
    }

    /// Returns true if a job has closed the shell's input; `may_close` says that its script may do so. The shell then
    /// retries the read forever and may print errors, so silence is no condition.
    pub(crate) fn has_lost_input(
        &mut self,
        may_close: bool,
        script: (u64, u64),
        live: &LiveShell,
    ) -> bool {
        let now = Instant::now();
        let (scans, last) = self.lost_input;
        if !may_close {
            self.lost_input = (0, now);
            return false;
        }
        if now.saturating_duration_since(last) < limits::WAIT_SCAN_MAX {
            return false;
        }
        let scans = match live.has_lost_input(script) {
            true => scans + 1,
            false => 0,
        };
        self.lost_input = (scans, now);
        scans >= limits::STUCK_SHELL_SCANS
    }
}

/// Returns the processor time of this thread. On a busy machine a scan may take long and cost little.
fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}
