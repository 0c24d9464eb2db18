//! Pipeline from a command's bytes to its result: mask bytes, render text, mask text, cap. Later stages mask nothing.
//!
//! Values are masked in the raw bytes, before a carriage return or backspace can remove a part of them,
//! and in the rendered text, where cursor movement could have assembled one. Masking comes before
//! the cap, since half a secret could not be recognised. What is retained is masked again when it is taken if another
//! secret has become known meanwhile.
//!
//! The session's reader thread pushes bytes; live output leaves as events at the same time. The watcher's
//! rendering is its own: it is immediate and shows rewritten text again, while the result is exact. The
//! pipeline lives as long as the job: output between calls goes to its file and to the next call. The
//! terminal journal gets the same bytes.

mod live;
mod terminal_journal;

pub use live::LiveOutput;
pub use terminal_journal::TerminalJournal;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use zeroize::Zeroizing;

use crate::exec::Event;
use crate::exec::output_log::{LogLifetime, OutputLog, OutputSource};
use crate::exec::utf8::Utf8Decoder;
use crate::tool::context::OutputSink;
use karyi_core::head_tail::{Cap, HeadTail, ShortenedText};
use karyi_pty::text::TerminalText;
use karyi_vault::redact::{RedactStream, Redacted, Redactor};

/// The way a stretch of output ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is complete.
    Whole,
    /// A signal or a failure cut it off: the possible start of a secret is masked.
    Broken,
    /// The job goes on: the possible start of a secret is masked.
    Cut,
}

/// The call that owns the output.
#[derive(Debug, Clone)]
pub struct OutputOwner {
    /// Index of the call in the message.
    pub index: u64,
    /// Id of the call.
    pub id: Redacted,
}

/// The style of a watcher's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherStyle {
    /// Plain text.
    Plain,
    /// Text with the colours of plain lines.
    InColour,
}

/// The output pipeline of one job.
#[derive(Clone)]
pub struct OutputPipeline(Arc<Mutex<PipelineState>>);

/// Masking of the raw bytes.
type BytePass = (Utf8Decoder, RedactStream);

struct PipelineState {
    redactor: Redactor,
    cap: Cap,
    /// The call whose result the output belongs to.
    owner: Option<OutputOwner>,
    /// Masks the raw bytes, once a secret is known.
    byte_pass: Option<BytePass>,
    result: Rendering,
    /// The watcher's rendering, while there is a watcher.
    watched: Option<Rendering>,
    /// Output that the watcher has seen although the byte pass still withholds it.
    shown_early: Redacted,
    /// True when bytes arrived since the last idle check.
    has_new_bytes: bool,
    /// True when bytes arrived since a watcher got the unfinished line.
    has_new_line: bool,
    /// True when any bytes arrived.
    has_begun: bool,
    /// True when the last line is unfinished.
    is_within_line: bool,
    retained: Redacted<HeadTail>,
    /// Generation of the secrets that are masked in all of the retained text.
    masked_generation: u64,
    log: Option<OutputLog>,
    /// The journal of the terminal, for its background jobs.
    journal: Option<TerminalJournal>,
}

/// Rendered text for one reader.
struct Rendering {
    terminal: TerminalText,
    /// Masks the rendered text: cursor movement can assemble a value.
    redact: RedactStream,
    rendered: String,
    redacted: Redacted,
}

impl Rendering {
    fn new(terminal: TerminalText, redactor: &Redactor) -> Self {
        Self {
            terminal,
            redact: text_pass(redactor),
            rendered: String::new(),
            redacted: Redacted::default(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.terminal.push(bytes, &mut self.rendered);
        self.redact.push(&self.rendered, &mut self.redacted);
        self.rendered.clear();
    }

    /// Flushes the rest. Later output starts on an empty screen, or continues on the alternate screen.
    fn finish(&mut self, ending: Ending) {
        self.finish_terminal();
        end_stream(&mut self.redact, ending, &mut self.redacted);
    }

    fn finish_terminal(&mut self) {
        self.terminal.finish(&mut self.rendered);
        self.redact.push(&self.rendered, &mut self.redacted);
        self.rendered.clear();
    }

    /// Flushes the screen; later output starts on an empty one.
    fn end_screen(&mut self) {
        self.finish_terminal();
        if self.terminal.is_alternate() {
            self.terminal = TerminalText::new();
        }
    }
}

fn byte_pass(redactor: &Redactor) -> Option<BytePass> {
    (!redactor.is_idle()).then(|| (Utf8Decoder::default(), redactor.stream()))
}

fn text_pass(redactor: &Redactor) -> RedactStream {
    if redactor.is_idle() {
        redactor.stream()
    } else {
        redactor.second_stream()
    }
}

impl OutputPipeline {
    /// Creates the pipeline of one job. `log` takes output that results do not show, `journal` feeds the files
    /// of the terminal's background jobs.
    #[must_use]
    pub fn new(
        redactor: &Redactor,
        cap: Cap,
        log: Option<OutputLog>,
        journal: Option<TerminalJournal>,
    ) -> Self {
        Self(Arc::new(Mutex::new(PipelineState::new(
            redactor, cap, log, journal,
        ))))
    }

    /// Returns a sink for the pipeline. A watcher gets the text at once, or, without `live`, together with later
    /// output.
    #[must_use]
    pub fn sink(&self, live: Option<LiveOutput>) -> OutputSink {
        let state = Arc::clone(&self.0);
        let live = live.map(|live| (live, Handle::current()));
        Box::new(move |bytes| {
            let mut state = lock(&state);
            state.push(bytes);
            let Some((live, runtime)) = &live else {
                return;
            };
            let event = state.take_event();
            // Release the lock before waiting for the watcher.
            drop(state);
            if let Some(event) = event {
                runtime.block_on(live.send(event));
            }
        })
    }

    /// Makes a call the owner of later output and of output since the last call; returns the event with the
    /// latter when there is a watcher.
    #[must_use]
    pub fn attach(
        &self,
        owner: OutputOwner,
        watcher: Option<WatcherStyle>,
    ) -> Option<Redacted<Event>> {
        let mut state = lock(&self.0);
        state.begin_byte_pass();
        let event = state.missed_event(&owner, watcher.is_some());
        let is_drawing = state.result.terminal.is_alternate();
        if let Some(watcher) = watcher
            && !(is_drawing && state.watched.is_some())
        {
            let terminal = match watcher {
                WatcherStyle::Plain => TerminalText::for_watcher(),
                WatcherStyle::InColour => TerminalText::for_watcher_in_colour(),
            };
            let mut rendering = Rendering::new(terminal, &state.redactor);
            if let Some(last) = state.watched.take().filter(|_| state.byte_pass.is_some()) {
                rendering.redact = last.redact;
            }
            state.watched = Some(rendering);
        }
        state.owner = Some(owner);
        event
    }

    /// Returns the withheld output, if nothing arrived since the last check: the possible start of a value at
    /// the end of a line. Only a person, who may have to answer, sees such a start.
    #[must_use]
    pub fn show_idle(&self, to_person: bool) -> Option<Redacted<Event>> {
        lock(&self.0).show_idle(to_person)
    }

    /// Returns the event with the unfinished line, if it may have changed since the last one.
    #[must_use]
    pub fn show_unfinished(&self) -> Option<Redacted<Event>> {
        lock(&self.0).show_unfinished()
    }

    /// Ends the call's ownership; returns its output and the event with the text no watcher has seen. Later
    /// output belongs to the next call.
    #[must_use]
    pub fn detach(&self, ending: Ending) -> (Redacted<ShortenedText>, Option<Redacted<Event>>) {
        lock(&self.0).detach(ending)
    }

    /// Flushes the output of a running job into its file.
    pub fn write_file(&self) {
        let mut state = lock(&self.0);
        state.create_log();
        let line = state.unfinished();
        if let Some(log) = &mut state.log {
            log.show_unfinished(&line);
        }
    }

    /// Writes the whole output of the call to the file, because the call leaves jobs.
    pub fn log_everything(&self) {
        let mut state = lock(&self.0);
        if !state.retained.get().text().is_empty() || !state.unfinished().is_empty() {
            state.create_log();
        }
    }

    /// Returns true when a background job may continue the unfinished line.
    #[must_use]
    pub fn may_continue_line(&self, leaves_jobs: bool) -> bool {
        let state = lock(&self.0);
        let has_jobs = || {
            state
                .journal
                .as_ref()
                .is_some_and(TerminalJournal::has_jobs)
        };
        state.is_within_line && (leaves_jobs || has_jobs())
    }

    /// Returns the state of the byte pass, for the output of background jobs that follows.
    fn continued_byte_pass(&self) -> Option<BytePass> {
        lock(&self.0).continued_byte_pass()
    }

    /// Takes the log, for the job that the command has left.
    #[must_use]
    pub fn take_log(&self) -> Option<OutputLog> {
        lock(&self.0).log.take()
    }

    /// Returns a log for another job that begins with the output of this one, which has ended.
    #[must_use]
    pub fn copy_log(&self, id: &str) -> Option<OutputLog> {
        let mut state = lock(&self.0);
        state.flush(Ending::Whole);
        state.store_rendered();
        Some(state.log.as_ref()?.copy(id))
    }

    /// Returns path and lifetime of the output file, or the reason why there is none.
    #[must_use]
    pub fn file(&self) -> Option<Result<(String, LogLifetime), String>> {
        let state = lock(&self.0);
        let log = state.log.as_ref()?;
        let path = log.path().map(|path| path.to_string_lossy().into_owned());
        let problem = log.problem().map(|problem| Err(problem.to_owned()));
        problem.or_else(|| path.map(|path| Ok((path, log.lifetime()))))
    }

    /// Returns the last line that is not blank.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let state = lock(&self.0);
        let tail = state.log.as_ref().map_or("", OutputLog::tail);
        last_line(tail, state.unfinished().as_str())
    }

    /// Returns the lines that may still change.
    #[must_use]
    pub fn unfinished(&self) -> Redacted {
        lock(&self.0).unfinished()
    }
}

/// Returns the last line that is not blank in a text followed by an unfinished line.
#[must_use]
pub fn last_line(text: &str, unfinished: &str) -> Option<String> {
    let mut lines = unfinished.lines().rev().chain(text.lines().rev());
    let line = lines.find(|line| !line.trim().is_empty())?;
    Some(line.trim_end().to_owned())
}

/// A poisoned lock means that a stage panicked; the text stored so far is still valid.
fn lock(state: &Mutex<PipelineState>) -> MutexGuard<'_, PipelineState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PipelineState {
    fn new(
        redactor: &Redactor,
        cap: Cap,
        log: Option<OutputLog>,
        journal: Option<TerminalJournal>,
    ) -> Self {
        Self {
            redactor: redactor.clone(),
            cap,
            owner: None,
            byte_pass: byte_pass(redactor),
            result: Rendering::new(TerminalText::new(), redactor),
            watched: None,
            shown_early: Redacted::default(),
            has_new_bytes: false,
            has_new_line: false,
            has_begun: false,
            is_within_line: false,
            retained: empty(cap),
            masked_generation: redactor.secrets().generation(),
            log,
            journal,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(journal) = &self.journal {
            // A background job may continue here what it began before.
            if !std::mem::replace(&mut self.has_begun, true) && self.byte_pass.is_some() {
                self.byte_pass = journal.byte_pass().or(self.byte_pass.take());
            }
            journal.print(bytes);
        }
        self.process(bytes);
        self.store_rendered();
    }

    /// Returns the byte pass for the output that follows, without the withheld text, which was shown.
    fn continued_byte_pass(&self) -> Option<BytePass> {
        let (_, first) = self.byte_pass.as_ref()?;
        let mut first = first.clone();
        first.flush(&mut Redacted::default());
        Some((Utf8Decoder::default(), first))
    }

    /// Masks and renders some bytes.
    fn process(&mut self, bytes: &[u8]) {
        self.begin_byte_pass();
        self.has_new_bytes = true;
        self.has_new_line = true;
        self.is_within_line = bytes
            .last()
            .map_or(self.is_within_line, |last| *last != b'\n');
        match &mut self.byte_pass {
            None => self.render(bytes),
            Some((decoder, redact)) => {
                let mut decoded = Zeroizing::new(String::with_capacity(bytes.len()));
                let mut masked = Redacted::default();
                decoder.push(bytes, &mut decoded);
                redact.push(&decoded, &mut masked);
                self.render_masked(&masked);
            }
        }
    }

    /// Starts the byte pass when the first secret becomes known, possibly after the job has started.
    fn begin_byte_pass(&mut self) {
        if self.byte_pass.is_some() || self.redactor.is_idle() {
            return;
        }
        self.byte_pass = byte_pass(&self.redactor);
        let renderings = [Some(&mut self.result), self.watched.as_mut()];
        for rendering in renderings.into_iter().flatten() {
            let second = self.redactor.second_stream();
            // It knew no value, so it withholds nothing.
            let last = std::mem::replace(&mut rendering.redact, second);
            last.finish(&mut rendering.redacted);
        }
    }

    /// Renders the withheld output.
    fn flush(&mut self, ending: Ending) {
        if let Some((decoder, redact)) = &mut self.byte_pass {
            let (mut decoded, mut masked) = (String::new(), Redacted::default());
            match ending {
                Ending::Cut => decoder.flush_line_ends(&mut decoded),
                _ => decoder.finish(&mut decoded),
            }
            redact.push(&decoded, &mut masked);
            end_stream(redact, ending, &mut masked);
            self.render_masked(&masked);
            self.shown_early.clear();
        }
        self.result.finish(ending);
        if let Some(watched) = &mut self.watched {
            watched.finish(ending);
        }
    }

    fn detach(&mut self, ending: Ending) -> (Redacted<ShortenedText>, Option<Redacted<Event>>) {
        self.flush(ending);
        self.store_rendered();
        let rest = self.take_event();
        self.owner = None;
        if ending == Ending::Cut {
            self.create_log();
        }
        let is_current = self.is_current();
        let mut view = self.take_retained();
        if !is_current {
            let text = self.redactor.redact_whole_again(&view.get().text);
            view.change(text, |view, text| view.text = text);
        }
        (view, rest)
    }

    /// Takes the retained text, masked with the secrets that were known when it arrived.
    fn take_retained(&mut self) -> Redacted<ShortenedText> {
        self.masked_generation = self.redactor.secrets().generation();
        let retained = std::mem::replace(&mut self.retained, empty(self.cap));
        retained.map(HeadTail::into_view)
    }

    /// Returns true when no other secret has become known since the retained text began.
    fn is_current(&self) -> bool {
        self.masked_generation == self.redactor.secrets().generation()
    }

    /// Returns the retained text.
    fn retained_text(&self) -> Redacted {
        let text = self.retained.as_ref().map(HeadTail::text);
        match self.is_current() {
            true => text,
            false => self.redactor.redact_whole_again(text.as_str()),
        }
    }

    fn render(&mut self, bytes: &[u8]) {
        self.result.push(bytes);
        if let Some(watched) = &mut self.watched {
            watched.push(bytes);
        }
    }

    /// Renders masked text; the watcher may have seen the start of it.
    fn render_masked(&mut self, masked: &Redacted) {
        let text = masked.as_str();
        self.result.push(text.as_bytes());
        let seen = self.shown_early.as_str();
        let same = common_prefix_len(seen, text);
        if let Some(watched) = &mut self.watched {
            watched.push(text.get(same..).unwrap_or_default().as_bytes());
        }
        if same == seen.len() || same < text.len() {
            self.shown_early.clear();
        } else {
            self.shown_early = self.shown_early.from(same);
        }
    }

    fn show_idle(&mut self, to_person: bool) -> Option<Redacted<Event>> {
        if std::mem::take(&mut self.has_new_bytes) || self.owner.is_none() {
            return None;
        }
        let (_, redact) = self.byte_pass.as_ref()?;
        let watched = self.watched.as_mut()?;
        let mut shown = Redacted::default();
        redact.clone().flush(&mut shown);
        if !to_person {
            let mut cut = Redacted::default();
            redact.clone().cut(&mut cut);
            shown = shown.until(common_prefix_len(shown.as_str(), cut.as_str()));
        }
        let more = shown.as_str().strip_prefix(self.shown_early.as_str())?;
        watched.push(more.as_bytes());
        watched.redact.flush(&mut watched.redacted);
        self.shown_early = shown;
        self.take_event()
    }

    fn show_unfinished(&mut self) -> Option<Redacted<Event>> {
        let index = self.owner.as_ref()?.index;
        if !std::mem::take(&mut self.has_new_line) {
            return None;
        }
        let mut line = self.unfinished();
        if let Some(end) = line.as_str().rfind('\n') {
            line = line.from(end + 1);
        }
        Some(self.redactor.seal(Event::Unfinished { index, line }))
    }

    /// Stores the result's text; the watcher's text stays for its event while a call waits.
    fn store_rendered(&mut self) {
        let text = std::mem::take(&mut self.result.redacted);
        if !text.is_empty() {
            self.store(&text);
            // Reuse the buffer.
            self.result.redacted = text;
            self.result.redacted.clear();
        }
        if let Some(watched) = self.watched.as_mut().filter(|_| self.owner.is_none()) {
            watched.redacted.clear();
        }
    }

    /// Returns the event with the text the watcher has not seen yet.
    fn take_event(&mut self) -> Option<Redacted<Event>> {
        let owner = self.owner.as_ref()?;
        let text = std::mem::take(&mut self.watched.as_mut()?.redacted);
        (!text.is_empty()).then(|| self.sealed(owner, text))
    }

    fn sealed(&self, owner: &OutputOwner, text: Redacted) -> Redacted<Event> {
        self.redactor.seal(Event::Output {
            index: owner.index,
            id: owner.id.clone(),
            text,
        })
    }

    /// Stores redacted text in the log and the result.
    fn store(&mut self, text: &Redacted) {
        if !self.retained.get().has_room_for(text.as_str()) {
            self.create_log();
        }
        if let Some(log) = &mut self.log {
            log.append(text, OutputSource::Job);
        }
        self.retained
            .change(text.as_ref(), |retained, text| retained.push(text));
    }

    /// Returns the event with the output that arrived while no call waited.
    fn missed_event(&self, owner: &OutputOwner, is_watched: bool) -> Option<Redacted<Event>> {
        let text = self.retained_text();
        (is_watched && !text.is_empty()).then(|| self.sealed(owner, text))
    }

    /// Creates the file while the earlier output is complete.
    fn create_log(&mut self) {
        if self.log.as_ref().is_some_and(OutputLog::is_not_created) {
            let earlier = self.retained_text();
            self.log.iter_mut().for_each(|log| log.create(&earlier));
        }
    }

    /// Returns the withheld output as it would appear if nothing followed.
    fn unfinished(&self) -> Redacted {
        let (mut terminal, mut rendered) = (self.result.terminal.clone(), String::new());
        if let Some((_, redact)) = &self.byte_pass {
            let mut masked = Redacted::default();
            redact.clone().cut(&mut masked);
            terminal.push(masked.as_str().as_bytes(), &mut rendered);
        }
        terminal.finish(&mut rendered);
        let (mut redact, mut text) = (self.result.redact.clone(), Redacted::default());
        redact.push(&rendered, &mut text);
        redact.cut(&mut text);
        text
    }
}

fn empty(cap: Cap) -> Redacted<HeadTail> {
    Redacted::default().map_by(cap, |(), cap| HeadTail::new(cap))
}

fn end_stream(redact: &mut RedactStream, ending: Ending, out: &mut Redacted) {
    match ending {
        Ending::Whole => redact.flush(out),
        Ending::Broken | Ending::Cut => redact.cut(out),
    }
}

/// Returns the length of the common prefix in bytes, in whole characters.
fn common_prefix_len(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    same.map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests;
