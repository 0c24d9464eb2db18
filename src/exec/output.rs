//! The way of a command's bytes into its result: redaction, text, redaction again, the cap.
//!
//! A value is masked in the bytes as they come, before a carriage return or backspace can take a
//! part of it away, and once more in the rendered text, which could have put one together.
//!
//! The session's reader thread pushes bytes in; what a watcher may see goes out as events at the
//! same time. A watcher's text is a rendering of its own: it comes at once, and what is rewritten
//! comes again, while the result is exact. Redaction comes before the cap, since half a secret could not be recognised. The
//! stages last as long as the job: what it prints while no call waits for it goes to its file, and
//! to the call that asks next. The journal of the terminal is given the same bytes.

mod journal;
mod watch;

pub use journal::Journal;
pub use watch::Live;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use zeroize::Zeroizing;

use crate::exec::Event;
use crate::exec::log::{Log, Printer};
use crate::exec::lossy::Lossy;
use crate::tool::context::OutputSink;
use karyi_core::head_tail::{Cap, HeadTail, ShortenedText};
use karyi_pty::text::TerminalText;
use karyi_vault::redact::{RedactStream, Redacted, Redactor};

/// How output comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// There is no more.
    Whole,
    /// There is no more, and a signal or a failure cut it off: what may be the start of a secret is
    /// masked.
    Broken,
    /// The job goes on: what may be the start of a secret is masked.
    Cut,
}

/// Who the output belongs to.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The call's place in the message.
    pub index: u64,
    /// The call's id.
    pub id: String,
}

/// What a watcher's terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watcher {
    /// Text alone.
    Plain,
    /// The colours of plain lines, too.
    InColour,
}

/// The stages between the terminal and the results about one job.
#[derive(Clone)]
pub struct Output(Arc<Mutex<Stages>>);

/// The pass over the bytes as they come.
type FirstPass = (Lossy, RedactStream);

struct Stages {
    redactor: Redactor,
    cap: Cap,
    /// The call whose result the output belongs to, while one waits.
    owner: Option<Owner>,
    /// The pass over the bytes as they come, while there is something to mask.
    raw: Option<FirstPass>,
    result: Rendering,
    /// What a watcher sees at once, while there is one.
    watched: Option<Rendering>,
    /// What the watcher has seen already of what the first pass holds back.
    ahead: Redacted,
    /// Whether anything came since somebody looked.
    is_fresh: bool,
    /// Whether anything came at all.
    has_begun: bool,
    /// Whether what came ends within a line.
    is_within_line: bool,
    kept: HeadTail,
    log: Option<Log>,
    /// That of the terminal, which other jobs follow.
    journal: Option<Journal>,
}

/// The text of the output for one reader.
struct Rendering {
    terminal: TerminalText,
    /// The pass over the rendered text: moving the cursor can assemble a value.
    redact: RedactStream,
    rendered: String,
    redacted: Redacted,
}

impl Rendering {
    fn new(terminal: TerminalText, redactor: &Redactor) -> Self {
        Self {
            terminal,
            redact: second_pass(redactor),
            rendered: String::new(),
            redacted: Redacted::default(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.terminal.push(bytes, &mut self.rendered);
        self.redact.push(&self.rendered, &mut self.redacted);
        self.rendered.clear();
    }

    /// Gives what is left. What comes afterwards starts on an empty terminal, or goes on drawing on
    /// the alternate screen.
    fn finish(&mut self, ending: Ending) {
        self.finish_terminal();
        end(&mut self.redact, ending, &mut self.redacted);
    }

    fn finish_terminal(&mut self) {
        self.terminal.finish(&mut self.rendered);
        self.redact.push(&self.rendered, &mut self.redacted);
        self.rendered.clear();
    }

    /// Gives what the terminal shows; what comes afterwards starts on an empty one.
    fn end_screen(&mut self) {
        self.finish_terminal();
        if self.terminal.is_alternate() {
            self.terminal = TerminalText::new();
        }
    }
}

fn first_pass(redactor: &Redactor) -> Option<FirstPass> {
    (!redactor.is_idle()).then(|| (Lossy::default(), redactor.stream()))
}

fn second_pass(redactor: &Redactor) -> RedactStream {
    if redactor.is_idle() {
        redactor.stream()
    } else {
        redactor.second_stream()
    }
}

impl Output {
    /// Makes the stages of one job; `log` takes what results do not show, `journal` what the jobs in
    /// the background of its terminal have in their files.
    #[must_use]
    pub fn new(redactor: &Redactor, cap: Cap, log: Option<Log>, journal: Option<Journal>) -> Self {
        Self(Arc::new(Mutex::new(Stages::new(
            redactor, cap, log, journal,
        ))))
    }

    /// Returns a sink that pushes into the stages; a watcher sees the text at once, or, without
    /// `live`, with what comes next.
    #[must_use]
    pub fn sink(&self, live: Option<Live>) -> OutputSink {
        let stages = Arc::clone(&self.0);
        let live = live.map(|live| (live, Handle::current()));
        Box::new(move |bytes| {
            let mut stages = lock(&stages);
            stages.push(bytes);
            let Some((live, runtime)) = &live else {
                return;
            };
            let event = stages.take_event();
            // They are free again before the watcher is waited for.
            drop(stages);
            if let Some(event) = event {
                runtime.block_on(live.send(event));
            }
        })
    }

    /// Makes a call the owner of what comes and of what came since the last one; returns the event
    /// of the latter when somebody watches.
    #[must_use]
    pub fn attach(&self, owner: Owner, watcher: Option<Watcher>) -> Option<Redacted<Event>> {
        let mut stages = lock(&self.0);
        stages.begin_first_pass();
        let event = stages.event(&owner, watcher.is_some());
        let is_drawing = stages.result.terminal.is_alternate();
        if let Some(watcher) = watcher
            && !(is_drawing && stages.watched.is_some())
        {
            let terminal = match watcher {
                Watcher::Plain => TerminalText::for_watcher(),
                Watcher::InColour => TerminalText::for_watcher_in_colour(),
            };
            let mut rendering = Rendering::new(terminal, &stages.redactor);
            if let Some(last) = stages.watched.take().filter(|_| stages.raw.is_some()) {
                rendering.redact = last.redact;
            }
            stages.watched = Some(rendering);
        }
        stages.owner = Some(owner);
        event
    }

    /// Shows the watcher what is held back, if nothing came since the last time: a line whose end
    /// could be the start of a value is not worth waiting for. A program is not shown what may be such
    /// a start, only a person who may have to answer.
    #[must_use]
    pub fn show_idle(&self, to_person: bool) -> Option<Redacted<Event>> {
        lock(&self.0).show_idle(to_person)
    }

    /// Ends a call's part and returns what is kept of it, and the event of what no watcher has seen
    /// yet. What comes afterwards is for the next call.
    #[must_use]
    pub fn detach(&self, ending: Ending) -> (ShortenedText, Option<Redacted<Event>>) {
        lock(&self.0).detach(ending)
    }

    /// Puts everything into the file that came so far, as of a job that goes on.
    pub fn write_file(&self) {
        let mut stages = lock(&self.0);
        stages.begin_log();
        let line = stages.unfinished();
        if let Some(log) = &mut stages.log {
            log.show_unfinished(&line);
        }
    }

    /// Sees to it that all of what the call prints is in the file, if it prints something: it leaves
    /// jobs.
    pub fn keep_whole(&self) {
        let mut stages = lock(&self.0);
        if !stages.kept.text().is_empty() || !stages.unfinished().is_empty() {
            stages.begin_log();
        }
    }

    /// Whether a job in the background may go on with the line that ends what came: one that the call leaves, or
    /// one that was there.
    #[must_use]
    pub fn may_go_on(&self, leaves_jobs: bool) -> bool {
        let stages = lock(&self.0);
        let has_jobs = || stages.journal.as_ref().is_some_and(Journal::has_jobs);
        stages.is_within_line && (leaves_jobs || has_jobs())
    }

    /// Returns the pass over the bytes as it goes on over what jobs in the background print next.
    fn continued(&self) -> Option<FirstPass> {
        lock(&self.0).continued()
    }

    /// Gives the log away, for what the call's command has left.
    #[must_use]
    pub fn take_log(&self) -> Option<Log> {
        lock(&self.0).log.take()
    }

    /// Returns a log for another job that begins with what the one of this output has printed, which
    /// has ended.
    #[must_use]
    pub fn copy_log(&self, id: &str) -> Option<Log> {
        let mut stages = lock(&self.0);
        stages.end_text(Ending::Whole);
        stages.keep_rendered();
        Some(stages.log.as_ref()?.copy(id))
    }

    /// Returns the file with the whole output, or why there is none.
    #[must_use]
    pub fn file(&self) -> Option<Result<String, String>> {
        let stages = lock(&self.0);
        let log = stages.log.as_ref()?;
        let path = log.path().map(|path| path.to_string_lossy().into_owned());
        let problem = log.problem().map(|problem| Err(problem.to_owned()));
        problem.or_else(|| path.map(Ok))
    }

    /// Returns the last line of what was printed that says something.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let stages = lock(&self.0);
        let tail = stages.log.as_ref().map_or("", Log::tail);
        last_line(tail, stages.unfinished().as_str())
    }

    /// Returns the lines that may still change: the one that has not ended, and those within its reach.
    #[must_use]
    pub fn unfinished(&self) -> Redacted {
        lock(&self.0).unfinished()
    }
}

/// Returns the last line that is not blank of a text and the unfinished line after it.
#[must_use]
pub fn last_line(text: &str, unfinished: &str) -> Option<String> {
    let mut lines = unfinished.lines().rev().chain(text.lines().rev());
    let line = lines.find(|line| !line.trim().is_empty())?;
    Some(line.trim_end().to_owned())
}

/// A poisoned lock means that a stage panicked; what it kept so far is still whole text.
fn lock(stages: &Mutex<Stages>) -> MutexGuard<'_, Stages> {
    stages.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stages {
    fn new(redactor: &Redactor, cap: Cap, log: Option<Log>, journal: Option<Journal>) -> Self {
        Self {
            redactor: redactor.clone(),
            cap,
            owner: None,
            raw: first_pass(redactor),
            result: Rendering::new(TerminalText::new(), redactor),
            watched: None,
            ahead: Redacted::default(),
            is_fresh: false,
            has_begun: false,
            is_within_line: false,
            kept: HeadTail::new(cap),
            log,
            journal,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(journal) = &self.journal {
            // A job in the background may print here what it began before.
            if !std::mem::replace(&mut self.has_begun, true) && self.raw.is_some() {
                self.raw = journal.first_pass().or(self.raw.take());
            }
            journal.print(bytes);
        }
        self.take_in(bytes);
        self.keep_rendered();
    }

    /// Returns the first pass as it goes on over what comes next. What it holds back was shown here.
    fn continued(&self) -> Option<FirstPass> {
        let (_, first) = self.raw.as_ref()?;
        let mut first = first.clone();
        first.flush(&mut Redacted::default());
        Some((Lossy::default(), first))
    }

    /// Masks and renders some bytes.
    fn take_in(&mut self, bytes: &[u8]) {
        self.begin_first_pass();
        self.is_fresh = true;
        self.is_within_line = bytes
            .last()
            .map_or(self.is_within_line, |last| *last != b'\n');
        match &mut self.raw {
            None => self.render(bytes),
            Some((lossy, redact)) => {
                let mut decoded = Zeroizing::new(String::with_capacity(bytes.len()));
                let mut masked = Redacted::default();
                lossy.push(bytes, &mut decoded);
                redact.push(&decoded, &mut masked);
                self.render_masked(&masked);
            }
        }
    }

    /// Begins the pass over the bytes when the first value became known: a job may be older.
    fn begin_first_pass(&mut self) {
        if self.raw.is_some() || self.redactor.is_idle() {
            return;
        }
        self.raw = first_pass(&self.redactor);
        let renderings = [Some(&mut self.result), self.watched.as_mut()];
        for rendering in renderings.into_iter().flatten() {
            let second = self.redactor.second_stream();
            // It knew no value, so it holds none.
            let last = std::mem::replace(&mut rendering.redact, second);
            last.finish(&mut rendering.redacted);
        }
    }

    /// Renders what is held back.
    fn end_text(&mut self, ending: Ending) {
        if let Some((lossy, redact)) = &mut self.raw {
            let (mut decoded, mut masked) = (String::new(), Redacted::default());
            match ending {
                Ending::Cut => lossy.cut(&mut decoded),
                _ => lossy.finish(&mut decoded),
            }
            redact.push(&decoded, &mut masked);
            end(redact, ending, &mut masked);
            self.render_masked(&masked);
            self.ahead.clear();
        }
        self.result.finish(ending);
        if let Some(watched) = &mut self.watched {
            watched.finish(ending);
        }
    }

    fn detach(&mut self, ending: Ending) -> (ShortenedText, Option<Redacted<Event>>) {
        self.end_text(ending);
        self.keep_rendered();
        let rest = self.take_event();
        self.owner = None;
        if ending == Ending::Cut {
            self.begin_log();
        }
        let empty = HeadTail::new(self.cap);
        (std::mem::replace(&mut self.kept, empty).into_view(), rest)
    }

    fn render(&mut self, bytes: &[u8]) {
        self.result.push(bytes);
        if let Some(watched) = &mut self.watched {
            watched.push(bytes);
        }
    }

    /// Renders masked text; a watcher may have seen the start of it.
    fn render_masked(&mut self, masked: &Redacted) {
        let text = masked.as_str();
        self.result.push(text.as_bytes());
        let seen = self.ahead.as_str();
        let same = same_start(seen, text);
        if let Some(watched) = &mut self.watched {
            watched.push(text.get(same..).unwrap_or_default().as_bytes());
        }
        if same == seen.len() || same < text.len() {
            self.ahead.clear();
        } else {
            self.ahead = self.ahead.from(same);
        }
    }

    fn show_idle(&mut self, to_person: bool) -> Option<Redacted<Event>> {
        if std::mem::take(&mut self.is_fresh) || self.owner.is_none() {
            return None;
        }
        let (_, redact) = self.raw.as_ref()?;
        let watched = self.watched.as_mut()?;
        let mut shown = Redacted::default();
        redact.clone().flush(&mut shown);
        if !to_person {
            let mut cut = Redacted::default();
            redact.clone().cut(&mut cut);
            shown = shown.until(same_start(shown.as_str(), cut.as_str()));
        }
        let more = shown.as_str().strip_prefix(self.ahead.as_str())?;
        watched.push(more.as_bytes());
        watched.redact.flush(&mut watched.redacted);
        self.ahead = shown;
        self.take_event()
    }

    /// Keeps the result's text; the watcher's waits for its event while a call waits.
    fn keep_rendered(&mut self) {
        let text = std::mem::take(&mut self.result.redacted);
        if !text.is_empty() {
            self.keep(&text);
            // Its memory is used again.
            self.result.redacted = text;
            self.result.redacted.clear();
        }
        if let Some(watched) = self.watched.as_mut().filter(|_| self.owner.is_none()) {
            watched.redacted.clear();
        }
    }

    /// Makes the event of what the watcher has not seen yet.
    fn take_event(&mut self) -> Option<Redacted<Event>> {
        let owner = self.owner.as_ref()?;
        let text = std::mem::take(&mut self.watched.as_mut()?.redacted);
        (!text.is_empty()).then(|| self.sealed(owner, text))
    }

    fn sealed(&self, owner: &Owner, text: Redacted) -> Redacted<Event> {
        self.redactor.seal(Event::Output {
            index: owner.index,
            id: owner.id.clone(),
            text,
        })
    }

    /// Gives redacted text to everybody who keeps some of it.
    fn keep(&mut self, text: &Redacted) {
        if !self.kept.has_room_for(text.as_str()) {
            self.begin_log();
        }
        if let Some(log) = &mut self.log {
            log.append(text, Printer::Job);
        }
        self.kept.push(text.as_str());
    }

    /// Makes the event of what came while no call waited.
    fn event(&self, owner: &Owner, is_watched: bool) -> Option<Redacted<Event>> {
        let text = self.redactor.redact_whole_again(&self.kept.text());
        (is_watched && !text.is_empty()).then(|| self.sealed(owner, text))
    }

    /// Makes the file while what came before is still whole.
    fn begin_log(&mut self) {
        if let Some(log) = self.log.as_mut().filter(|log| log.is_unmade()) {
            log.begin(&self.redactor.redact_whole_again(&self.kept.text()));
        }
    }

    /// Returns what is held back because more may come, as it would be if nothing came.
    fn unfinished(&self) -> Redacted {
        let (mut terminal, mut rendered) = (self.result.terminal.clone(), String::new());
        if let Some((_, redact)) = &self.raw {
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

fn end(redact: &mut RedactStream, ending: Ending, out: &mut Redacted) {
    match ending {
        Ending::Whole => redact.flush(out),
        Ending::Broken | Ending::Cut => redact.cut(out),
    }
}

/// Returns how many bytes two texts have in common at their start, whole characters only.
fn same_start(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    same.map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests;
