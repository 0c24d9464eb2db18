//! What a terminal prints, for the files of the jobs in its background.
//!
//! Programs in the background print to the same place as the commands before them. Whoever printed
//! it, it goes through one rendering, byte by byte in the order of the terminal, so that what is held
//! back of one text cannot come behind a later one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Ending, FirstPass, Output, Stages, last_line};
use crate::exec::log::{Log, Printer};
use crate::tool::context::OutputSink;
use karyi_core::head_tail::{Cap, HeadTail};
use karyi_vault::redact::{Redacted, Redactor};

/// What one terminal prints while jobs are in its background, and between two commands.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<Pages>>);

struct Pages {
    /// What is kept there was printed since the last command began, and since it printed something.
    stages: Stages,
    /// The logs of the jobs in the background, by their ids.
    logs: Vec<(String, Log)>,
    /// Who printed last.
    by: Printer,
    /// What was held back when the last command began, and may be the start of what is kept.
    older: Redacted,
}

impl Journal {
    /// Makes that of a terminal without jobs.
    #[must_use]
    pub fn new(redactor: &Redactor) -> Self {
        let pages = Pages {
            stages: Stages::new(redactor, Cap::default(), None, None),
            logs: Vec::new(),
            by: Printer::Another,
            older: Redacted::default(),
        };
        Self(Arc::new(Mutex::new(pages)))
    }

    /// Returns a sink for what is printed while no command runs.
    #[must_use]
    pub fn sink(&self) -> OutputSink {
        let journal = self.clone();
        Box::new(move |bytes| journal.lock().print(bytes, Printer::Job))
    }

    /// Takes what a command prints.
    pub(super) fn print(&self, bytes: &[u8]) {
        self.lock().print(bytes, Printer::Another);
    }

    /// A command begins: what is printed from now on belongs to the files of what it leaves.
    pub fn begin(&self) {
        self.lock().begin();
    }

    /// Adds the logs of jobs that a command has left, with what was printed on the terminal since it
    /// has ended. `output` is what the command printed: a value may begin there and end in what the jobs print.
    pub fn add(&self, logs: Vec<(String, Log)>, output: Option<&Output>) {
        if !logs.is_empty() {
            let earlier = output.and_then(Output::continued);
            self.lock().add(logs, earlier);
        }
    }

    /// Whether jobs are in the background that may print.
    pub(super) fn has_jobs(&self) -> bool {
        !self.lock().logs.is_empty()
    }

    /// Returns the first pass over what was printed so far, while there are jobs that may go on with it.
    pub(super) fn first_pass(&self) -> Option<FirstPass> {
        let pages = self.lock();
        let has_jobs = !pages.logs.is_empty();
        has_jobs.then(|| pages.stages.continued()).flatten()
    }

    /// Removes the log of a job that has ended.
    pub fn remove(&self, id: &str) {
        self.lock().logs.retain(|(known, _)| known != id);
    }

    /// Returns the last line that says something of what was printed while no command ran, since a job
    /// is in the background.
    #[must_use]
    pub fn last_line(&self, id: &str) -> Option<String> {
        let pages = self.lock();
        let (_, log) = pages.logs.iter().find(|(known, _)| known == id)?;
        let unfinished = match pages.by {
            Printer::Job => pages.stages.unfinished(),
            Printer::Another => Redacted::default(),
        };
        last_line(log.tail(), unfinished.as_str())
    }

    /// Writes the lines that may still change into the files.
    pub fn write_files(&self) {
        let mut pages = self.lock();
        if pages.logs.is_empty() {
            return;
        }
        let lines = pages.stages.unfinished();
        for (_, log) in &mut pages.logs {
            log.show_unfinished(&lines);
        }
    }

    /// A poisoned lock means that a stage panicked; what it kept so far is still whole text.
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn print(&mut self, bytes: &[u8], by: Printer) {
        if self.by != by {
            self.end_screen();
            self.by = by;
            self.forget_kept();
        }
        // What a command prints is in its own log until it leaves a job.
        if by == Printer::Another && self.logs.is_empty() {
            return;
        }
        self.stages.take_in(bytes);
        self.keep();
    }

    fn begin(&mut self) {
        match self.by {
            Printer::Job => {
                self.forget_kept();
                self.older = self.stages.unfinished();
            }
            // A program that was killed may have left its screen behind.
            Printer::Another if self.stages.result.terminal.is_alternate() => self.end_screen(),
            Printer::Another => {}
        }
    }

    fn add(&mut self, logs: Vec<(String, Log)>, earlier: Option<FirstPass>) {
        // What is held back was printed before the jobs were known, so it is in what is kept.
        self.stages.end_text(Ending::Cut);
        self.keep();
        let kept = std::mem::replace(&mut self.stages.kept, HeadTail::new(self.stages.cap));
        let text = kept.into_view().text;
        let since = text.strip_prefix(self.older.as_str()).unwrap_or(&text);
        let since = self.stages.redactor.redact_whole_again(since);
        self.older.clear();
        if let Some((lossy, mut first)) = earlier.filter(|_| self.logs.is_empty()) {
            // Nothing of the command was read here, and what came after it was.
            if self.by == Printer::Job {
                first.push(since.as_str(), &mut Redacted::default());
                first.flush(&mut Redacted::default());
            }
            self.stages.raw = Some((lossy, first));
        }
        for (id, mut log) in logs {
            log.begin(&Redacted::default());
            log.forget_tail();
            log.append(&since, Printer::Job);
            self.logs.push((id, log));
        }
    }

    /// Gives what the screen holds; what follows is printed on an empty one.
    fn end_screen(&mut self) {
        self.stages.result.end_screen();
        self.keep();
    }

    fn forget_kept(&mut self) {
        self.stages.kept = HeadTail::new(self.stages.cap);
        self.older.clear();
    }

    /// Gives what was rendered to all logs.
    fn keep(&mut self) {
        let text = std::mem::take(&mut self.stages.result.redacted);
        if text.is_empty() {
            return;
        }
        for (_, log) in &mut self.logs {
            log.append(&text, self.by);
        }
        if self.by == Printer::Job {
            self.stages.kept.push(text.as_str());
        }
        // Its memory is used again.
        self.stages.result.redacted = text;
        self.stages.result.redacted.clear();
    }
}

#[cfg(test)]
mod tests;
