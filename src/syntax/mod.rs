//! Bytes of a model's message to raw calls.
//!
//! ```text
//!         ┌ prose ──── locate: line starts, fences ──────────────┐
//! bytes ──┼ envelope ─ json: the `tools` string, unescaped ──────┤ stream: one text
//!         └ block ──── tag, scan, text: complete slices          ┘
//!                        └─ quick-xml: values, CDATA ─ element ─ RawCall
//! ```
//!
//! The parser is push-style: it performs no I/O, never blocks, and gives the same events for every
//! chunking. It knows no tool; a [`grammar::Grammar`] tells it which elements exist. Its own scanners
//! find where a tag or a text ends, which repair mode decides by rules no XML parser has. What they
//! cut out is decoded by quick-xml, or taken raw; only a text of characters and references, which
//! most texts are, is decoded in the pass that checks it.
//!
//! Calls come out as soon as their end is decided. An error comes out when its source line is
//! complete, for the excerpt, or the message ends; the calls before it have come out by then.

mod attribute;
mod block;
mod calm;
mod chars;
mod comment;
mod context;
mod diagnose;
mod element;
mod envelope;
pub mod escapes;
mod faults;
mod follow;
mod form;
pub mod grammar;
mod ids;
mod json;
mod leaf;
mod leaves;
mod locate;
mod opener;
mod position;
mod references;
mod repairs;
mod scan;
mod source;
mod stream;
mod strict;
mod table;
mod tag;
mod text;

use std::sync::Arc;

pub use self::diagnose::near;
use self::grammar::Grammar;
use self::stream::Stream;
use self::table::Table;
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

/// Reads one message, piece by piece.
///
/// ```
/// use std::sync::Arc;
/// use karyi::syntax::grammar::{ContentRule, ElementRule, Grammar, LeafKind};
/// use karyi::syntax::{Event, Mode, Parser};
///
/// let command = ElementRule {
///     name: "command".into(),
///     attributes: Vec::new(),
///     content: ContentRule::Leaf(LeafKind::Script),
/// };
/// let grammar = Grammar { tools: vec![command], ..Grammar::default() };
/// let mut parser = Parser::new(Arc::new(grammar), Mode::Repair);
/// let mut events = Vec::new();
/// parser.feed(b"Let me see:\n<tools><command>cd a && ", &mut events);
/// parser.feed(b"make</command></tools>", &mut events);
/// parser.finish(&mut events);
/// let calls = events.iter().filter(|event| matches!(event, Event::Call(_)));
/// assert_eq!(calls.count(), 1);
/// ```
#[derive(Debug)]
pub struct Parser {
    stream: Stream,
}

impl Parser {
    /// Makes a parser for one message.
    #[must_use]
    pub fn new(grammar: Arc<Grammar>, mode: Mode) -> Self {
        let table = Arc::new(Table::new(&grammar));
        Self {
            stream: Stream::of_message(table, mode),
        }
    }

    /// Takes the next bytes of the message; what they decide is added to `events`.
    ///
    /// After an error everything is ignored.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        self.stream.feed(bytes, events);
    }

    /// Takes the end of the message.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        self.stream.finish(events);
    }

    /// Tells whether so far something looked like a block and did not run.
    ///
    /// Each has its warning [`Code::IgnoredBlock`](crate::error::Code::IgnoredBlock), up to
    /// [`MAX_WARNINGS`](crate::limits::MAX_WARNINGS); this tells of the ones after that too.
    #[must_use]
    pub fn has_ignored_block(&self) -> bool {
        self.stream.has_ignored_block()
    }

    /// Tells whether the message is a JSON envelope: places of its calls then count inside the
    /// decoded string `tools`.
    #[must_use]
    pub fn is_envelope(&self) -> bool {
        self.stream.is_envelope()
    }
}
