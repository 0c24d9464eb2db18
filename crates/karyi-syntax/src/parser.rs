//! The parser of one message.

use std::sync::Arc;

use super::event::{Event, Mode};
use super::grammar::Grammar;
use super::prose::Prose;
use super::stream::Stream;
use super::table::Table;
use karyi_core::error::Diagnostic;

/// Reads one message, piece by piece.
///
/// ```
/// use std::sync::Arc;
/// use karyi_syntax::grammar::{ContentRule, ElementRule, Grammar, LeafKind};
/// use karyi_syntax::{Event, Mode, Parser};
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

    /// Notes that calls run while the message is read: ids of drafts then stay taken.
    pub fn run_at_once(&mut self) {
        self.stream.run_at_once();
    }

    /// Takes the next bytes of the message; what they decide is added to `events`.
    ///
    /// An error comes at the end, because its block may be a draft; if calls run at once, it comes at once, and the
    /// rest is ignored.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        self.stream.feed(bytes, events);
    }

    /// Takes the end of the message.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        self.stream.finish(events);
    }

    /// Tells whether so far something looked like a block and did not run, or results came that the model made up.
    ///
    /// Each has its warning, up to [`MAX_WARNINGS`](karyi_core::limits::MAX_WARNINGS); this tells of the ones after
    /// that too. A `<tools>` that prose only mentions has a warning and does not count.
    #[must_use]
    pub fn has_ignored_block(&self) -> bool {
        self.stream.has_ignored_block()
    }

    /// Returns the first line that starts like a call, outside blocks and fences.
    #[must_use]
    pub fn bare_call(&self) -> Option<&Diagnostic> {
        self.stream.bare_call()
    }

    /// Returns the prose that was decided since the last call.
    ///
    /// Everything outside blocks is prose, drafts too; an envelope and what follows an error are not.
    pub fn take_prose(&mut self) -> Prose {
        self.stream.take_prose()
    }

    /// Tells whether the message is a JSON envelope: places of its calls then count inside the
    /// decoded string `tools`.
    #[must_use]
    pub fn is_envelope(&self) -> bool {
        self.stream.is_envelope()
    }
}
