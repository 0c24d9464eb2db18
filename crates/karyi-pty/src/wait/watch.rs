//! Derives from several scans what the job in the foreground certainly does.

use std::time::{Duration, Instant};

use karyi_core::limits;

use super::guess::Guess;
use super::watched_terminal::Activity;

/// Derives from several scans what the job certainly does.
#[derive(Debug)]
pub(crate) struct Watch {
    last: Option<Activity>,
    pause: Duration,
    /// The time of the first of the equal scans.
    since: Option<Instant>,
    /// The time since which the job has accepted input. One scan in a row may see it busy: it wakes to poll.
    accepting_since: Option<Instant>,
    /// Processor time of the job at that time.
    processor_time: Option<Duration>,
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
            accepting_since: None,
            processor_time: None,
        }
    }

    /// Restarts the time of silence if the job has used the processor.
    pub(crate) fn note_processor_time(&mut self, used: Option<Duration>) {
        let Some(used) = used else {
            return;
        };
        let before = self.processor_time.unwrap_or(used);
        let is_idle = used.abs_diff(before) <= limits::IDLE_PROCESSOR_TIME;
        if !is_idle {
            self.accepting_since = None;
        }
        self.processor_time = Some(if is_idle { before } else { used });
    }

    /// Returns the pause before the next scan.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Returns how certain it is that the job has done nothing but accept input for long enough to say so.
    pub(crate) fn accepts_quietly(&self, now: Instant) -> Option<Certainty> {
        let quiet = now.saturating_duration_since(self.accepting_since?);
        self.accepts()
            .filter(|_| quiet >= limits::ACCEPTS_INPUT_QUIET)
    }

    /// Returns how certain it is that the job accepts input, if the last scan found that.
    pub(crate) fn accepts(&self) -> Option<Certainty> {
        match self.last.filter(|last| last.accepts_input())? {
            Activity::Accepting => Some(Certainty::Known),
            _ => Some(Certainty::Probable),
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
        if activity.accepts_input() {
            self.accepting_since = self.accepting_since.or(Some(now));
        } else if is_same || activity != Activity::Busy {
            self.accepting_since = None;
        }
        let begun = self.accepting_since.filter(|_| activity.accepts_input());
        let duration = now.saturating_duration_since(begun.unwrap_or(since));
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
        assert_eq!(add(Activity::Accepting, 4), Finding::Unknown);
        assert_eq!(add(Activity::Accepting, 4), accepting(4));
        assert_eq!(add(Activity::Busy, 5), Finding::Unknown);
        assert_eq!(add(Activity::Busy, 5), Finding::Unknown);
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
    fn use_of_the_processor_ends_the_silence() {
        let mut watch = Watch::new();
        let start = Instant::now();
        let mut quiet_after = |seconds, used_ms| {
            let now = start + Duration::from_secs(seconds);
            watch.note_processor_time(Some(Duration::from_millis(used_ms)));
            watch.add(Activity::Accepting, now, Duration::ZERO);
            watch.accepts_quietly(now).is_some()
        };
        assert!(!quiet_after(0, 500));
        assert!(!quiet_after(2, 520));
        assert!(quiet_after(3, 530));
        assert!(!quiet_after(4, 900));
        assert!(!quiet_after(6, 900));
        assert!(quiet_after(7, 900));
    }

    #[test]
    fn expensive_scans_become_rare() {
        let mut watch = Watch::new();
        let cost = Duration::from_millis(5);
        watch.add(Activity::Busy, Instant::now(), cost);
        assert_eq!(watch.pause(), cost * limits::WAIT_SCAN_SHARE);
        // The pause has an upper limit.
        watch.add(Activity::Busy, Instant::now(), Duration::from_secs(100));
        assert_eq!(watch.pause(), limits::WAIT_SCAN_REST_MAX);
        watch.add(Activity::Reading(1), Instant::now(), cost);
        assert_eq!(watch.pause(), limits::WAIT_SCAN_MIN);
    }
}
