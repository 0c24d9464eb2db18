//! Bytes of a message to jobs: parsing and decoding as one step.
//!
//! A call whose arguments do not fit is refused like one that is not well formed, at the same
//! moment and with the same kind of diagnostic; nothing after it is read.

use std::sync::Arc;

use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::call::{BlockOptions, RawCall};
use karyi_core::error::Diagnostic;
use karyi_core::limits;
use karyi_syntax::grammar::Grammar;
use karyi_syntax::{Event, Mode, Parser};

/// A call that is ready to run.
#[derive(Debug)]
pub struct Job {
    /// Its place in the message, from 0.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// The typed call.
    pub call: Call,
    /// Codes of the repairs that made it readable.
    pub repairs: Vec<&'static str>,
    /// What it takes to hold it, in bytes.
    pub held_bytes: u64,
}

impl Job {
    /// Makes a call that is no part of a message.
    #[must_use]
    pub fn alone(id: String, call: Call) -> Self {
        Self {
            index: 0,
            id,
            call,
            repairs: Vec::new(),
            held_bytes: 0,
        }
    }
}

/// What came of some bytes.
#[derive(Debug)]
pub enum Incoming {
    /// A block opens.
    BlockOpened(BlockOptions),
    /// A call is ready.
    Job(Box<Job>),
    /// The block is complete.
    BlockClosed,
    /// Something is doubtful.
    Warning(Box<Diagnostic>),
    /// The message is refused from here on.
    Refused(Box<Diagnostic>),
}

/// Reads one message.
pub struct Intake {
    parser: Parser,
    registry: Arc<Registry<Call>>,
    events: Vec<Event>,
    next_index: u64,
    is_refused: bool,
}

impl Intake {
    /// Starts a message.
    #[must_use]
    pub fn new(registry: Arc<Registry<Call>>, grammar: Arc<Grammar>, mode: Mode) -> Self {
        Self {
            parser: Parser::new(grammar, mode),
            registry,
            events: Vec::new(),
            next_index: 0,
            is_refused: false,
        }
    }

    /// Reads further bytes.
    pub fn feed(&mut self, bytes: &[u8], incoming: &mut Vec<Incoming>) {
        self.parser.feed(bytes, &mut self.events);
        self.decode(incoming);
    }

    /// Ends the message.
    pub fn finish(&mut self, incoming: &mut Vec<Incoming>) {
        self.parser.finish(&mut self.events);
        self.decode(incoming);
    }

    /// Whether the message was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    fn decode(&mut self, incoming: &mut Vec<Incoming>) {
        for event in std::mem::take(&mut self.events) {
            if self.is_refused {
                return;
            }
            let next = match event {
                Event::BlockOpened { options, .. } => Incoming::BlockOpened(options),
                Event::BlockClosed => Incoming::BlockClosed,
                Event::Warning(diagnostic) => Incoming::Warning(Box::new(diagnostic)),
                Event::Error(diagnostic) => self.refuse(Box::new(diagnostic)),
                Event::Call(raw) => self.job(raw),
            };
            incoming.push(next);
        }
    }

    fn refuse(&mut self, diagnostic: Box<Diagnostic>) -> Incoming {
        self.is_refused = true;
        Incoming::Refused(diagnostic)
    }

    fn job(&mut self, raw: RawCall) -> Incoming {
        match self.registry.decode(&raw) {
            Err(mut diagnostic) => {
                diagnostic.is_in_json = self.parser.is_envelope();
                self.refuse(diagnostic)
            }
            Ok(call) => {
                let index = self.next_index;
                self.next_index += 1;
                let span = raw.element.span;
                Incoming::Job(Box::new(Job {
                    index,
                    id: raw.id,
                    call,
                    repairs: raw.repairs,
                    held_bytes: span.end_offset.saturating_sub(span.start.offset)
                        + limits::CALL_OVERHEAD_BYTES,
                }))
            }
        }
    }
}
