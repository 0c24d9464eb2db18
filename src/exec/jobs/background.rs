//! Registers the processes that a command left in the background of its terminal.

use crate::exec::jobs::{JobPlace, JobRecord, Jobs};
use crate::exec::output_log::OutputLog;
use karyi_core::limits;
use karyi_core::outcome::JobState;
use karyi_pty::background::{Background, BackgroundStatus};

impl Jobs {
    /// Registers the background processes of a terminal under the job that started them, else under
    /// `current`. Returns the new records.
    ///
    /// When that job is over, the first process takes over its id and file; the others get numbered ids
    /// and files that begin with a copy of its file.
    pub(super) fn register_background(&self, current: &JobRecord) -> Vec<JobRecord> {
        let mut left = current.terminal.session.take_background();
        // A job that was stopped in the foreground is the command of the call itself.
        let is_stopped = |(_, job): &(u64, Background)| job.status() == BackgroundStatus::Stopped;
        if let Some(last) = left.iter().rposition(is_stopped) {
            let stopped = left.remove(last);
            left.insert(0, stopped);
        }
        let (mut new, mut logs, mut primary) = (Vec::new(), Vec::new(), None);
        for (number, job) in left {
            if !self.can_follow(&job) {
                self.lock().omitted += 1;
                continue;
            }
            let origin = self.origin(current, number);
            let has_terminal = job.has_terminal();
            let is_primary =
                origin.is_job(&current.terminal, number) && !self.is_listed(&origin.id);
            let record = match is_primary {
                true => self.add_background(job, &origin, origin.id.clone()),
                false => self.add_background(job, &origin, self.free_id(&origin.id)),
            };
            // Output that appears on a terminal the job no longer has is not its own.
            if is_primary {
                primary = Some((record.id.clone(), has_terminal));
            } else if has_terminal {
                let log = self.copied_log(&origin, &record.id);
                logs.push((record.id.clone(), log));
            }
            new.push(record);
        }
        // The log moves after the others have copied it; a log that nothing writes to stays in place.
        if let Some((id, has_terminal)) = primary
            && let JobPlace::Foreground(_, output) = &current.place
            && let Some(log) = output.take_log()
            && has_terminal
        {
            logs.push((id, log));
        }
        let output = match &current.place {
            JobPlace::Foreground(_, output) => Some(output),
            JobPlace::Background(_) => None,
        };
        self.terminal_journal(&current.terminal).add(logs, output);
        new
    }

    /// Returns the job with that number, else `current`.
    fn origin(&self, current: &JobRecord, number: u64) -> JobRecord {
        let table = self.lock();
        let mut records = table.records.iter();
        let found = records.find(|record| record.is_job(&current.terminal, number));
        found.unwrap_or(current).clone()
    }

    fn is_listed(&self, id: &str) -> bool {
        let table = self.lock();
        table.records.iter().any(|record| record.id == id)
    }

    fn add_background(&self, job: Background, origin: &JobRecord, id: String) -> JobRecord {
        let record = JobRecord {
            id,
            place: JobPlace::Background(job),
            ..origin.clone()
        };
        self.lock().records.push(record.clone());
        record
    }

    /// Returns a log that begins with the output of the job `origin`.
    fn copied_log(&self, origin: &JobRecord, id: &str) -> OutputLog {
        let copy = match &origin.place {
            JobPlace::Foreground(_, output) => output.copy_log(id),
            JobPlace::Background(_) => None,
        };
        copy.unwrap_or_else(|| self.logs.log(id))
    }

    /// Returns true when one more background job can be followed: each holds file descriptors.
    fn can_follow(&self, job: &Background) -> bool {
        let is_full = || {
            let table = self.lock();
            let sizes = table
                .records
                .iter()
                .filter_map(|record| match &record.place {
                    JobPlace::Background(job) => Some(job.size()),
                    JobPlace::Foreground(..) => None,
                });
            sizes.sum::<usize>() + job.size() > limits::MAX_FOLLOWED_PROCESSES
        };
        if !is_full() {
            return true;
        }
        self.remove_finished();
        !is_full()
    }

    /// Removes ended background jobs to release their file descriptors. Runs only when the number of jobs
    /// has doubled since the last time, so that the amortised cost is low.
    pub(super) fn sweep(&self) {
        let table = self.lock();
        let is_due = table.records.len() >= table.sweep_at.max(limits::MIN_JOBS_SWEPT);
        drop(table);
        if is_due {
            self.remove_finished();
            let mut table = self.lock();
            table.sweep_at = 2 * table.records.len();
        }
    }

    fn remove_finished(&self) {
        let records = self.lock().records.clone();
        for record in &records {
            if let JobPlace::Background(job) = &record.place
                && job.status() == BackgroundStatus::Ended
            {
                let news = self.news_of(record, JobState::Ended, None);
                self.remove(record);
                self.lock().store_finished(news);
            }
        }
    }
}
