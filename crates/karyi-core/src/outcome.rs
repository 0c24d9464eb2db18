//! Results of a call, of a job and of a whole message.
//!
//! An [`Outcome`] is the result of one call; the reports of the front ends are made of them, in
//! document order. The words here are the wire words: they stay as they are forever.

use serde_json::{Map, Value};

use crate::error::{ErrorClass, ErrorCode, ToolError};
use crate::head_tail::ShortenedText;

/// State of a call when its result became final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It did what was asked.
    Ok,
    /// The command ended with an exit status other than 0.
    Failed,
    /// The command is blocked reading the terminal.
    AwaitingInput,
    /// The command polls the terminal and continues meanwhile.
    AcceptsInput,
    /// The command was stopped by a signal and can be continued.
    Stopped,
    /// The time limit passed and the command continues.
    Running,
    /// It was ended by karyi.
    Killed,
    /// The tool could not do it; nothing was changed.
    Error,
    /// It was not allowed to start.
    Refused,
    /// It was not started because an earlier call failed or the run was cancelled.
    Skipped,
    /// The user gave the value.
    Provided,
    /// The user gave the value and it was stored.
    Saved,
    /// The value was there already.
    Exists,
    /// The user refused to enter the value.
    Declined,
    /// No user was available to ask for the value.
    Unavailable,
    /// The prompt was not answered in time.
    Timeout,
}

impl Status {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::AwaitingInput => "awaiting_input",
            Self::AcceptsInput => "accepts_input",
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Killed => "killed",
            Self::Error => "error",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Provided => "provided",
            Self::Saved => "saved",
            Self::Exists => "exists",
            Self::Declined => "declined",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
        }
    }

    /// Returns the status of a call that failed with `code`.
    #[must_use]
    pub fn of_error(code: ErrorCode) -> Self {
        match (code, code.class()) {
            (
                ErrorCode::EarlierFailure
                | ErrorCode::CdFailed
                | ErrorCode::BlockRefused
                | ErrorCode::Cancelled
                | ErrorCode::DryRun,
                _,
            ) => Self::Skipped,
            (ErrorCode::NeedsApproval, _) => Self::Refused,
            (ErrorCode::Declined, _) => Self::Declined,
            (ErrorCode::SecretPromptUnavailable, _) => Self::Unavailable,
            (ErrorCode::PromptTimeout, _) => Self::Timeout,
            (_, ErrorClass::Refused) => Self::Refused,
            (_, ErrorClass::Failed | ErrorClass::NeedsUser) => Self::Error,
        }
    }

    /// Returns true when the command still ran when its result became final.
    #[must_use]
    pub fn goes_on(self) -> bool {
        matches!(
            self,
            Self::AwaitingInput | Self::AcceptsInput | Self::Stopped | Self::Running
        )
    }

    /// Returns true when later calls of an `on_error="stop"` block are skipped after this one.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Ok
            | Self::AwaitingInput
            | Self::AcceptsInput
            | Self::Provided
            | Self::Saved
            | Self::Exists => false,
            Self::Failed
            | Self::Stopped
            | Self::Running
            | Self::Killed
            | Self::Error
            | Self::Refused
            | Self::Skipped
            | Self::Declined
            | Self::Unavailable
            | Self::Timeout => true,
        }
    }
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Final state of the call.
    pub status: Status,
    /// Error of a failed call.
    pub error: Option<ToolError>,
    /// The tool's own fields, in the order of its output type.
    pub fields: Map<String, Value>,
    /// Output of the command, for tools that run one.
    pub output: Option<ShortenedText>,
    /// Wall-clock time in milliseconds.
    pub duration_ms: u64,
    /// Codes of the repairs that made the call readable.
    pub repairs: Vec<&'static str>,
    /// For calls of the session: whether its job waits for an answer now.
    pub job_waits: Option<bool>,
    /// Script or summary of a call that was not started. Only people are shown it.
    pub title: Option<String>,
}

impl Outcome {
    /// Makes the outcome of a call without a result of its own.
    #[must_use]
    pub fn failed(id: String, tool: String, error: ToolError) -> Self {
        let mut outcome = Self::empty(id, tool, Status::of_error(error.code));
        if !error.names.is_empty() {
            let names = error.names.clone().into();
            outcome.fields.insert("names".into(), names);
        }
        outcome.error = Some(error.of_tool(&outcome.tool));
        outcome
    }

    /// Makes an outcome without a result.
    #[must_use]
    pub fn empty(id: String, tool: String, status: Status) -> Self {
        Self {
            id,
            tool,
            status,
            error: None,
            fields: Map::new(),
            output: None,
            duration_ms: 0,
            repairs: Vec::new(),
            job_waits: None,
            title: None,
        }
    }

    /// Returns the job that goes on after the call, and what it does.
    #[must_use]
    pub fn going_on(&self) -> Option<(&str, JobState)> {
        let named = self.fields.get("job").and_then(Value::as_str);
        let job = named.unwrap_or(&self.id);
        let goes_on = self.status.goes_on();
        goes_on.then(|| (job, JobState::of_status(self.status)))
    }

    /// Returns true when the run was stopped while the call ran.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let code = self.error.as_ref().map(|error| error.code);
        code == Some(ErrorCode::Cancelled)
    }
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It runs.
    Running,
    /// It is blocked reading its terminal.
    AwaitingInput,
    /// It polls its terminal.
    AcceptsInput,
    /// A signal stopped it.
    Stopped,
    /// It has ended by itself.
    Ended,
    /// It was ended with the session.
    Killed,
}

impl JobState {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::AwaitingInput => "awaiting_input",
            Self::AcceptsInput => "accepts_input",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
            Self::Killed => "killed",
        }
    }

    /// Returns the state of a job after a call with a status that continues.
    #[must_use]
    pub fn of_status(status: Status) -> Self {
        match status {
            Status::AwaitingInput => Self::AwaitingInput,
            Status::AcceptsInput => Self::AcceptsInput,
            Status::Stopped => Self::Stopped,
            _ => Self::Running,
        }
    }

    /// Returns true when there is nothing more to come.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Killed)
    }
}

/// Report on one job: a command that continued after its call, or one in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNews {
    /// Id: that of the call that started it, unless it was in use.
    pub id: String,
    /// Command line of the job, on one line.
    pub command: String,
    /// State of the job.
    pub state: JobState,
    /// True when its script put it in the background.
    pub is_background: bool,
    /// Its exit status, when it ended and that is known.
    pub exit_code: Option<i32>,
    /// The signal that ended it with the session: `HUP`, `TERM` or `KILL`.
    pub signal: Option<&'static str>,
    /// Time since its call began, in milliseconds.
    pub age_ms: u64,
    /// The last line it printed that is not blank.
    pub last_line: Option<String>,
}

impl JobNews {
    /// Returns true when [`Outcome::going_on`] of a call has said what the job does.
    #[must_use]
    pub fn is_told(&self, (id, state): (&str, JobState)) -> bool {
        !self.is_background && self.id == id && self.state == state
    }
}

/// Overall result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStatus {
    /// Every result is good.
    Ok,
    /// A call failed, or its command still ran at the end.
    Failed,
    /// The message or one of its blocks was refused.
    Refused,
    /// A value or an answer is needed and no user was available.
    NeedsInput,
    /// The user interrupted the run.
    Interrupted,
    /// A part of karyi broke.
    Bug,
}

impl ReportStatus {
    /// Returns the word used on the wire; an interrupted run is a failed one there.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed | Self::Interrupted | Self::Bug => "failed",
            Self::Refused => "refused",
            Self::NeedsInput => "needs_input",
        }
    }

    /// Returns the exit status of the program.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::NeedsInput => 3,
            Self::Interrupted => 130,
            Self::Bug => 255,
        }
    }
}

/// Adds up outcomes to the status of the report.
#[derive(Debug, Default)]
pub struct Tally {
    failed: bool,
    refused: bool,
    needs_input: bool,
    interrupted: bool,
    has_bug: bool,
    /// True when the session's job waits for input; unknown before its first call.
    unanswered: Option<bool>,
    calls: u64,
}

impl Tally {
    /// Counts one outcome, in document order.
    pub fn add(&mut self, outcome: &Outcome) {
        self.calls += 1;
        let code = outcome.error.as_ref().map(|error| error.code);
        self.has_bug |= code == Some(ErrorCode::Internal);
        if code == Some(ErrorCode::DryRun) {
            return;
        }
        let class = code.map(ErrorCode::class);
        match (outcome.status, class) {
            (Status::Refused, _) | (_, Some(ErrorClass::Refused)) => self.refused = true,
            (Status::Unavailable | Status::Timeout, _) | (_, Some(ErrorClass::NeedsUser)) => {
                self.needs_input = true;
            }
            // Whether a command that goes on ends badly is seen at its end.
            (status, _) if status.is_failure() && !status.goes_on() => self.failed = true,
            (_, Some(ErrorClass::Failed)) => self.failed = true,
            (_, None) => {}
        }
        self.unanswered = outcome.job_waits.or(self.unanswered);
    }

    /// Adds a later message of the same session: a question may have been answered in it.
    pub fn merge(&mut self, later: &Self) {
        self.failed |= later.failed;
        self.refused |= later.refused;
        self.needs_input |= later.needs_input;
        self.interrupted |= later.interrupted;
        self.has_bug |= later.has_bug;
        self.unanswered = later.unanswered.or(self.unanswered);
        self.calls += later.calls;
    }

    /// Records that the message, or a block of it, was refused.
    pub fn add_refusal(&mut self) {
        self.refused = true;
    }

    /// Notes that the user interrupted the run.
    pub fn add_interruption(&mut self) {
        self.interrupted = true;
    }

    /// Notes that a part of karyi broke.
    pub fn add_bug(&mut self) {
        self.has_bug = true;
    }

    /// Records the end of a job. A background job is no result and does not count.
    pub fn add_job(&mut self, job: &JobNews) {
        let is_bad = match job.state {
            JobState::Killed => true,
            JobState::Ended => job.exit_code.is_some_and(|code| code != 0),
            _ => false,
        };
        self.failed |= is_bad && !job.is_background;
    }

    /// Returns how many outcomes were counted.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the status of the report so far.
    #[must_use]
    pub fn status(&self) -> ReportStatus {
        if self.has_bug {
            ReportStatus::Bug
        } else if self.interrupted {
            ReportStatus::Interrupted
        } else if self.refused && !self.needs_input {
            ReportStatus::Refused
        } else if self.needs_input || self.unanswered == Some(true) {
            ReportStatus::NeedsInput
        } else if self.failed {
            ReportStatus::Failed
        } else {
            ReportStatus::Ok
        }
    }
}
