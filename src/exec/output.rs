//! The way of a command's bytes into its result: text, then redaction, then the cap.
//!
//! The session's reader thread pushes bytes in; what a watcher may see goes out as events at the
//! same time. Redaction comes before the cap, since half a secret could not be recognised.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::capped::{Cap, HeadTail, View};
use crate::exec::Event;
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

/// The stages between the terminal and the result of one call.
pub struct Output {
    stages: Arc<Mutex<Stages>>,
}

struct Stages {
    owner: Owner,
    text: TerminalText,
    redact: Option<RedactStream>,
    kept: HeadTail,
    /// Where a watcher sees the text at once.
    live: Option<mpsc::Sender<Event>>,
    rendered: String,
    redacted: String,
}

impl Output {
    /// Makes the stages of one call.
    #[must_use]
    pub fn new(
        owner: Owner,
        redactor: &Redactor,
        cap: Cap,
        live: Option<mpsc::Sender<Event>>,
    ) -> Self {
        let stages = Stages {
            owner,
            text: TerminalText::new(),
            redact: Some(redactor.stream()),
            kept: HeadTail::new(cap),
            live,
            rendered: String::new(),
            redacted: String::new(),
        };
        Self {
            stages: Arc::new(Mutex::new(stages)),
        }
    }

    /// Returns the maker of sinks that push into the stages.
    #[must_use]
    pub fn sinks(&self) -> MakeSink {
        let stages = Arc::clone(&self.stages);
        Arc::new(move || -> OutputSink {
            let stages = Arc::clone(&stages);
            Box::new(move |bytes| lock(&stages).push(bytes))
        })
    }

    /// Ends the stages and returns what is kept, and the event of what no watcher has seen yet.
    #[must_use]
    pub fn finish(self, ending: Ending) -> (View, Option<Event>) {
        lock(&self.stages).finish(ending)
    }
}

/// A poisoned lock means that a stage panicked; what it kept so far is still whole text.
fn lock(stages: &Mutex<Stages>) -> std::sync::MutexGuard<'_, Stages> {
    stages.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stages {
    fn push(&mut self, bytes: &[u8]) {
        self.text.push(bytes, &mut self.rendered);
        self.redact();
        self.pass_on();
    }

    fn redact(&mut self) {
        if let Some(redact) = &mut self.redact {
            redact.push(&self.rendered, &mut self.redacted);
        }
        self.rendered.clear();
    }

    fn finish(&mut self, ending: Ending) -> (View, Option<Event>) {
        self.text.finish(&mut self.rendered);
        self.redact();
        match (self.redact.take(), ending) {
            (Some(redact), Ending::Whole) => redact.finish(&mut self.redacted),
            (Some(redact), Ending::Cut) => redact.finish_cut(&mut self.redacted),
            (None, _) => {}
        }
        let rest = self.take();
        let empty = HeadTail::new(Cap::total(0));
        let view = std::mem::replace(&mut self.kept, empty).into_view();
        (view, rest.filter(|_| self.live.is_some()))
    }

    /// Hands the redacted text to the watcher. One that is gone is no reason to stop the command.
    fn pass_on(&mut self) {
        let event = self.take();
        if let (Some(live), Some(event)) = (&self.live, event)
            && live.blocking_send(event).is_err()
        {
            self.live = None;
        }
    }

    /// Keeps the redacted text and makes the event of it.
    fn take(&mut self) -> Option<Event> {
        if self.redacted.is_empty() {
            return None;
        }
        self.kept.push(&self.redacted);
        if self.live.is_none() {
            self.redacted.clear();
            return None;
        }
        Some(Event::Output {
            index: self.owner.index,
            id: self.owner.id.clone(),
            text: std::mem::take(&mut self.redacted),
        })
    }
}
