//! Approval of calls: what may run at once, what a person is asked about, and what never runs.
//!
//! [`judge::Judge`] decides from a mode, the user's rules and the text of a call. It runs nothing and asks nobody. A
//! script is judged by each simple command in it, at every depth, and is as strict as its strictest part. What is not
//! understood asks. [`request`] has the question that goes to a person, and the answer.

pub mod command_table;
pub mod command_words;
pub mod judge;
pub mod mode;
pub mod request;
pub mod rule;
mod script_parts;
mod wrappers;

pub use judge::{Judge, Place, Verdict};
pub use mode::Mode;
pub use request::{Approver, AskedPart, CallAnswer, CallQuestion, RuleStore};
pub use rule::{Rule, RuleKind, Rules};
