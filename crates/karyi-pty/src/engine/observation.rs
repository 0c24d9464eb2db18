//! The last observed state of the job in the foreground.
//!
//! Only the session's thread scans a job, with one history of scans. Other callers request a new scan from it and read
//! its result.

use tokio::sync::oneshot;

use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::wait::{Finding, Watch};

/// Last observed state of a job, and the requests for a new one.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// Number of scans.
    pub(crate) scans: u64,
    /// Callers that wait for a new scan.
    pub(crate) waiters: Vec<oneshot::Sender<()>>,
    /// Number of the job, and its state.
    last: Option<(u64, Status)>,
    /// Scans since the first waiting request.
    scans_since_request: usize,
}

impl Observation {
    /// Returns true if callers wait and no scan was made for them yet.
    pub(crate) fn is_due(&self) -> bool {
        self.has_waiters() && self.scans_since_request == 0
    }

    /// Returns true if callers wait for a scan.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Returns the last observed state of a job.
    pub(crate) fn status_of(&self, job: u64) -> Status {
        let last = self.last.filter(|(seen, _)| *seen == job);
        last.map_or(Status::Running, |(_, status)| status)
    }

    /// Records a scan. Waiting callers are notified once the result is certain, once a second scan sees the job busy,
    /// or after a few scans of a job that keeps changing.
    pub(crate) fn record(&mut self, job: u64, finding: Finding, watch: &Watch) {
        self.scans += 1;
        self.last = Some((job, status(finding, watch)));
        if !self.has_waiters() {
            return;
        }
        self.scans_since_request += 1;
        let is_certain = finding != Finding::Unknown;
        let is_busy = self.scans_since_request > 1 && watch.is_busy();
        if is_certain || is_busy || self.scans_since_request >= limits::MAX_STATUS_SCANS {
            self.notify_waiters();
        }
    }

    /// Notifies all callers that no better result will come.
    pub(crate) fn notify_waiters(&mut self) {
        self.scans_since_request = 0;
        for waiter in self.waiters.drain(..) {
            // The receiver may be gone.
            let _ = waiter.send(());
        }
    }
}

/// Returns the status that a finding stands for.
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

    /// Scans until the waiter is notified; returns the number of scans, and the status then.
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
    fn waiters_get_certain_results() {
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
        let moving = (limits::MAX_STATUS_SCANS as u64, Status::Running);
        assert_eq!(ask(&mut observation, &mut watch, Activity::Reading), moving);
    }
}
