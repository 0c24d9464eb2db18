//! One text that may hold blocks: a whole message, or the `tools` string of an envelope.
//!
//! It keeps the bytes that are not yet decided and runs the parts of the parser over them: the
//! locator in prose, a block, or an envelope.

use std::sync::Arc;

use super::block::Block;
use super::calm::{Calm, Waiting};
use super::context::{Context, Progress, Report};
use super::diagnose::{Fault, Located, Outcome};
use super::envelope::{Envelope, Tools};
use super::event::{Event, Mode};
use super::ids::Ids;
use super::locate::{Locator, Sight};
use super::source::{Ending, Source, View};
use super::table::Table;
use karyi_core::error::Code;

/// An empty buffer larger than this is given back.
const KEPT_CAPACITY: usize = 1 << 20;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The parser of one text.
#[derive(Debug)]
pub(super) struct Stream {
    table: Arc<Table>,
    source: Source,
    /// Bytes that are not consumed.
    pending: Vec<u8>,
    waiting: Waiting,
    state: State,
}

/// How far the parser is.
#[derive(Debug)]
struct State {
    mode: Mode,
    part: Part,
    locator: Locator,
    ids: Ids,
    report: Report,
    is_envelope: bool,
}

#[derive(Debug)]
enum Part {
    /// Nothing was read.
    Start,
    Prose,
    Block(Box<Block>),
    Envelope(Box<Envelope<Stream>>),
    /// Refused; the diagnostic waits for the end of its source line.
    Refused(Box<Located>),
    /// At its end, by itself or by an error.
    Over {
        is_refused: bool,
    },
}

impl Tools for Stream {
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        Self::feed(self, bytes, events);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        Self::finish(self, events);
    }

    fn cut(&mut self, events: &mut Vec<Event>) {
        Self::cut(self, events);
    }

    fn has_refused(&self) -> bool {
        Self::has_refused(self)
    }

    fn has_ignored_block(&self) -> bool {
        Self::has_ignored_block(self)
    }
}

impl Stream {
    /// Starts a message.
    pub(super) fn of_message(table: Arc<Table>, mode: Mode) -> Self {
        let state = State {
            mode,
            part: Part::Start,
            locator: Locator::of_message(),
            ids: Ids::default(),
            report: Report::default(),
            is_envelope: false,
        };
        Self::new(table, state)
    }

    /// Starts the `tools` string of an envelope.
    fn of_string(table: Arc<Table>, mode: Mode) -> Self {
        let state = State {
            mode,
            part: Part::Prose,
            locator: Locator::of_string(),
            ids: Ids::default(),
            report: Report::in_json(),
            is_envelope: false,
        };
        Self::new(table, state)
    }

    fn new(table: Arc<Table>, state: State) -> Self {
        Self {
            table,
            source: Source::default(),
            pending: Vec::new(),
            waiting: Waiting::new(Calm::NEVER),
            state,
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        if self.waiting.takes(bytes) {
            match bytes {
                [byte] => self.pending.push(*byte),
                _ => self.pending.extend_from_slice(bytes),
            }
        } else {
            self.take(bytes, Ending::Open, events);
        }
    }

    /// Takes the end.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) {
        self.take(&[], Ending::Last, events);
        self.flush(events);
        if !self.has_refused() {
            self.state.part = Part::Over { is_refused: false };
        }
    }

    /// Says what is wrong so far, when nothing will follow that counts.
    pub(super) fn cut(&mut self, events: &mut Vec<Event>) {
        self.take(&[], Ending::Cut, events);
        self.flush(events);
    }

    /// Gives out an error that waits for the end of its source line.
    pub(super) fn flush(&mut self, events: &mut Vec<Event>) {
        self.state.flush(events);
    }

    /// Tells whether an error was given out.
    pub(super) fn has_refused(&self) -> bool {
        matches!(self.state.part, Part::Over { is_refused: true })
    }

    /// Tells whether something looked like a block and did not run.
    pub(super) fn has_ignored_block(&self) -> bool {
        self.state.report.has_ignored
    }

    /// Tells whether the text is a JSON envelope.
    pub(super) fn is_envelope(&self) -> bool {
        self.state.is_envelope
    }

    fn take(&mut self, bytes: &[u8], ending: Ending, events: &mut Vec<Event>) {
        match &mut self.state.part {
            Part::Over { .. } => return,
            Part::Refused(located) => {
                located.extend(bytes);
                if located.is_whole() {
                    self.flush(events);
                }
                return;
            }
            Part::Start | Part::Prose | Part::Block(_) | Part::Envelope(_) => {}
        }
        if self.pending.is_empty() {
            let consumed = self.run(bytes, ending, events);
            self.pending
                .extend_from_slice(bytes.get(consumed..).unwrap_or_default());
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(bytes);
            let consumed = self.run(&pending, ending, events);
            pending.drain(..consumed);
            if !pending.is_empty() || pending.capacity() <= KEPT_CAPACITY {
                self.pending = pending;
            }
        }
        if let Part::Refused(_) | Part::Over { .. } = self.state.part {
            self.pending = Vec::new();
        }
        self.waiting = Waiting::new(self.state.calm(self.pending.len()));
    }

    /// Goes through the bytes as far as they decide anything; returns how many are consumed.
    fn run(&mut self, bytes: &[u8], ending: Ending, events: &mut Vec<Event>) -> usize {
        let mut view = View::new(bytes, ending, &mut self.source);
        let state = &mut self.state;
        loop {
            match state.step(&mut view, &self.table, events) {
                Ok(Progress::Again) => {}
                Ok(Progress::More | Progress::Done) => break,
                Err(fault) => {
                    state.refuse(*fault, &mut view, events);
                    break;
                }
            }
        }
        let consumed = view.consumed();
        if consumed > 0 {
            state.freeze(&view);
            view.close();
        }
        consumed
    }
}

impl State {
    fn flush(&mut self, events: &mut Vec<Event>) {
        if let Part::Refused(_) = self.part {
            let over = Part::Over { is_refused: true };
            if let Part::Refused(located) = std::mem::replace(&mut self.part, over) {
                events.push(Event::Error(located.finish()));
            }
        }
    }

    fn step(
        &mut self,
        view: &mut View<'_>,
        table: &Arc<Table>,
        events: &mut Vec<Event>,
    ) -> Outcome<Progress> {
        let mut cx = Context {
            view,
            table,
            mode: self.mode,
            ids: &mut self.ids,
            report: &mut self.report,
            events,
        };
        match &mut self.part {
            Part::Start => {
                let progress = start(&mut cx)?;
                if progress == Progress::Done {
                    self.part = Part::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Part::Prose => {
                let sight = self.locator.step(&mut cx)?;
                Ok(self.look(sight, table))
            }
            Part::Block(block) => {
                let progress = block.run(&mut cx)?;
                if progress == Progress::Done {
                    self.part = Part::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Part::Envelope(envelope) => {
                let step = envelope.step(&mut cx);
                let (is_over, is_ignored) = envelope.settle(&step, cx.is_last(), cx.events);
                self.report.has_ignored |= is_ignored;
                if is_over {
                    self.part = Part::Over { is_refused: true };
                    return Ok(Progress::Done);
                }
                let progress = step?;
                if progress == Progress::Done {
                    self.locator = Locator::of_trailing_prose();
                    self.part = Part::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Part::Refused(_) | Part::Over { .. } => Ok(Progress::Done),
        }
    }

    fn look(&mut self, sight: Sight, table: &Arc<Table>) -> Progress {
        match sight {
            Sight::More => return Progress::More,
            Sight::Again => {}
            Sight::Block(block) => self.part = Part::Block(block),
            Sight::Envelope { is_fenced } => {
                self.is_envelope = true;
                let tools = Stream::of_string(Arc::clone(table), self.mode);
                self.part = Part::Envelope(Box::new(Envelope::new(is_fenced, Box::new(tools))));
            }
        }
        Progress::Again
    }

    fn refuse(&mut self, fault: Fault, view: &mut View<'_>, events: &mut Vec<Event>) {
        let located = fault.locate(view, self.report.is_in_json);
        let is_whole = located.is_whole();
        self.part = Part::Refused(Box::new(located));
        if is_whole {
            self.flush(events);
        }
    }

    /// Tells what bytes the parser waits for when `length` bytes are not consumed.
    fn calm(&self, length: usize) -> &'static Calm {
        match &self.part {
            Part::Prose => self.locator.calm(length),
            Part::Block(block) => block.calm(length),
            Part::Start | Part::Envelope(_) | Part::Refused(_) | Part::Over { .. } => Calm::NEVER,
        }
    }

    fn freeze(&mut self, view: &View<'_>) {
        match &mut self.part {
            Part::Prose => self.locator.freeze(view),
            Part::Block(block) => block.freeze(view),
            Part::Start | Part::Envelope(_) | Part::Refused(_) | Part::Over { .. } => {}
        }
    }
}

/// Looks for a byte order mark at the start of a message.
fn start(cx: &mut Context<'_, '_>) -> Outcome<Progress> {
    let rest = cx.view.rest();
    if rest.starts_with(b"\xFF\xFE") || rest.starts_with(b"\xFE\xFF") {
        return Err(Fault::ahead(
            Code::Encoding,
            0,
            1,
            "the message is UTF-16, not UTF-8",
        ));
    }
    if rest.starts_with(UTF8_MARK) {
        cx.view.consume_mark(UTF8_MARK.len());
        return Ok(Progress::Done);
    }
    let marks = [UTF8_MARK, b"\xFF\xFE", b"\xFE\xFF"];
    let is_cut = marks.iter().any(|mark| mark.starts_with(rest));
    match is_cut && !cx.is_last() {
        true => Ok(Progress::More),
        false => Ok(Progress::Done),
    }
}
