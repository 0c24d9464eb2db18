//! Parser of one text that may hold blocks: a whole message, or the `tools` string of an envelope.
//!
//! It buffers undecided bytes and runs the current part over them: the locator in prose, a block, or an envelope.

use std::sync::Arc;

use super::block::Block;
use super::context::{Context, Progress, Report};
use super::envelope::{Envelope, ToolsParser};
use super::event::{Event, Mode};
use super::fault::{Fault, LocatedDiagnostic, Outcome};
use super::ids::Ids;
use super::locator::{Locator, LocatorStep};
use super::prose::{Prose, ProseTracker};
use super::source::{Ending, Source, View};
use super::stop_bytes::{BufferWindow, StopBytes};
use super::table::Table;
use karyi_core::error::{Code, Diagnostic};
use karyi_core::limits::MAX_AFTER_ERROR_BYTES;

/// Most blocks with an error that may be drafts: each is read again.
const MAX_FAULTY_DRAFTS: u8 = 8;

/// Largest capacity of an empty buffer that is retained.
const RETAINED_CAPACITY: usize = 1 << 20;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The parser of one text.
#[derive(Debug)]
pub(super) struct Stream {
    table: Arc<Table>,
    source: Source,
    /// Bytes that are not consumed.
    pending: Vec<u8>,
    window: BufferWindow,
    state: StreamState,
}

/// State of the parser.
#[derive(Debug)]
struct StreamState {
    mode: Mode,
    phase: Phase,
    locator: Locator,
    prose: ProseTracker,
    ids: Ids,
    report: Report,
    is_envelope: bool,
    /// The error that refuses the message, unless its block is a draft.
    error: Option<Diagnostic>,
    /// Bytes since that error.
    after_error: usize,
    faulty_drafts: u8,
}

#[derive(Debug)]
enum Phase {
    /// Nothing was read.
    Start,
    Prose,
    Block(Box<Block>),
    Envelope(Box<Envelope<Stream>>),
    /// Refused; the diagnostic waits for the end of its source line.
    Refused(Box<LocatedDiagnostic>),
    /// At its end, by itself or by an error.
    Over {
        is_refused: bool,
    },
}

impl ToolsParser for Stream {
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

    fn report(&mut self) -> &mut Report {
        &mut self.state.report
    }
}

impl Stream {
    /// Starts a message.
    pub(super) fn of_message(table: Arc<Table>, mode: Mode) -> Self {
        let state = StreamState {
            mode,
            phase: Phase::Start,
            locator: Locator::of_message(),
            prose: ProseTracker::new(),
            ids: Ids::default(),
            report: Report::default(),
            is_envelope: false,
            error: None,
            after_error: 0,
            faulty_drafts: 0,
        };
        Self::new(table, state)
    }

    /// Starts the `tools` string of an envelope.
    fn of_string(table: Arc<Table>, mode: Mode) -> Self {
        let state = StreamState {
            mode,
            phase: Phase::Prose,
            locator: Locator::of_string(),
            prose: ProseTracker::new(),
            ids: Ids::default(),
            report: Report::in_json(),
            is_envelope: false,
            error: None,
            after_error: 0,
            faulty_drafts: 0,
        };
        Self::new(table, state)
    }

    fn new(table: Arc<Table>, state: StreamState) -> Self {
        Self {
            table,
            source: Source::default(),
            pending: Vec::new(),
            window: BufferWindow::new(StopBytes::ANY),
            state,
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        if self.window.accepts(bytes) {
            match bytes {
                [byte] => self.pending.push(*byte),
                _ => self.pending.extend_from_slice(bytes),
            }
        } else {
            self.process(bytes, Ending::Open, events);
        }
    }

    /// Takes the end.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) {
        self.process(&[], Ending::Last, events);
        let error = self.state.error.take();
        if !self.has_refused() {
            let is_refused = error.is_some();
            self.state.phase = Phase::Over { is_refused };
        }
        events.extend(error.map(Event::Error));
    }

    /// Emits the errors so far, when nothing that counts will follow.
    pub(super) fn cut(&mut self, events: &mut Vec<Event>) {
        self.process(&[], Ending::Cut, events);
        self.state.flush(events);
    }

    /// Tells whether an error was given out.
    pub(super) fn has_refused(&self) -> bool {
        matches!(self.state.phase, Phase::Over { is_refused: true })
    }

    /// Tells whether something looked like a block and did not run, or made-up results came.
    pub(super) fn has_ignored_block(&self) -> bool {
        self.state.report.has_ignored
    }

    /// Notes that calls run while the text is read.
    pub(super) fn run_at_once(&mut self) {
        self.state.report.is_streamed = true;
    }

    /// Returns the first line that starts like a call outside any block.
    pub(super) fn bare_call(&self) -> Option<&Diagnostic> {
        self.state.report.bare_call.as_deref()
    }

    /// Returns the prose that was decided since the last call.
    pub(super) fn take_prose(&mut self) -> Prose {
        let locator = &self.state.locator;
        let is_line = matches!(self.state.phase, Phase::Prose) && locator.is_in_line();
        let waiting = match is_line && StopBytes::PROSE.find(&self.pending).is_none() {
            true => self.pending.len() as u64,
            false => 0,
        };
        let decided = self.source.offset() + waiting;
        let until = locator.undecided().unwrap_or(decided);
        self.state.prose.take(until)
    }

    /// Tells whether the text is a JSON envelope.
    pub(super) fn is_envelope(&self) -> bool {
        self.state.is_envelope
    }

    fn process(&mut self, bytes: &[u8], ending: Ending, events: &mut Vec<Event>) {
        self.state.count_after_error(bytes.len(), events);
        if let Phase::Refused(located) = &mut self.state.phase {
            located.extend(bytes);
            if located.is_complete() || ending == Ending::Last {
                self.state.flush(events);
            }
        }
        match self.state.phase {
            Phase::Over { .. } => return,
            Phase::Refused(_) => return self.pending.extend_from_slice(bytes),
            Phase::Start | Phase::Prose | Phase::Block(_) | Phase::Envelope(_) => {}
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
            if !pending.is_empty() || pending.capacity() <= RETAINED_CAPACITY {
                self.pending = pending;
            }
        }
        if let Phase::Over { .. } = self.state.phase {
            self.pending = Vec::new();
        }
        self.window = BufferWindow::new(self.state.stop_bytes(self.pending.len()));
    }

    /// Parses the bytes as far as they decide anything; returns the number of consumed bytes.
    fn run(&mut self, bytes: &[u8], ending: Ending, events: &mut Vec<Event>) -> usize {
        let mut view = View::new(bytes, ending, &mut self.source);
        let state = &mut self.state;
        loop {
            match state.step(&mut view, &self.table, events) {
                Ok(Progress::Again) => {}
                Ok(Progress::More | Progress::Done) => break,
                Err(fault) => state.refuse(*fault, &mut view, events),
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

impl StreamState {
    fn flush(&mut self, events: &mut Vec<Event>) {
        if !matches!(self.phase, Phase::Refused(_)) {
            return;
        }
        let over = Phase::Over { is_refused: true };
        let Phase::Refused(located) = std::mem::replace(&mut self.phase, over) else {
            return;
        };
        if self.report.may_be_draft() && self.faulty_drafts < MAX_FAULTY_DRAFTS {
            (self.error, self.after_error) = (Some(located.finish()), 0);
            self.locator = Locator::of_faulty_block();
            self.phase = Phase::Prose;
        } else {
            events.push(Event::Error(located.finish()));
        }
    }

    /// Refuses the message when the text after an error is too long to look for the end of a thought.
    fn count_after_error(&mut self, count: usize, events: &mut Vec<Event>) {
        self.after_error += count;
        if self.after_error > MAX_AFTER_ERROR_BYTES
            && let Some(error) = self.error.take()
        {
            events.push(Event::Error(error));
            self.phase = Phase::Over { is_refused: true };
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
        match &mut self.phase {
            Phase::Start => {
                let progress = start(&mut cx)?;
                if progress == Progress::Done {
                    self.prose.begin(cx.view.offset());
                    self.phase = Phase::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Phase::Prose => {
                let known = cx.events.len();
                let step = self.locator.step(&mut cx)?;
                match &step {
                    LocatorStep::Block(block) => self.prose.end(block.offset()),
                    LocatorStep::Envelope { .. } => self.prose = ProseTracker::new(),
                    LocatorStep::Again | LocatorStep::More => {}
                }
                let mut new = cx.events.iter().skip(known);
                self.prose.end_at_results(new.clone());
                if self.error.is_some() && new.any(|event| *event == Event::DraftsEnded) {
                    self.error = None;
                    self.faulty_drafts += 1;
                }
                Ok(self.enter(step, table))
            }
            Phase::Block(block) => {
                let progress = block.run(&mut cx)?;
                if progress == Progress::Done {
                    self.prose.begin(cx.view.offset());
                    self.phase = Phase::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Phase::Envelope(envelope) => {
                let step = envelope.step(&mut cx);
                if envelope.settle(&step, &mut cx) {
                    self.phase = Phase::Over { is_refused: true };
                    return Ok(Progress::Done);
                }
                let progress = step?;
                if progress == Progress::Done {
                    self.locator = Locator::of_trailing_prose();
                    self.phase = Phase::Prose;
                    return Ok(Progress::Again);
                }
                Ok(progress)
            }
            Phase::Refused(_) | Phase::Over { .. } => Ok(Progress::Done),
        }
    }

    fn enter(&mut self, step: LocatorStep, table: &Arc<Table>) -> Progress {
        match step {
            LocatorStep::More => return Progress::More,
            LocatorStep::Again => {}
            LocatorStep::Block(block) => self.phase = Phase::Block(block),
            LocatorStep::Envelope { is_fenced } => {
                self.is_envelope = true;
                let mut tools = Stream::of_string(Arc::clone(table), self.mode);
                tools.state.report.is_streamed = self.report.is_streamed;
                self.phase = Phase::Envelope(Box::new(Envelope::new(is_fenced, Box::new(tools))));
            }
        }
        Progress::Again
    }

    fn refuse(&mut self, fault: Fault, view: &mut View<'_>, events: &mut Vec<Event>) {
        let located = fault.locate(view, self.report.is_in_json);
        let is_complete = located.is_complete();
        let undecided = self.locator.undecided();
        self.prose.end(undecided.unwrap_or(view.offset()));
        self.phase = Phase::Refused(Box::new(located));
        if is_complete {
            self.flush(events);
        }
    }

    /// Returns the bytes at which the parser must run again, with `length` bytes unconsumed.
    fn stop_bytes(&self, length: usize) -> &'static StopBytes {
        match &self.phase {
            Phase::Prose => self.locator.stop_bytes(length),
            Phase::Block(block) => block.stop_bytes(length),
            Phase::Start | Phase::Envelope(_) | Phase::Refused(_) | Phase::Over { .. } => {
                StopBytes::ANY
            }
        }
    }

    fn freeze(&mut self, view: &View<'_>) {
        match &mut self.phase {
            Phase::Prose => self.locator.freeze(view),
            Phase::Block(block) => block.freeze(view),
            Phase::Start | Phase::Envelope(_) | Phase::Refused(_) | Phase::Over { .. } => {}
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
