//! The way of a command's bytes into its result: redaction, text, redaction again, the cap.
//!
//! A value is masked in the bytes as they come, before a carriage return or backspace can take a
//! part of it away, and once more in the rendered text, which could have put one together.
//!
//! The session's reader thread pushes bytes in; what a watcher may see goes out as events at the
//! same time. A watcher's text is a rendering of its own: it comes at once, and what is rewritten
//! comes again, while the result is exact. Redaction comes before the cap, since half a secret could
//! not be recognised.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::capped::{Cap, HeadTail, View};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::lossy::Lossy;
use crate::pty::text::TerminalText;
use crate::tool::context::{MakeSink, OutputSink};
use crate::vault::redact::{RedactStream, Redactor};

/// How output comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// There is no more.
    Whole,
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

/// Where a watcher sees output at once.
#[derive(Clone)]
pub struct Live {
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// The wish to stop.
    pub cancel: Cancel,
}

impl Live {
    /// Waits until the watcher has room; one that is gone or does not look when the run is
    /// cancelled holds up nobody.
    async fn send(&self, event: Event) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled() => {}
        }
    }
}

/// The stages between the terminal and the result of one call.
pub struct Output {
    stages: Arc<Mutex<Stages>>,
    live: Option<(Live, Handle)>,
}

struct Stages {
    owner: Owner,
    /// The pass over the bytes as they come, while there is something to mask.
    raw: Option<(Lossy, RedactStream)>,
    result: Rendering,
    kept: HeadTail,
    /// What a watcher sees at once.
    watched: Option<Rendering>,
}

/// The text of the output for one reader.
struct Rendering {
    terminal: TerminalText,
    /// The pass over the rendered text: moving the cursor can assemble a value.
    redact: Option<RedactStream>,
    rendered: String,
    redacted: String,
}

/// The alternate screen a job shows between two of its calls: the next one sees it whole, not only
/// what changes on it.
#[derive(Clone, Default)]
pub struct JobScreen(Arc<Mutex<Option<Shown>>>);

struct Shown {
    result: TerminalText,
    watched: Option<TerminalText>,
}

impl Output {
    /// Makes the stages of one call.
    #[must_use]
    pub fn new(owner: Owner, redactor: &Redactor, cap: Cap, live: Option<Live>) -> Self {
        let rendering = |terminal| Rendering::new(terminal, redactor);
        let stages = Stages {
            owner,
            raw: (!redactor.is_idle()).then(|| (Lossy::default(), redactor.stream())),
            result: rendering(TerminalText::new()),
            kept: HeadTail::new(cap),
            watched: live
                .is_some()
                .then(|| rendering(TerminalText::for_watcher())),
        };
        Self {
            stages: Arc::new(Mutex::new(stages)),
            live: live.map(|live| (live, Handle::current())),
        }
    }

    /// Returns the maker of sinks that push into the stages.
    #[must_use]
    pub fn sinks(&self) -> MakeSink {
        let (stages, live) = (Arc::clone(&self.stages), self.live.clone());
        Arc::new(move || -> OutputSink {
            let (stages, live) = (Arc::clone(&stages), live.clone());
            Box::new(move |bytes| {
                // The stages are free again before the watcher is waited for.
                let event = lock(&stages).push(bytes);
                if let (Some((live, runtime)), Some(event)) = (&live, event) {
                    runtime.block_on(live.send(event));
                }
            })
        })
    }

    /// Goes on with the screen that the job's last call left.
    pub fn resume(&self, screen: &JobScreen) {
        let Some(shown) = lock_screen(screen).take() else {
            return;
        };
        let mut stages = lock(&self.stages);
        stages.result.terminal = shown.result;
        if let (Some(rendering), Some(terminal)) = (&mut stages.watched, shown.watched) {
            rendering.terminal = terminal;
        }
    }

    /// Ends the stages and returns what is kept, and the event of what no watcher has seen yet.
    #[must_use]
    pub fn finish(&self, ending: Ending) -> (View, Option<Event>) {
        lock(&self.stages).finish(ending)
    }

    /// Leaves the screen to the job's next call, if the alternate one is still shown.
    pub fn leave(self, screen: &JobScreen) {
        let mut stages = lock(&self.stages);
        let result = std::mem::take(&mut stages.result.terminal);
        let watched = stages.watched.as_mut();
        let watched = watched.map(|watched| std::mem::take(&mut watched.terminal));
        let shown = Shown { result, watched };
        *lock_screen(screen) = Some(shown).filter(|shown| shown.result.is_alternate());
    }
}

/// A poisoned lock means that a stage panicked; what it kept so far is still whole text.
fn lock(stages: &Mutex<Stages>) -> std::sync::MutexGuard<'_, Stages> {
    stages.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_screen(screen: &JobScreen) -> std::sync::MutexGuard<'_, Option<Shown>> {
    screen.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stages {
    fn push(&mut self, bytes: &[u8]) -> Option<Event> {
        match &mut self.raw {
            None => self.render(bytes),
            Some((lossy, redact)) => {
                let (mut decoded, mut masked) = (String::new(), String::new());
                lossy.push(bytes, &mut decoded);
                redact.push(&decoded, &mut masked);
                self.render(masked.as_bytes());
            }
        }
        self.take()
    }

    fn finish(&mut self, ending: Ending) -> (View, Option<Event>) {
        if let Some((mut lossy, mut redact)) = self.raw.take() {
            let (mut decoded, mut masked) = (String::new(), String::new());
            lossy.finish(&mut decoded);
            redact.push(&decoded, &mut masked);
            end(redact, ending, &mut masked);
            self.render(masked.as_bytes());
        }
        self.result.finish(ending);
        if let Some(watched) = &mut self.watched {
            watched.finish(ending);
        }
        let rest = self.take();
        let empty = HeadTail::new(Cap::total(0));
        let view = std::mem::replace(&mut self.kept, empty).into_view();
        (view, rest)
    }

    fn render(&mut self, bytes: &[u8]) {
        self.result.push(bytes);
        if let Some(watched) = &mut self.watched {
            watched.push(bytes);
        }
    }

    /// Keeps the result's text and makes the event of the watcher's.
    fn take(&mut self) -> Option<Event> {
        self.kept.push(&self.result.redacted);
        self.result.redacted.clear();
        let seen = std::mem::take(&mut self.watched.as_mut()?.redacted);
        (!seen.is_empty()).then(|| Event::Output {
            index: self.owner.index,
            id: self.owner.id.clone(),
            text: seen,
        })
    }
}

impl Rendering {
    fn new(terminal: TerminalText, redactor: &Redactor) -> Self {
        let redact = if redactor.is_idle() {
            redactor.stream()
        } else {
            redactor.second_stream()
        };
        Self {
            terminal,
            redact: Some(redact),
            rendered: String::new(),
            redacted: String::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.terminal.push(bytes, &mut self.rendered);
        self.redact();
    }

    fn redact(&mut self) {
        if let Some(redact) = &mut self.redact {
            redact.push(&self.rendered, &mut self.redacted);
        }
        self.rendered.clear();
    }

    fn finish(&mut self, ending: Ending) {
        self.terminal.finish(&mut self.rendered);
        self.redact();
        if let Some(redact) = self.redact.take() {
            end(redact, ending, &mut self.redacted);
        }
    }
}

fn end(redact: RedactStream, ending: Ending, out: &mut String) {
    match ending {
        Ending::Whole => redact.finish(out),
        Ending::Cut => redact.finish_cut(out),
    }
}
