//! Jobs: commands that outlive their call, and background processes that scripts left.
//!
//! A job has the id of the call that started it. Every message's report lists it until its end was
//! reported once; its output goes to its file meanwhile.

mod background;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::exec::output::{self, OutputPipeline, TerminalJournal};
use crate::exec::output_log::OutputLogs;
use crate::tool::sessions::{Sessions, Terminal};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::{JobNews, JobState, Status};
use karyi_pty::background::{Background, BackgroundStatus};
use karyi_vault::redact::Redactor;

/// The jobs of a run.
#[derive(Clone)]
pub struct Jobs {
    sessions: Arc<Sessions>,
    logs: OutputLogs,
    redactor: Redactor,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    records: Vec<JobRecord>,
    /// Output of each terminal, for its background jobs.
    journals: HashMap<u64, TerminalJournal>,
    /// The job that the last session call used.
    last_used: Option<String>,
    /// Ended jobs that were not reported yet, oldest first.
    finished: VecDeque<JobNews>,
    /// Number of ended and background jobs that were dropped because there were too many.
    omitted: u64,
    /// Number of records at which ended jobs are removed.
    sweep_at: usize,
}

/// One job.
#[derive(Clone)]
struct JobRecord {
    id: String,
    /// Summary of its command for people.
    title: String,
    terminal: Terminal,
    place: JobPlace,
    since: Instant,
    /// The end of its time limit, if it accepted input and may still be at work.
    works_until: Option<Instant>,
}

#[derive(Clone)]
enum JobPlace {
    /// The job has the terminal: its number there, and its output.
    Foreground(u64, OutputPipeline),
    Background(Background),
}

/// The job and the shell that a session call uses.
pub struct JobTarget {
    /// The shell.
    pub terminal: Terminal,
    /// The pipeline of the job's output.
    pub output: OutputPipeline,
    /// The id of the job.
    pub job: String,
    /// The background job to end, when the call ends one.
    pub background: Option<Background>,
    /// Time limit of the call's command.
    pub limit: Option<Duration>,
}

impl Jobs {
    /// Creates an empty table.
    #[must_use]
    pub fn new(sessions: Arc<Sessions>, logs: OutputLogs, redactor: Redactor) -> Self {
        Self {
            sessions,
            logs,
            redactor,
            table: Arc::default(),
        }
    }

    /// Returns the shell for the command of a call, with a new output pipeline.
    ///
    /// # Errors
    /// No shell could be started, or there are too many shells.
    pub async fn for_command(&self, id: &str, cap: Cap) -> Result<JobTarget, ToolError> {
        let terminal = self.sessions.for_command().await?;
        let job = self.free_id(id);
        let journal = self.terminal_journal(&terminal);
        journal.begin();
        let log = self.logs.log(&job);
        Ok(JobTarget {
            output: OutputPipeline::new(&self.redactor, cap, Some(log), Some(journal)),
            terminal,
            job,
            background: None,
            limit: None,
        })
    }

    /// Waits for a job that accepted input while it may still be at work, so that a command that builds on it does not
    /// run beside it. The wait ends when the job ends, waits for input or is stopped, and with the time limit of
    /// either command.
    pub async fn wait_for_work(&self, limit: Option<Duration>) {
        let Some(terminal) = self.sessions.current() else {
            return;
        };
        let until = {
            let records = &self.lock().records;
            let mut records = records
                .iter()
                .filter(|record| record.terminal.number == terminal.number);
            let working = records.find(|record| in_foreground(record).is_some());
            working.and_then(|record| record.works_until)
        };
        if let Some(until) = until {
            let own = Instant::now() + limit.unwrap_or(limits::WORKING_JOB_TIMEOUT);
            terminal.session.wait_while_at_work(until.min(own)).await;
        }
    }

    /// Returns the job to end: like [`Jobs::for_input`], but also a background job when its id is given,
    /// and a stopped job when nothing runs in the foreground.
    ///
    /// # Errors
    /// The same as [`Jobs::for_input`].
    pub fn for_end(&self, id: Option<&str>) -> Result<JobTarget, ToolError> {
        let records = self.lock().records.clone();
        let found = match id {
            Some(id) => records.iter().find(|record| record.id == id),
            None if self.default_job(&records).is_none() => newest_stopped(&records),
            None => None,
        };
        match found.map(|record| (record, &record.place)) {
            Some((record, JobPlace::Background(job))) if !self.is_in_front(record, job) => {
                Ok(JobTarget {
                    terminal: record.terminal.clone(),
                    output: OutputPipeline::new(&self.redactor, Cap::default(), None, None),
                    job: record.id.clone(),
                    background: Some(job.clone()),
                    limit: None,
                })
            }
            _ => self.for_input(id),
        }
    }

    /// Returns the job that receives input: the one with the given id, else the last one used, else the
    /// newest.
    ///
    /// # Errors
    /// `no_job` when there is no job, or when the named one is not in the foreground.
    pub fn for_input(&self, id: Option<&str>) -> Result<JobTarget, ToolError> {
        let records = self.lock().records.clone();
        let record = match id {
            Some(id) => self.find_named(&records, id)?,
            None => self.default_job(&records),
        };
        if let Some((record, output)) = record.and_then(in_foreground) {
            return Ok(JobTarget {
                terminal: record.terminal.clone(),
                output: output.clone(),
                job: record.id.clone(),
                background: None,
                limit: None,
            });
        }
        // Nothing runs; the session reports how its last command ended.
        let nothing = || ToolError::new(ErrorCode::NoJob, "no command was started yet");
        let terminal = self.sessions.current().ok_or_else(nothing)?;
        let output = OutputPipeline::new(&self.redactor, Cap::default(), None, None);
        Ok(JobTarget {
            terminal,
            output,
            job: String::new(),
            background: None,
            limit: None,
        })
    }

    fn find_named<'a>(
        &self,
        records: &'a [JobRecord],
        id: &str,
    ) -> Result<Option<&'a JobRecord>, ToolError> {
        let Some(record) = records.iter().find(|record| record.id == id) else {
            return Err(unknown(records, id));
        };
        match &record.place {
            JobPlace::Foreground(number, _) if record.holds(*number) => Ok(Some(record)),
            JobPlace::Foreground(number, _) => Err(ended(record, *number)),
            JobPlace::Background(job) => {
                let holder = records.iter().find(|other| {
                    other.terminal.number == record.terminal.number
                        && in_foreground(other).is_some()
                });
                match holder.filter(|_| self.is_in_front(record, job)) {
                    Some(holder) => Ok(Some(holder)),
                    None => Err(in_background(id)),
                }
            }
        }
    }

    /// Returns true when a background job has moved to the foreground of its terminal.
    fn is_in_front(&self, record: &JobRecord, job: &Background) -> bool {
        // Without job control the job shares its process group with the shell and its foreground programs.
        job.has_own_group() && record.terminal.session.foreground_group() == Some(job.group)
    }

    fn default_job<'a>(&self, records: &'a [JobRecord]) -> Option<&'a JobRecord> {
        let last = self.lock().last_used.clone();
        let is_last = |record: &&JobRecord| Some(&record.id) == last.as_ref();
        let mut open = records
            .iter()
            .filter(|record| in_foreground(record).is_some());
        open.clone().find(is_last).or_else(|| open.next_back())
    }

    /// Records how a session call ended: its title, its job and its status.
    pub fn record(&self, title: &str, target: &JobTarget, status: Status, since: Instant) {
        let goes_on = status.goes_on();
        let mut record = JobRecord {
            id: target.job.clone(),
            title: title.to_owned(),
            terminal: target.terminal.clone(),
            // Session calls run one after another, so the newest job belongs to this call.
            place: JobPlace::Foreground(
                target.terminal.session.newest_job(),
                target.output.clone(),
            ),
            since,
            works_until: (status == Status::AcceptsInput)
                .then(|| since + target.limit.unwrap_or(limits::WORKING_JOB_TIMEOUT)),
        };
        let mut table = self.lock();
        let known = table.records.iter().position(|record| {
            record.id == target.job && matches!(record.place, JobPlace::Foreground(..))
        });
        match known {
            None if goes_on => table.records.push(record.clone()),
            Some(known) if !goes_on => record = table.records.remove(known),
            None => {}
            Some(known) => {
                if let Some(known) = table.records.get_mut(known) {
                    known.works_until = record.works_until;
                }
            }
        }
        table.last_used = Some(target.job.clone());
        drop(table);
        self.register_background(&record);
        let session = &target.terminal.session;
        self.lock().omitted += session.take_omitted_background();
        self.sweep();
    }

    /// Flushes the output so far into the files of all jobs.
    pub fn write_files(&self) {
        let table = self.lock();
        let (records, journals) = (table.records.clone(), table.journals.clone());
        drop(table);
        for record in records {
            if let JobPlace::Foreground(_, output) = &record.place {
                output.write_file();
            }
        }
        for journal in journals.into_values() {
            journal.write_files();
        }
    }

    /// Returns true when a job other than `except` waits for input.
    pub async fn has_question(&self, except: &str) -> bool {
        let records = self.lock().records.clone();
        for record in records.iter().filter(|record| record.id != except) {
            let is_open = in_foreground(record).is_some();
            if is_open && record.terminal.session.job_status().await == Some(Status::AwaitingInput)
            {
                return true;
            }
        }
        false
    }

    /// Returns the state of every job. An ended job is reported for the last time.
    pub async fn news(&self) -> Vec<JobNews> {
        let (records, finished) = {
            let mut table = self.lock();
            (table.records.clone(), std::mem::take(&mut table.finished))
        };
        let mut news = Vec::from(finished);
        let mut records = VecDeque::from(records);
        while let Some(record) = records.pop_front() {
            let item = self.describe(&record).await;
            if item.state.is_over() {
                // It may have ended while no call waited for it, and left background processes.
                records.extend(self.register_background(&record));
                self.remove(&record);
            }
            news.push(item);
        }
        news
    }

    /// Returns the jobs that go on; their ends stay to be reported.
    pub async fn open(&self) -> Vec<JobNews> {
        let records = self.lock().records.clone();
        let mut open = Vec::new();
        for record in &records {
            let item = self.describe(record).await;
            if !item.state.is_over() {
                open.push(item);
            }
        }
        open
    }

    /// Returns the number of jobs dropped since the last call, and resets it.
    #[must_use]
    pub fn take_omitted(&self) -> u64 {
        std::mem::take(&mut self.lock().omitted)
    }

    /// Closes every shell and returns the final state of the jobs.
    pub async fn close(&self) -> Vec<JobNews> {
        let mut news = self.news().await;
        let mut closing = JoinSet::new();
        for terminal in self.sessions.all() {
            closing.spawn(async move { terminal.session.close().await });
        }
        while closing.join_next().await.is_some() {}
        for terminal in self.sessions.all() {
            let signal = terminal.session.last_signal();
            let records = self.lock().records.clone();
            let of_terminal = |record: &&JobRecord| record.terminal.number == terminal.number;
            for record in records.iter().filter(of_terminal) {
                if let Some(item) = news.iter_mut().find(|item| item.id == record.id) {
                    item.state = JobState::Killed;
                    item.signal = signal;
                }
                self.remove(record);
            }
        }
        news
    }

    async fn describe(&self, record: &JobRecord) -> JobNews {
        let session = &record.terminal.session;
        let (state, exit_code) = match &record.place {
            JobPlace::Background(job) => (state_of(job.status()), None),
            JobPlace::Foreground(number, _) => match session.job_status().await {
                Some(status) if record.holds(*number) => (JobState::of_status(status), None),
                _ => match session.exit_status(*number) {
                    // The shell is gone; its exit status is known once a new shell has started.
                    None if session.newest_job() == *number => (JobState::Running, None),
                    status => (JobState::Ended, status),
                },
            },
        };
        self.news_of(record, state, exit_code)
    }

    fn news_of(&self, record: &JobRecord, state: JobState, exit_code: Option<i32>) -> JobNews {
        JobNews {
            id: record.id.clone(),
            command: self.command(record),
            state,
            is_background: matches!(record.place, JobPlace::Background(_)),
            exit_code,
            signal: None,
            age_ms: u64::try_from(record.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            last_line: self.last_line(record),
        }
    }

    /// Returns the command of a job: the command line of a background process, else the title of its call.
    fn command(&self, record: &JobRecord) -> String {
        let JobPlace::Background(job) = &record.place else {
            return record.title.clone();
        };
        let line = job.command_line().unwrap_or_default();
        let line = self.redactor.redact_str(line.trim()).into_owned();
        if line.is_empty() {
            return record.title.clone();
        }
        line.chars().take(limits::MAX_TITLE_CHARS).collect()
    }

    fn last_line(&self, record: &JobRecord) -> Option<String> {
        let line = match &record.place {
            JobPlace::Foreground(_, output) => output.last_line(),
            JobPlace::Background(job) if !job.has_terminal() => None,
            JobPlace::Background(_) => self
                .terminal_journal(&record.terminal)
                .last_line(&record.id),
        };
        let short = |line: String| line.chars().take(limits::MAX_LAST_LINE_CHARS).collect();
        line.map(short)
    }

    /// Removes a job from the table; its file stays.
    fn remove(&self, record: &JobRecord) {
        self.lock().records.retain(|other| other.id != record.id);
        match &record.place {
            JobPlace::Foreground(_, output) => {
                output.write_file();
                let _ = output.detach(output::Ending::Whole);
            }
            JobPlace::Background(_) => self.terminal_journal(&record.terminal).remove(&record.id),
        }
    }

    fn terminal_journal(&self, terminal: &Terminal) -> TerminalJournal {
        let open = self.sessions.all();
        let mut table = self.lock();
        if let Some(journal) = table.journals.get(&terminal.number) {
            return journal.clone();
        }
        // Journals of closed shells are no longer needed.
        let is_open = |number: &u64| open.iter().any(|terminal| terminal.number == *number);
        table.journals.retain(|number, _| is_open(number));
        let journal = TerminalJournal::new(&self.redactor);
        table.journals.insert(terminal.number, journal.clone());
        drop(table);
        terminal.session.set_idle_sink(Some(journal.sink()));
        journal
    }

    /// Returns the id for a new job: that of its call, or a numbered variant when it is taken.
    fn free_id(&self, id: &str) -> String {
        let table = self.lock();
        let is_free =
            |id: &str| !table.records.iter().any(|record| record.id == id) && !self.logs.has(id);
        let mut numbered = (2..).map(|number: u64| format!("{id}-{number}"));
        match is_free(id) {
            true => id.to_owned(),
            false => numbered
                .find(|id| is_free(id))
                .unwrap_or_else(|| id.to_owned()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Stores the news of an ended job; drops the oldest one when there are too many.
    fn store_finished(&mut self, news: JobNews) {
        self.finished.push_back(news);
        if self.finished.len() > limits::MAX_ENDED_JOBS {
            self.finished.pop_front();
            self.omitted += 1;
        }
    }
}

impl JobRecord {
    /// Returns true when this is the foreground job with that number on that terminal.
    fn is_job(&self, terminal: &Terminal, number: u64) -> bool {
        self.terminal.number == terminal.number
            && matches!(self.place, JobPlace::Foreground(own, _) if own == number)
    }

    /// Returns true when the job with that number still has the terminal.
    fn holds(&self, number: u64) -> bool {
        self.terminal.session.job() == Some(number)
    }
}

/// Returns the record and its output when its job has the terminal.
fn in_foreground(record: &JobRecord) -> Option<(&JobRecord, &OutputPipeline)> {
    match &record.place {
        JobPlace::Foreground(number, output) if record.holds(*number) => Some((record, output)),
        JobPlace::Foreground(..) | JobPlace::Background(_) => None,
    }
}

/// Returns the most recently stopped job that returned its terminal to the shell.
fn newest_stopped(records: &[JobRecord]) -> Option<&JobRecord> {
    let is_stopped = |record: &&JobRecord| match &record.place {
        JobPlace::Background(job) => job.status() == BackgroundStatus::Stopped,
        JobPlace::Foreground(..) => false,
    };
    records.iter().rev().find(is_stopped)
}

fn state_of(doing: BackgroundStatus) -> JobState {
    match doing {
        BackgroundStatus::Running => JobState::Running,
        BackgroundStatus::Stopped => JobState::Stopped,
        BackgroundStatus::Ended => JobState::Ended,
    }
}

fn unknown(records: &[JobRecord], id: &str) -> ToolError {
    let shown: String = id.chars().take(limits::MAX_TITLE_CHARS).collect();
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let known = match ids.as_slice() {
        [] => "no job runs".to_owned(),
        ids => format!("there are {}", ids.join(", ")),
    };
    let message = format!("no job {shown:?}; {known}; nothing was sent");
    ToolError::new(ErrorCode::NoJob, message).with_hint("name a job by the id of its call")
}

fn ended(record: &JobRecord, number: u64) -> ToolError {
    let status = record.terminal.session.exit_status(number);
    let how = status.map_or_else(String::new, |status| format!(" with exit status {status}"));
    let message = format!("job {} has ended{how}; nothing was sent", record.id);
    ToolError::new(ErrorCode::NoJob, message)
        .with_hint(format!("read its output with `read` of job:{}", record.id))
}

fn in_background(id: &str) -> ToolError {
    let message = format!("job {id} runs in the background of its terminal; nothing was sent");
    ToolError::new(ErrorCode::NoJob, message).with_hint(format!(
        "bring it to the foreground with the command `fg`, or end it with `ctrl` c, its job {id} and `end`"
    ))
}
