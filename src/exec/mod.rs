//! Runs decoded calls: schedules them and applies the stages around each.
//!
//! ```text
//! bytes ─ decoder ─ PreparedCall ─ plan (pure) ─ [resolve ─ run and mask ─ cap] ─ Outcome ─ Event
//! ```
//!
//! Files and results are as if the calls had run one after another in document order, even when calls
//! overlap. A call that fails or panics never stops its siblings.

pub mod admission;
pub mod approval;
pub mod block_run;
pub mod call_run;
pub mod call_title;
pub mod cancel;
pub mod consent;
pub mod decoder;
mod directory_change;
mod edit_trial;
mod interruption;
pub mod jobs;
mod live_names;
pub mod message_runner;
mod open_block;
pub mod output;
pub mod output_log;
pub mod plan;
pub mod policy_gate;
mod prose_text;
pub mod resolve;
pub mod run_context;
pub mod session_context;
pub mod shorten;
pub mod utf8;

pub use edit_trial::ChangedFile;
pub(crate) use live_names::note_start;

use karyi_core::error::Diagnostic;
use karyi_core::outcome::{JobNews, Outcome};
use karyi_vault::redact::Redacted;

/// An event of a running message.
#[derive(Debug)]
pub enum Event {
    /// A call starts.
    Started {
        /// Index of the call in the message, from 0.
        index: u64,
        /// Id of the call.
        id: String,
        /// Name of its tool.
        tool: &'static str,
        /// Text before the title in output for people.
        heading: &'static str,
        /// Script of a command, or summary of another call. A long one is cut, with a count.
        title: String,
        /// Number of lines of the script.
        line_count: usize,
        /// Name that the model gave the call.
        label: Option<String>,
    },
    /// A running call printed output.
    Output {
        /// Index of the call in the message.
        index: u64,
        /// Id of the call.
        id: Redacted,
        /// Its text.
        text: Redacted,
    },
    /// The line that a running call has printed without its end, in its newest state.
    Unfinished {
        /// Index of the call in the message.
        index: u64,
        /// Its text; empty when the line has ended.
        line: Redacted,
    },
    /// An edit that nobody was asked about has changed files, for a person who watches.
    Changes {
        /// Index of the call in the message.
        index: u64,
        /// The files, in the order of the call.
        files: Vec<ChangedFile>,
    },
    /// A call has its result.
    Finished {
        /// Index of the call in the message.
        index: u64,
        /// The result.
        outcome: Redacted<Box<Outcome>>,
    },
    /// Prose of the message, for a reader who asked for it.
    Prose(String),
    /// A warning about the message.
    Warning(Box<Diagnostic>),
    /// The error from which on the message is refused.
    Refused(Box<Diagnostic>),
    /// State of the jobs, reported at the end of a message.
    Jobs {
        /// News of each job.
        news: Vec<JobNews>,
        /// Number of jobs left out because there were too many.
        omitted: u64,
    },
    /// The message could not be read to its end; no further call runs.
    Unreadable,
    /// Periodic tick; a display may show that a call still runs.
    Tick,
    /// The end of the message.
    MessageEnded {
        /// True when the user interrupted the run.
        is_interrupted: bool,
        /// Name of the session's shell, when one was started.
        shell: Option<String>,
        /// Reason why it is not the user's own shell.
        note: Option<String>,
    },
}
