//! Bytes of a model's message to raw calls.
//!
//! ```text
//! bytes ─ locate (prose, fences, JSON envelope) ─ scan (complete slices) ─ quick-xml ─ RawCall
//! ```
//!
//! The parser is push-style: it performs no I/O, never blocks, and gives the same events for every
//! chunking. It knows no tool; a [`grammar::Grammar`] tells it which elements exist.

pub mod grammar;

use crate::call::{BlockOptions, RawCall};
use crate::error::Diagnostic;
use crate::span::Position;

/// How much the parser mends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Mends what the published rules allow and reports each repair.
    #[default]
    Repair,
    /// XML 1.0 and the grammar, to the letter.
    Strict,
}

/// What the parser found.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A block opens.
    BlockOpened {
        /// What its opening tag says.
        options: BlockOptions,
        /// Where its `<` stands.
        position: Position,
    },
    /// A call is complete.
    Call(RawCall),
    /// The block is complete.
    BlockClosed,
    /// Something was ignored or doubtful; the message goes on.
    Warning(Diagnostic),
    /// The message is refused from here on. Nothing follows.
    Error(Diagnostic),
}
