//! Mode and events of the parser.

use karyi_core::call::{BlockOptions, RawCall};
use karyi_core::error::Diagnostic;
use karyi_core::span::Position;

/// Strictness of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Repairs what the published rules allow and reports each repair.
    #[default]
    Repair,
    /// XML 1.0 and the grammar, to the letter.
    Strict,
}

/// Event of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A block opens.
    BlockOpened {
        /// Options of its opening tag.
        options: BlockOptions,
        /// Position of its `<`.
        position: Position,
    },
    /// A call is complete.
    Call(RawCall),
    /// The block is complete.
    BlockClosed,
    /// A thought that nothing opened ends here: all blocks so far were drafts, also one with an error. Ids of calls
    /// start anew, unless they run at once.
    DraftsEnded,
    /// Something was ignored or doubtful; the message continues.
    Warning(Diagnostic),
    /// The message is refused from here on. Nothing follows.
    Error(Diagnostic),
}
