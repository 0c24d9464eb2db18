//! Parses and decodes a message into calls that are ready to run.
//!
//! A call whose arguments do not fit its tool is refused like malformed XML: at the same moment and
//! with the same kind of diagnostic. Nothing after it is read.

use std::sync::Arc;

use crate::exec::prose_text::ProseText;
use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::call::{BlockOptions, RawCall};
use karyi_core::error::{Code, Diagnostic};
use karyi_core::limits;
use karyi_core::span::Position;
use karyi_syntax::grammar::Grammar;
use karyi_syntax::{Event, Mode, Parser};

/// Approval of a call before its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approval {
    /// Nothing.
    #[default]
    Nothing,
    /// The shell has just told that its names mean what they meant at the start.
    Names,
    /// A person has approved it as it is.
    ByPerson,
}

/// A decoded call that is ready to run.
#[derive(Debug)]
pub struct PreparedCall {
    /// Its place in the message, from 0.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// The typed call.
    pub call: Call,
    /// Codes of the repairs that made it parseable.
    pub repairs: Vec<&'static str>,
    /// Approximate memory it occupies, in bytes.
    pub size_bytes: u64,
    /// Its approval so far.
    pub approved: Approval,
    /// Notes for the model about what happened to it before it ran.
    pub notes: Vec<String>,
}

impl PreparedCall {
    /// Returns a call that is not part of a message.
    #[must_use]
    pub fn standalone(id: String, call: Call) -> Self {
        Self {
            index: 0,
            id,
            call,
            repairs: Vec::new(),
            size_bytes: 0,
            approved: Approval::default(),
            notes: Vec::new(),
        }
    }
}

/// An item decoded from a message.
#[derive(Debug)]
pub enum DecodedItem {
    /// The start of a block.
    BlockOpened(BlockOptions),
    /// A call that is ready to run.
    Call(Box<PreparedCall>),
    /// The end of a block.
    BlockClosed,
    /// Prose outside blocks, if the decoder was told to give it out.
    Prose(String),
    /// The blocks so far were drafts.
    DraftsEnded,
    /// A warning about the message.
    Warning(Box<Diagnostic>),
    /// The error from which on the message is refused.
    Refused(Box<Diagnostic>),
}

/// How far a message was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageProgress {
    /// Number of its calls.
    pub calls: u64,
    /// Offset of the end of the last one.
    pub calls_end: u64,
    /// True inside a block.
    pub is_in_block: bool,
}

/// Decoder of one message.
pub struct MessageDecoder {
    parser: Parser,
    registry: Arc<Registry<Call>>,
    events: Vec<Event>,
    prose: Option<ProseText>,
    progress: MessageProgress,
    has_block: bool,
    runs_at_once: bool,
    /// Warnings of mixed escapes in the call that is being read. Its repairs tell the same.
    mixed: Vec<Diagnostic>,
    /// The error of a call, which may be part of a draft.
    refusal: Option<Box<Diagnostic>>,
    is_refused: bool,
}

impl MessageDecoder {
    /// Creates a decoder for one message.
    #[must_use]
    pub fn new(registry: Arc<Registry<Call>>, grammar: Arc<Grammar>, mode: Mode) -> Self {
        Self {
            parser: Parser::new(grammar, mode),
            registry,
            events: Vec::new(),
            prose: None,
            progress: MessageProgress::default(),
            has_block: false,
            runs_at_once: false,
            mixed: Vec::new(),
            refusal: None,
            is_refused: false,
        }
    }

    /// Notes that calls run while the message is read.
    pub fn run_at_once(&mut self) {
        self.parser.run_at_once();
        self.runs_at_once = true;
    }

    /// Gives the prose of the message out, too.
    #[must_use]
    pub fn with_prose(mut self) -> Self {
        self.prose = Some(ProseText::default());
        self
    }

    /// Returns how far the message was read.
    #[must_use]
    pub fn progress(&self) -> MessageProgress {
        self.progress
    }

    /// Decodes further bytes.
    pub fn feed(&mut self, bytes: &[u8], decoded: &mut Vec<DecodedItem>) {
        self.parser.feed(bytes, &mut self.events);
        self.decode_all(bytes, decoded);
    }

    /// Decodes the rest at the end of the message.
    pub fn finish(&mut self, decoded: &mut Vec<DecodedItem>) {
        self.parser.finish(&mut self.events);
        self.decode_all(&[], decoded);
        if let Some(diagnostic) = self.refusal.take() {
            decoded.push(self.refuse(diagnostic));
        }
    }

    /// Explains why a message without errors has no call: a refusal when it has lines that start like calls, or blocks
    /// that were ignored.
    #[must_use]
    pub fn why_nothing(&self) -> Option<DecodedItem> {
        if self.progress.calls > 0 || self.is_refused {
            return None;
        }
        let hint =
            "to run something, write <tools> on a line of its own, then the calls, then </tools>";
        let nothing = |message: &str| {
            Box::new(Diagnostic {
                code: Code::NoBlock,
                position: Position::START,
                is_in_json: false,
                message: message.into(),
                hint: hint.into(),
                excerpt: None,
            })
        };
        let message = match self.has_block {
            true => "nothing ran: the <tools> block has no call",
            false => "nothing ran: the message has no <tools> block",
        };
        Some(match self.parser.bare_call() {
            Some(diagnostic) => DecodedItem::Refused(Box::new(diagnostic.clone())),
            None if self.parser.has_ignored_block() => {
                DecodedItem::Refused(nothing("nothing ran: see the warnings for the reason"))
            }
            None => DecodedItem::Warning(nothing(message)),
        })
    }

    /// Returns true when the message was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Decodes the events of the parser, with the prose between them.
    fn decode_all(&mut self, bytes: &[u8], decoded: &mut Vec<DecodedItem>) {
        let prose = self.prose.as_mut();
        let next = prose.map(|prose| prose.feed(bytes, &mut self.parser));
        self.decode_events(decoded);
        if let Some((prose, next)) = self.prose.as_mut().zip(next) {
            decoded.extend(prose.before(u64::MAX).map(DecodedItem::Prose));
            prose.forget(next);
        }
    }

    fn decode_events(&mut self, decoded: &mut Vec<DecodedItem>) {
        for event in std::mem::take(&mut self.events) {
            if self.is_refused {
                return;
            }
            if self.refusal.is_some() && event != Event::DraftsEnded {
                continue;
            }
            match &event {
                Event::Warning(warning) if warning.code == Code::MixedEscapes => {
                    self.mixed.push(warning.clone());
                    continue;
                }
                // The result of an edit tells it.
                Event::Call(raw) if raw.element.name == "edit" => self.mixed.clear(),
                Event::Error(_) | Event::Call(_) => {
                    let mixed = self.mixed.drain(..);
                    decoded.extend(mixed.map(|warning| DecodedItem::Warning(Box::new(warning))));
                }
                _ => {}
            }
            let next = match event {
                Event::BlockOpened { options, position } => {
                    let prose = self.prose.as_mut();
                    let before = prose.and_then(|prose| prose.before(position.offset));
                    decoded.extend(before.map(DecodedItem::Prose));
                    (self.has_block, self.progress.is_in_block) = (true, true);
                    DecodedItem::BlockOpened(options)
                }
                Event::BlockClosed => {
                    self.progress.is_in_block = false;
                    DecodedItem::BlockClosed
                }
                Event::DraftsEnded => {
                    self.mixed.clear();
                    if !self.runs_at_once {
                        (self.has_block, self.progress, self.refusal) =
                            (false, MessageProgress::default(), None);
                    }
                    DecodedItem::DraftsEnded
                }
                Event::Warning(diagnostic) => DecodedItem::Warning(Box::new(diagnostic)),
                Event::Error(diagnostic) => self.refuse(Box::new(diagnostic)),
                Event::Call(raw) => match self.decode_call(raw) {
                    Ok(call) => DecodedItem::Call(Box::new(call)),
                    Err(diagnostic) if self.runs_at_once => self.refuse(diagnostic),
                    Err(diagnostic) => {
                        self.refusal = Some(diagnostic);
                        continue;
                    }
                },
            };
            decoded.push(next);
        }
    }

    fn refuse(&mut self, diagnostic: Box<Diagnostic>) -> DecodedItem {
        self.is_refused = true;
        DecodedItem::Refused(diagnostic)
    }

    fn decode_call(&mut self, raw: RawCall) -> Result<PreparedCall, Box<Diagnostic>> {
        let call = self.registry.decode(&raw).map_err(|mut diagnostic| {
            diagnostic.is_in_json = self.parser.is_envelope();
            diagnostic
        })?;
        // A text may be raw: the prompt asks for it. The result of an edit tells of mixed escapes.
        let is_edit = raw.element.name == "edit";
        let is_told = |code: &&str| *code != "R4" && !(is_edit && *code == "R5");
        let repairs = raw.repairs.into_iter().filter(is_told);
        let span = raw.element.span;
        let index = self.progress.calls;
        self.progress.calls += 1;
        if !self.parser.is_envelope() {
            self.progress.calls_end = span.end_offset;
        }
        Ok(PreparedCall {
            index,
            id: raw.id,
            call,
            repairs: repairs.collect(),
            size_bytes: span.end_offset.saturating_sub(span.start.offset)
                + limits::CALL_OVERHEAD_BYTES,
            approved: Approval::default(),
            notes: Vec::new(),
        })
    }
}
