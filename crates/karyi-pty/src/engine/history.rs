//! Jobs of earlier commands: how they ended, and what they left in the background.

use std::collections::VecDeque;

use karyi_core::limits;

use crate::engine::background::Background;
use crate::engine::background_finder::LeftJobs;

/// Jobs of a session so far.
#[derive(Default)]
pub(crate) struct JobHistory {
    /// Number of the job that was started last.
    newest: u64,
    /// Jobs that ended, with their exit status; the newest last.
    ended: VecDeque<(u64, i32)>,
    /// Background jobs, each with the number of the job that left it; the newest last.
    background: VecDeque<(u64, Background)>,
    /// Number of background processes that are not tracked.
    omitted: u64,
}

impl JobHistory {
    /// Records a job that was started.
    pub(crate) fn begin(&mut self, job: u64) {
        self.newest = job;
    }

    /// Returns the number of the job that was started last.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Records the exit status of a job.
    pub(crate) fn end(&mut self, job: u64, status: i32) {
        if self.ended.back() == Some(&(job, status)) {
            return;
        }
        if self.ended.len() >= limits::MAX_ENDED_JOBS {
            self.ended.pop_front();
        }
        self.ended.push_back((job, status));
    }

    /// Returns the exit status of an ended job.
    pub(crate) fn exit_status(&self, job: u64) -> Option<i32> {
        let found = self.ended.iter().rev().find(|(number, _)| *number == job);
        found.map(|(_, status)| *status)
    }

    /// Stores background jobs until a caller takes them; the oldest are dropped first, because their number and that
    /// of their descriptors must be limited.
    pub(crate) fn store_background(&mut self, job: u64, left: LeftJobs) {
        self.omitted += left.omitted;
        if left.jobs.is_empty() {
            return;
        }
        let left = left.jobs.into_iter();
        self.background.extend(left.map(|left| (job, left)));
        let mut open: usize = self.background.iter().map(|(_, job)| job.size()).sum();
        while (open > limits::MAX_FOLLOWED_PROCESSES
            || self.background.len() > limits::MAX_ENDED_JOBS)
            && let Some((_, oldest)) = self.background.pop_front()
        {
            let size = oldest.size();
            open = open.saturating_sub(size);
            self.omitted += size.max(1) as u64;
        }
    }

    /// Takes the background jobs.
    pub(crate) fn take_background(&mut self) -> Vec<(u64, Background)> {
        std::mem::take(&mut self.background).into()
    }

    /// Takes the number of background processes that are not tracked.
    pub(crate) fn take_omitted(&mut self) -> u64 {
        std::mem::take(&mut self.omitted)
    }

    /// Returns true if the newest job has left a background job that was not taken yet.
    pub(crate) fn has_fresh_background(&self) -> bool {
        let mut left = self.background.iter();
        left.any(|(number, _)| *number == self.newest)
    }
}
