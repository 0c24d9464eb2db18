//! What the session's thread saw last of the job in the foreground, and who asks for it.
//!
//! One thread scans at a job, with one memory of what it saw before; whoever else wants to know
//! asks it to look again and takes what it found.

use tokio::sync::oneshot;

use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::wait::{Finding, Watch};

/// What was seen last.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// How often was looked at all.
    pub(crate) scans: u64,
    /// Who waits for a new look.
    pub(crate) waiters: Vec<oneshot::Sender<()>>,
    /// The job and what it did.
    last: Option<(u64, Status)>,
    /// Looks since somebody asked.
    scans_since_request: usize,
}

impl Observation {
    /// Returns true if nobody has looked yet for those who ask.
    pub(crate) fn is_due(&self) -> bool {
        self.has_waiters() && self.scans_since_request == 0
    }

    /// Returns true if somebody waits for a look.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Returns what was last seen of a job.
    pub(crate) fn status_of(&self, job: u64) -> Status {
        let last = self.last.filter(|(seen, _)| *seen == job);
        last.map_or(Status::Running, |(_, status)| status)
    }

    /// Takes in a look at a job. Who asks is told once something is certain, a second look sees it
    /// busy, or after a few scans at a job that never does the same twice.
    pub(crate) fn record(&mut self, job: u64, finding: Finding, watch: &Watch) {
        self.scans += 1;
        self.last = Some((job, status(finding, watch)));
        if !self.has_waiters() {
            return;
        }
        self.scans_since_request += 1;
        let is_certain = finding != Finding::Unknown;
        let is_busy = self.scans_since_request > 1 && watch.is_busy();
        if is_certain || is_busy || self.scans_since_request >= limits::MAX_ASKED_LOOKS {
            self.notify_waiters();
        }
    }

    /// Tells all who ask that there is nothing more to see.
    pub(crate) fn notify_waiters(&mut self) {
        self.scans_since_request = 0;
        for waiter in self.waiters.drain(..) {
            // One that is gone wants no answer.
            let _ = waiter.send(());
        }
    }
}

/// Returns a finding in the words of a result.
fn status(finding: Finding, watch: &Watch) -> Status {
    match finding {
        Finding::Reading(_) => Status::AwaitingInput,
        Finding::Accepting(..) => Status::AcceptsInput,
        Finding::Stopped => Status::Stopped,
        _ if watch.accepts().is_some() => Status::AcceptsInput,
        _ => Status::Running,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::wait::Activity;

    /// Looks again and again while somebody asks; returns the scans until the answer, and what is
    /// known then.
    fn ask(
        observation: &mut Observation,
        watch: &mut Watch,
        activity: impl Fn(u64) -> Activity,
    ) -> (u64, Status) {
        let (reply, mut answer) = oneshot::channel();
        observation.waiters.push(reply);
        let before = observation.scans;
        while answer.try_recv().is_err() {
            let finding = watch.add(activity(observation.scans), Instant::now(), Duration::ZERO);
            observation.record(1, finding, watch);
        }
        (observation.scans - before, observation.status_of(1))
    }

    #[test]
    fn who_asks_is_told_what_is_certain() {
        let (mut observation, mut watch) = (Observation::default(), Watch::new());
        let reading = (2, Status::AwaitingInput);
        assert_eq!(
            ask(&mut observation, &mut watch, |_| Activity::Reading(1)),
            reading
        );
        assert_eq!(observation.status_of(2), Status::Running);
        let known = (1, Status::AwaitingInput);
        assert_eq!(
            ask(&mut observation, &mut watch, |_| Activity::Reading(1)),
            known
        );
        let busy = (2, Status::Running);
        assert_eq!(ask(&mut observation, &mut watch, |_| Activity::Busy), busy);
        let moving = (limits::MAX_ASKED_LOOKS as u64, Status::Running);
        assert_eq!(ask(&mut observation, &mut watch, Activity::Reading), moving);
    }
}
