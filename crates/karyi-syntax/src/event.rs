//! What the parser is told and what it gives: its mode and its events.

use karyi_core::call::{BlockOptions, RawCall};
use karyi_core::error::Diagnostic;
use karyi_core::span::Position;

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
