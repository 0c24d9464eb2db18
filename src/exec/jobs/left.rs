//! What a command leaves in the background of its terminal.

use crate::exec::jobs::{Jobs, Place, Record};
use crate::exec::log::Log;
use karyi_core::limits;
use karyi_core::outcome::JobState;
use karyi_pty::background::{Background, BackgroundStatus};

impl Jobs {
    /// Notes what was left in the background of a terminal: as that of the job that left it, else as
    /// that of `current`. Returns the new records.
    ///
    /// When the job is over that left it, its id and its file are those of the first; the others of it
    /// have a number, and files that begin as its file does.
    pub(super) fn note_left(&self, current: &Record) -> Vec<Record> {
        let mut left = current.terminal.session.take_background();
        // The one that was stopped in the foreground is what the call was about.
        let is_stopped = |(_, job): &(u64, Background)| job.status() == BackgroundStatus::Stopped;
        if let Some(last) = left.iter().rposition(is_stopped) {
            let stopped = left.remove(last);
            left.insert(0, stopped);
        }
        let (mut new, mut logs, mut heir) = (Vec::new(), Vec::new(), None);
        for (number, job) in left {
            if !self.has_room_for(&job) {
                self.lock().omitted += 1;
                continue;
            }
            let origin = self.origin(current, number);
            let has_terminal = job.has_terminal();
            let is_heir = origin.is_job(&current.terminal, number) && !self.is_listed(&origin.id);
            let record = match is_heir {
                true => self.note_background(job, &origin, origin.id.clone()),
                false => self.note_background(job, &origin, self.free_id(&origin.id)),
            };
            // What is printed on a terminal that was taken from it is not its own.
            if is_heir {
                heir = Some((record.id.clone(), has_terminal));
            } else if has_terminal {
                let log = self.copied_log(&origin, &record.id);
                logs.push((record.id.clone(), log));
            }
            new.push(record);
        }
        // Given away when the others have what it holds; one that nobody writes to stays as it is.
        if let Some((id, has_terminal)) = heir
            && let Place::Foreground(_, output) = &current.place
            && let Some(log) = output.take_log()
            && has_terminal
        {
            logs.push((id, log));
        }
        let output = match &current.place {
            Place::Foreground(_, output) => Some(output),
            Place::Background(_) => None,
        };
        self.journal(&current.terminal).add(logs, output);
        new
    }

    /// Returns the job of that number, else `current`.
    fn origin(&self, current: &Record, number: u64) -> Record {
        let table = self.lock();
        let mut records = table.records.iter();
        let found = records.find(|record| record.is_job(&current.terminal, number));
        found.unwrap_or(current).clone()
    }

    fn is_listed(&self, id: &str) -> bool {
        let table = self.lock();
        table.records.iter().any(|record| record.id == id)
    }

    fn note_background(&self, job: Background, origin: &Record, id: String) -> Record {
        let record = Record {
            id,
            place: Place::Background(job),
            ..origin.clone()
        };
        self.lock().records.push(record.clone());
        record
    }

    /// Returns a log that begins with what the job `origin` has printed.
    fn copied_log(&self, origin: &Record, id: &str) -> Log {
        let copy = match &origin.place {
            Place::Foreground(_, output) => output.copy_log(id),
            Place::Background(_) => None,
        };
        copy.unwrap_or_else(|| self.logs.log(id))
    }

    /// Whether one more job in the background can be followed: each holds descriptors.
    fn has_room_for(&self, job: &Background) -> bool {
        let is_full = || {
            let table = self.lock();
            let sizes = table
                .records
                .iter()
                .filter_map(|record| match &record.place {
                    Place::Background(job) => Some(job.size()),
                    Place::Foreground(..) => None,
                });
            sizes.sum::<usize>() + job.size() > limits::MAX_FOLLOWED_PROCESSES
        };
        if !is_full() {
            return true;
        }
        self.let_go();
        !is_full()
    }

    /// Lets go of what jobs in the background hold that have ended. Looked for only when the jobs
    /// have doubled since the last time, so that each costs little.
    pub(super) fn sweep(&self) {
        let table = self.lock();
        let is_due = table.records.len() >= table.sweep_at.max(limits::MIN_JOBS_SWEPT);
        drop(table);
        if is_due {
            self.let_go();
            let mut table = self.lock();
            table.sweep_at = 2 * table.records.len();
        }
    }

    fn let_go(&self) {
        let records = self.lock().records.clone();
        for record in &records {
            if let Place::Background(job) = &record.place
                && job.status() == BackgroundStatus::Ended
            {
                let news = self.tell(record, JobState::Ended, None);
                self.forget(record);
                self.lock().keep(news);
            }
        }
    }
}
