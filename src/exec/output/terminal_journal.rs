//! Output of a terminal for the files of its background jobs.
//!
//! Background programs print to the same terminal as foreground commands. All of it goes through one
//! rendering in the order of the terminal, so that withheld text never ends up after later text.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{BytePass, Ending, OutputPipeline, PipelineState, last_line};
use crate::exec::output_log::{OutputLog, OutputSource};
use crate::tool::context::OutputSink;
use karyi_core::head_tail::Cap;
use karyi_vault::redact::{Redacted, Redactor};

/// Output of one terminal while it has background jobs, and between commands.
#[derive(Clone)]
pub struct TerminalJournal(Arc<Mutex<JournalState>>);

struct JournalState {
    /// Retains the output since the last command began and printed something.
    pipeline: PipelineState,
    /// Logs of the background jobs, by job id.
    logs: Vec<(String, OutputLog)>,
    /// The program that printed last.
    source: OutputSource,
    /// Withheld text at the start of the last command, with which the retained text may begin.
    held_before: Redacted,
}

impl TerminalJournal {
    /// Creates the journal of a terminal without jobs.
    #[must_use]
    pub fn new(redactor: &Redactor) -> Self {
        let state = JournalState {
            pipeline: PipelineState::new(redactor, Cap::default(), None, None),
            logs: Vec::new(),
            source: OutputSource::Other,
            held_before: Redacted::default(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns a sink for output while no command runs.
    #[must_use]
    pub fn sink(&self) -> OutputSink {
        let journal = self.clone();
        Box::new(move |bytes| journal.lock().print(bytes, OutputSource::Job))
    }

    /// Receives the output of a command.
    pub(super) fn print(&self, bytes: &[u8]) {
        self.lock().print(bytes, OutputSource::Other);
    }

    /// Marks the start of a command: later output belongs to the files of the jobs it leaves.
    pub fn begin(&self) {
        self.lock().begin();
    }

    /// Adds the logs of jobs that a command has left, with the terminal's output since its end. A value may
    /// begin in `output`, the command's own, and end in that of the jobs.
    pub fn add(&self, logs: Vec<(String, OutputLog)>, output: Option<&OutputPipeline>) {
        if !logs.is_empty() {
            let earlier = output.and_then(OutputPipeline::continued_byte_pass);
            self.lock().add(logs, earlier);
        }
    }

    /// Returns true when the terminal has background jobs that may print.
    pub(super) fn has_jobs(&self) -> bool {
        !self.lock().logs.is_empty()
    }

    /// Returns the state of the byte pass, while there are jobs that may continue the output.
    pub(super) fn byte_pass(&self) -> Option<BytePass> {
        let state = self.lock();
        let has_jobs = !state.logs.is_empty();
        has_jobs
            .then(|| state.pipeline.continued_byte_pass())
            .flatten()
    }

    /// Removes the log of a job that has ended.
    pub fn remove(&self, id: &str) {
        self.lock().logs.retain(|(known, _)| known != id);
    }

    /// Returns the last line that is not blank that a background job printed between commands.
    #[must_use]
    pub fn last_line(&self, id: &str) -> Option<String> {
        let state = self.lock();
        let (_, log) = state.logs.iter().find(|(known, _)| known == id)?;
        let unfinished = match state.source {
            OutputSource::Job => state.pipeline.unfinished(),
            OutputSource::Other => Redacted::default(),
        };
        last_line(log.tail(), unfinished.as_str())
    }

    /// Writes the lines that may still change into the files.
    pub fn write_files(&self) {
        let mut state = self.lock();
        if state.logs.is_empty() {
            return;
        }
        let lines = state.pipeline.unfinished();
        for (_, log) in &mut state.logs {
            log.show_unfinished(&lines);
        }
    }

    /// A poisoned lock means that a stage panicked; the text stored so far is still valid.
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalState {
    fn print(&mut self, bytes: &[u8], source: OutputSource) {
        if self.source != source {
            self.end_screen();
            self.source = source;
            self.discard_retained();
        }
        // A command's output is in its own log until it leaves a job.
        if source == OutputSource::Other && self.logs.is_empty() {
            return;
        }
        self.pipeline.process(bytes);
        self.store();
    }

    fn begin(&mut self) {
        match self.source {
            OutputSource::Job => {
                self.discard_retained();
                self.held_before = self.pipeline.unfinished();
            }
            // A killed program may have left its screen behind.
            OutputSource::Other if self.pipeline.result.terminal.is_alternate() => {
                self.end_screen()
            }
            OutputSource::Other => {}
        }
    }

    fn add(&mut self, logs: Vec<(String, OutputLog)>, earlier: Option<BytePass>) {
        // Withheld output was printed before the jobs were known, so it belongs to the retained text.
        self.pipeline.flush(Ending::Cut);
        self.store();
        let is_current = self.pipeline.is_current();
        let mut since = self.pipeline.take_retained().map(|view| view.text);
        if since.as_str().starts_with(self.held_before.as_str()) {
            since = since.from(self.held_before.as_str().len());
        }
        if !is_current {
            since = self.pipeline.redactor.redact_whole_again(since.as_str());
        }
        self.held_before.clear();
        if let Some((decoder, mut first)) = earlier.filter(|_| self.logs.is_empty()) {
            // The byte pass has not read the command's output, but the output after it.
            if self.source == OutputSource::Job {
                first.push(since.as_str(), &mut Redacted::default());
                first.flush(&mut Redacted::default());
            }
            self.pipeline.byte_pass = Some((decoder, first));
        }
        for (id, mut log) in logs {
            log.create(&Redacted::default());
            log.clear_tail();
            log.append(&since, OutputSource::Job);
            self.logs.push((id, log));
        }
    }

    /// Flushes the screen; later output starts on an empty one.
    fn end_screen(&mut self) {
        self.pipeline.result.end_screen();
        self.store();
    }

    fn discard_retained(&mut self) {
        let _ = self.pipeline.take_retained();
        self.held_before.clear();
    }

    /// Appends the rendered text to all logs.
    fn store(&mut self) {
        let text = std::mem::take(&mut self.pipeline.result.redacted);
        if text.is_empty() {
            return;
        }
        for (_, log) in &mut self.logs {
            log.append(&text, self.source);
        }
        if self.source == OutputSource::Job {
            let retained = &mut self.pipeline.retained;
            retained.change(text.as_ref(), |retained, text| retained.push(text));
        }
        // Reuse the buffer.
        self.pipeline.result.redacted = text;
        self.pipeline.result.redacted.clear();
    }
}

#[cfg(test)]
mod tests;
