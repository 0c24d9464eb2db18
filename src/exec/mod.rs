//! Runs typed calls: when each may start, and the stages around it.
//!
//! ```text
//! bytes ─ intake ─ Job ─ plan (pure) ─ [resolve ─ run ─ redact ─ cap] ─ Outcome ─ Event
//! ```
//!
//! Whatever overlaps, files and results are as if the calls had run one after another in document
//! order. A call that fails or panics never stops its siblings.

pub mod block;
pub mod call;
pub mod cancel;
pub mod intake;
pub mod jobs;
pub mod log;
pub mod lossy;
pub mod message;
pub mod output;
pub mod permit;
pub mod plan;
pub mod resolve;
pub mod stage;
pub mod workplace;

use karyi_core::error::Diagnostic;
use karyi_core::outcome::{JobNews, Outcome};
use karyi_vault::redact::Redacted;

/// What happens while a message runs.
#[derive(Debug)]
pub enum Event {
    /// A call starts.
    Started {
        /// Its place in the message, from 0.
        index: u64,
        /// Its id.
        id: String,
        /// Its tool.
        tool: &'static str,
        /// What stands before its title for a person.
        heading: &'static str,
        /// What it is about, one line: the first line of a script, the files of an edit.
        title: String,
    },
    /// A running call printed something, already redacted.
    Output {
        /// The call's place in the message.
        index: u64,
        /// Its id.
        id: String,
        /// The text.
        text: Redacted,
    },
    /// A call has its result.
    Finished {
        /// The call's place in the message.
        index: u64,
        /// The result.
        outcome: Box<Outcome>,
    },
    /// A block opened.
    BlockOpened,
    /// The message is doubtful in one place.
    Warning(Box<Diagnostic>),
    /// The message is refused from one place on.
    Refused(Box<Diagnostic>),
    /// What the jobs of the run do, told once at the end of a message.
    Jobs {
        /// What there is to say.
        news: Vec<JobNews>,
        /// Jobs of which nothing is said, because there were too many.
        omitted: u64,
    },
    /// The message could not be read to its end; nothing more of it runs.
    Unreadable,
    /// Time passes; a watcher may show that something still runs.
    Tick,
    /// Nothing follows.
    MessageEnded {
        /// Whether the user interrupted the run.
        is_interrupted: bool,
        /// Name of the session's shell, when one was started.
        shell: Option<String>,
        /// Why that is not the shell the user has.
        note: Option<String>,
    },
}
