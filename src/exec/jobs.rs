//! Jobs: commands that go on after their call, and what scripts put in the background.
//!
//! A job bears the id of the call that started it. It is listed in the report of every message until
//! its end was told, once; what it prints meanwhile is in its file.

mod left;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::JoinSet;

use crate::exec::log::Logs;
use crate::exec::output::{self, Journal, Output};
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
    logs: Logs,
    redactor: Redactor,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    records: Vec<Record>,
    /// What each terminal prints, for the jobs in its background.
    journals: HashMap<u64, Journal>,
    /// The job the last call of a session spoke to.
    last: Option<String>,
    /// Jobs that have ended and were not told of yet, oldest first.
    over: VecDeque<JobNews>,
    /// How many of those, and of those in the background, were left out because there were too many.
    omitted: u64,
    /// Records at which those that have ended are looked for.
    sweep_at: usize,
}

/// One job.
#[derive(Clone)]
struct Record {
    id: String,
    /// What it is about, for a person.
    title: String,
    terminal: Terminal,
    place: Place,
    since: Instant,
}

#[derive(Clone)]
enum Place {
    /// It holds its terminal; its number there, and its output.
    Foreground(u64, Output),
    Background(Background),
}

/// What a call of a session speaks to.
pub struct Target {
    /// The shell.
    pub terminal: Terminal,
    /// The stages of the job's output.
    pub output: Output,
    /// The id of the job.
    pub job: String,
    /// The job, when it is to be ended where it is: in the background.
    pub background: Option<Background>,
}

impl Jobs {
    /// Makes an empty table.
    #[must_use]
    pub fn new(sessions: Arc<Sessions>, logs: Logs, redactor: Redactor) -> Self {
        Self {
            sessions,
            logs,
            redactor,
            table: Arc::default(),
        }
    }

    /// Returns where the command of a call runs, and makes the stages of its output.
    ///
    /// # Errors
    /// No shell could be started, or there are too many.
    pub async fn for_command(&self, id: &str, cap: Cap) -> Result<Target, ToolError> {
        let terminal = self.sessions.for_command().await?;
        let job = self.free_id(id);
        let journal = self.journal(&terminal);
        journal.begin();
        let log = self.logs.log(&job);
        Ok(Target {
            output: Output::new(&self.redactor, cap, Some(log), Some(journal)),
            terminal,
            job,
            background: None,
        })
    }

    /// Returns the job that is to be ended: as [`Jobs::for_input`] does, but also one in the
    /// background when it is named, and a stopped one when nothing is in the foreground.
    ///
    /// # Errors
    /// Those of [`Jobs::for_input`].
    pub fn for_end(&self, id: Option<&str>) -> Result<Target, ToolError> {
        let records = self.lock().records.clone();
        let found = match id {
            Some(id) => records.iter().find(|record| record.id == id),
            None if self.nearest(&records).is_none() => newest_stopped(&records),
            None => None,
        };
        match found.map(|record| (record, &record.place)) {
            Some((record, Place::Background(job))) if !self.is_in_front(record, job) => {
                Ok(Target {
                    terminal: record.terminal.clone(),
                    output: Output::new(&self.redactor, Cap::default(), None, None),
                    job: record.id.clone(),
                    background: Some(job.clone()),
                })
            }
            _ => self.for_input(id),
        }
    }

    /// Returns the job that input is for: the one named, else the one spoken to last, else the
    /// newest one.
    ///
    /// # Errors
    /// `no_job` when there is none, or when the one named is not in the foreground.
    pub fn for_input(&self, id: Option<&str>) -> Result<Target, ToolError> {
        let records = self.lock().records.clone();
        let record = match id {
            Some(id) => self.named(&records, id)?,
            None => self.nearest(&records),
        };
        if let Some((record, output)) = record.and_then(in_foreground) {
            return Ok(Target {
                terminal: record.terminal.clone(),
                output: output.clone(),
                job: record.id.clone(),
                background: None,
            });
        }
        // Nothing runs; the session tells how its last command ended.
        let nothing = || ToolError::new(ErrorCode::NoJob, "no command was started yet");
        let terminal = self.sessions.current().ok_or_else(nothing)?;
        let output = Output::new(&self.redactor, Cap::default(), None, None);
        Ok(Target {
            terminal,
            output,
            job: String::new(),
            background: None,
        })
    }

    fn named<'a>(&self, records: &'a [Record], id: &str) -> Result<Option<&'a Record>, ToolError> {
        let Some(record) = records.iter().find(|record| record.id == id) else {
            return Err(unknown(records, id));
        };
        match &record.place {
            Place::Foreground(number, _) if record.holds(*number) => Ok(Some(record)),
            Place::Foreground(number, _) => Err(ended(record, *number)),
            Place::Background(job) => {
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

    /// Whether a job in the background has come to the foreground of its terminal.
    fn is_in_front(&self, record: &Record, job: &Background) -> bool {
        // Without job control its group is that of its shell, and of what that runs in the foreground.
        job.has_own_group() && record.terminal.session.foreground_group() == Some(job.group)
    }

    fn nearest<'a>(&self, records: &'a [Record]) -> Option<&'a Record> {
        let last = self.lock().last.clone();
        let is_last = |record: &&Record| Some(&record.id) == last.as_ref();
        let mut open = records
            .iter()
            .filter(|record| in_foreground(record).is_some());
        open.clone().find(is_last).or_else(|| open.next_back())
    }

    /// Notes how a call of a session ended: what it was about, what it spoke to, and its status.
    pub fn note(&self, title: &str, target: &Target, status: Status, since: Instant) {
        let goes_on = status.goes_on();
        let mut record = Record {
            id: target.job.clone(),
            title: title.to_owned(),
            terminal: target.terminal.clone(),
            // Calls of a session come one after another, so the newest job is that of this call.
            place: Place::Foreground(target.terminal.session.newest_job(), target.output.clone()),
            since,
        };
        let mut table = self.lock();
        let known = table.records.iter().position(|record| {
            record.id == target.job && matches!(record.place, Place::Foreground(..))
        });
        match known {
            None if goes_on => table.records.push(record.clone()),
            Some(known) if !goes_on => record = table.records.remove(known),
            None | Some(_) => {}
        }
        table.last = Some(target.job.clone());
        drop(table);
        self.note_left(&record);
        let session = &target.terminal.session;
        self.lock().omitted += session.take_omitted_background();
        self.sweep();
    }

    /// Writes what came so far into the files of all jobs.
    pub fn write_files(&self) {
        let table = self.lock();
        let (records, journals) = (table.records.clone(), table.journals.clone());
        drop(table);
        for record in records {
            if let Place::Foreground(_, output) = &record.place {
                output.write_file();
            }
        }
        for journal in journals.into_values() {
            journal.write_files();
        }
    }

    /// Whether a job other than `except` waits for an answer.
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

    /// Returns what there is to say about every job. One that has ended is named for the last time.
    pub async fn news(&self) -> Vec<JobNews> {
        let (records, over) = {
            let mut table = self.lock();
            (table.records.clone(), std::mem::take(&mut table.over))
        };
        let mut news = Vec::from(over);
        let mut records = VecDeque::from(records);
        while let Some(record) = records.pop_front() {
            let item = self.describe(&record).await;
            if item.state.is_over() {
                // It may have ended while no call waited for it, and left something.
                records.extend(self.note_left(&record));
                self.forget(&record);
            }
            news.push(item);
        }
        news
    }

    /// Returns of how many jobs nothing can be told, since it was last asked.
    #[must_use]
    pub fn take_omitted(&self) -> u64 {
        std::mem::take(&mut self.lock().omitted)
    }

    /// Ends every shell, and returns what became of the jobs.
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
            let of_terminal = |record: &&Record| record.terminal.number == terminal.number;
            for record in records.iter().filter(of_terminal) {
                if let Some(item) = news.iter_mut().find(|item| item.id == record.id) {
                    item.state = JobState::Killed;
                    item.signal = signal;
                }
                self.forget(record);
            }
        }
        news
    }

    async fn describe(&self, record: &Record) -> JobNews {
        let session = &record.terminal.session;
        let (state, exit_code) = match &record.place {
            Place::Background(job) => (state_of(job.status()), None),
            Place::Foreground(number, _) => match session.job_status().await {
                Some(status) if record.holds(*number) => (JobState::of_status(status), None),
                _ => match session.exit_status(*number) {
                    // Its shell is gone, and how it ended is told once there is another one.
                    None if session.newest_job() == *number => (JobState::Running, None),
                    status => (JobState::Ended, status),
                },
            },
        };
        self.tell(record, state, exit_code)
    }

    fn tell(&self, record: &Record, state: JobState, exit_code: Option<i32>) -> JobNews {
        JobNews {
            id: record.id.clone(),
            command: self.command(record),
            state,
            is_background: matches!(record.place, Place::Background(_)),
            exit_code,
            signal: None,
            age_ms: u64::try_from(record.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            last_line: self.last_line(record),
        }
    }

    /// Returns what a job runs: the command line of a program in the background, else what its call
    /// was about.
    fn command(&self, record: &Record) -> String {
        let Place::Background(job) = &record.place else {
            return record.title.clone();
        };
        let line = job.command_line().unwrap_or_default();
        let line = self.redactor.redact_str(line.trim()).into_owned();
        if line.is_empty() {
            return record.title.clone();
        }
        line.chars().take(limits::MAX_TITLE_CHARS).collect()
    }

    fn last_line(&self, record: &Record) -> Option<String> {
        let line = match &record.place {
            Place::Foreground(_, output) => output.last_line(),
            Place::Background(job) if !job.has_terminal() => None,
            Place::Background(_) => self.journal(&record.terminal).last_line(&record.id),
        };
        let short = |line: String| line.chars().take(limits::MAX_LAST_LINE_CHARS).collect();
        line.map(short)
    }

    /// Takes a job out of the table; its file stays.
    fn forget(&self, record: &Record) {
        self.lock().records.retain(|other| other.id != record.id);
        match &record.place {
            Place::Foreground(_, output) => {
                output.write_file();
                let _ = output.detach(output::Ending::Whole);
            }
            Place::Background(_) => self.journal(&record.terminal).remove(&record.id),
        }
    }

    fn journal(&self, terminal: &Terminal) -> Journal {
        let open = self.sessions.all();
        let mut table = self.lock();
        if let Some(journal) = table.journals.get(&terminal.number) {
            return journal.clone();
        }
        // Those of shells that were closed are of no use any more.
        let is_open = |number: &u64| open.iter().any(|terminal| terminal.number == *number);
        table.journals.retain(|number, _| is_open(number));
        let journal = Journal::new(&self.redactor);
        table.journals.insert(terminal.number, journal.clone());
        drop(table);
        terminal.session.set_idle_sink(Some(journal.sink()));
        journal
    }

    /// Returns the id of a new job: that of its call, or one made of it when that is taken.
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
    /// Keeps what is to be told of a job that has ended; the oldest is left out when there are too
    /// many.
    fn keep(&mut self, news: JobNews) {
        self.over.push_back(news);
        if self.over.len() > limits::MAX_ENDED_JOBS {
            self.over.pop_front();
            self.omitted += 1;
        }
    }
}

impl Record {
    /// Whether it is the job of that number in the foreground of a terminal.
    fn is_job(&self, terminal: &Terminal, number: u64) -> bool {
        self.terminal.number == terminal.number
            && matches!(self.place, Place::Foreground(own, _) if own == number)
    }

    /// Whether the job of that number still holds the terminal.
    fn holds(&self, number: u64) -> bool {
        self.terminal.session.job() == Some(number)
    }
}

/// Returns a job that holds its terminal, and its output.
fn in_foreground(record: &Record) -> Option<(&Record, &Output)> {
    match &record.place {
        Place::Foreground(number, output) if record.holds(*number) => Some((record, output)),
        Place::Foreground(..) | Place::Background(_) => None,
    }
}

/// Returns the job that was stopped last and left its terminal to the shell.
fn newest_stopped(records: &[Record]) -> Option<&Record> {
    let is_stopped = |record: &&Record| match &record.place {
        Place::Background(job) => job.status() == BackgroundStatus::Stopped,
        Place::Foreground(..) => false,
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

fn unknown(records: &[Record], id: &str) -> ToolError {
    let shown: String = id.chars().take(limits::MAX_TITLE_CHARS).collect();
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let known = match ids.as_slice() {
        [] => "no job runs".to_owned(),
        ids => format!("there are {}", ids.join(", ")),
    };
    let message = format!("no job {shown:?}; {known}; nothing was sent");
    ToolError::new(ErrorCode::NoJob, message).with_hint("name a job by the id of its call")
}

fn ended(record: &Record, number: u64) -> ToolError {
    let status = record.terminal.session.exit_status(number);
    let how = status.map_or_else(String::new, |status| format!(" with exit status {status}"));
    let message = format!("job {} has ended{how}; nothing was sent", record.id);
    ToolError::new(ErrorCode::NoJob, message).with_hint(format!(
        "read what it printed with <read><file src=\"job:{}\"/></read>",
        record.id
    ))
}

fn in_background(id: &str) -> ToolError {
    let message = format!("job {id} runs in the background of its terminal; nothing was sent");
    ToolError::new(ErrorCode::NoJob, message).with_hint(format!(
        "bring it to the foreground with <command>fg</command>, or end it with \
         <ctrl end=\"true\" job=\"{id}\">c</ctrl>"
    ))
}
