//! What the session's thread saw last of the job in the foreground, and who asks for it.
//!
//! One thread looks at a job, with one memory of what it saw before; whoever else wants to know
//! asks it to look again and takes what it found.

use tokio::sync::oneshot;

use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::wait::{Finding, Watch};

/// What was seen last.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// How often was looked at all.
    pub(crate) looks: u64,
    /// Who waits for a new look.
    pub(crate) askers: Vec<oneshot::Sender<()>>,
    /// The job and what it did.
    last: Option<(u64, Status)>,
    /// Looks since somebody asked.
    asked_looks: usize,
}

impl Sight {
    /// Whether nobody has looked yet for those who ask.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_wanted() && self.asked_looks == 0
    }

    /// Whether somebody waits for a look.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.askers.is_empty()
    }

    /// Returns what was last seen of a job.
    pub(crate) fn status_of(&self, job: u64) -> Status {
        let last = self.last.filter(|(seen, _)| *seen == job);
        last.map_or(Status::Running, |(_, status)| status)
    }

    /// Takes in a look at a job. Who asks is told once something is certain, a second look sees it
    /// busy, or after a few looks at a job that never does the same twice.
    pub(crate) fn take_in(&mut self, job: u64, finding: Finding, watch: &Watch) {
        self.looks += 1;
        self.last = Some((job, status(finding, watch)));
        if !self.is_wanted() {
            return;
        }
        self.asked_looks += 1;
        let is_certain = finding != Finding::Unknown;
        let is_busy = self.asked_looks > 1 && watch.is_busy();
        if is_certain || is_busy || self.asked_looks >= limits::MAX_ASKED_LOOKS {
            self.dismiss();
        }
    }

    /// Tells all who ask that there is nothing more to see.
    pub(crate) fn dismiss(&mut self) {
        self.asked_looks = 0;
        for asker in self.askers.drain(..) {
            // One that is gone wants no answer.
            let _ = asker.send(());
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

    /// Looks again and again while somebody asks; returns the looks until the answer, and what is
    /// known then.
    fn ask(
        sight: &mut Sight,
        watch: &mut Watch,
        activity: impl Fn(u64) -> Activity,
    ) -> (u64, Status) {
        let (reply, mut answer) = oneshot::channel();
        sight.askers.push(reply);
        let before = sight.looks;
        while answer.try_recv().is_err() {
            let finding = watch.add(activity(sight.looks), Instant::now(), Duration::ZERO);
            sight.take_in(1, finding, watch);
        }
        (sight.looks - before, sight.status_of(1))
    }

    #[test]
    fn who_asks_is_told_what_is_certain() {
        let (mut sight, mut watch) = (Sight::default(), Watch::new());
        let reading = (2, Status::AwaitingInput);
        assert_eq!(
            ask(&mut sight, &mut watch, |_| Activity::Reading(1)),
            reading
        );
        assert_eq!(sight.status_of(2), Status::Running);
        let known = (1, Status::AwaitingInput);
        assert_eq!(ask(&mut sight, &mut watch, |_| Activity::Reading(1)), known);
        let busy = (2, Status::Running);
        assert_eq!(ask(&mut sight, &mut watch, |_| Activity::Busy), busy);
        let moving = (limits::MAX_ASKED_LOOKS as u64, Status::Running);
        assert_eq!(ask(&mut sight, &mut watch, Activity::Reading), moving);
    }
}
