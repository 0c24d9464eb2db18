//! The results of one answer: the report for the model, and what the conversation must know of them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::exec::Event;
use crate::render::Reporter;
use crate::render::xml::Xml;
use karyi_core::error::{Code, ErrorCode};
use karyi_core::outcome::Outcome;
use karyi_vault::redact::{Redacted, Redactor};

/// Result of one call, as far as the conversation needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// Tool and text of the call: equal calls have equal texts.
    pub text: String,
    /// True when it failed.
    pub is_failure: bool,
    /// True when it was not permitted.
    pub needs_approval: bool,
}

/// Results of one answer.
#[derive(Debug, Clone, Default)]
pub struct AnswerResults {
    /// Results of its calls, in the order in which they ended.
    pub calls: Vec<CallResult>,
    /// Report for the model; nothing when no call ran and nothing is wrong.
    pub report: Option<Redacted>,
    /// Text outside blocks.
    pub prose: String,
    /// True when a block was refused.
    pub is_refused: bool,
    /// Offset of results that the model made up.
    pub invented_at: Option<u64>,
    /// Files and directories that its calls used: those that were read or edited, and the shell's directory.
    pub touched: Vec<PathBuf>,
}

/// Collects the results of one answer.
pub(super) struct ResultCollector {
    reporter: Reporter,
    report: SharedBuffer,
    titles: HashMap<u64, String>,
    has_report: bool,
    results: AnswerResults,
    /// Directory of the shell.
    cwd: PathBuf,
}

impl ResultCollector {
    /// Starts the report of an answer in a directory; it shows that many bytes of texts.
    pub(super) fn new(cwd: String, bytes: usize) -> Self {
        let report = SharedBuffer::default();
        Self {
            cwd: PathBuf::from(&cwd),
            reporter: Reporter::new(Box::new(Xml::new(report.clone(), cwd)), bytes),
            report,
            titles: HashMap::new(),
            has_report: false,
            results: AnswerResults::default(),
        }
    }

    /// Takes one event. Returns true when nothing that follows in the answer counts.
    pub(super) fn event(&mut self, event: Redacted<Event>, prose_bytes: usize) -> bool {
        match event.get() {
            Event::Prose(text) => {
                let room = prose_bytes.saturating_sub(self.results.prose.len());
                let end = text.floor_char_boundary(room);
                let shown = text.get(..end).unwrap_or_default();
                self.results.prose.push_str(shown);
                return false;
            }
            Event::Started {
                index, tool, title, ..
            } => {
                self.titles.insert(*index, format!("{tool} {title}"));
            }
            Event::Finished { index, outcome } => self.finished(*index, outcome.get()),
            // An answer without calls is the last one.
            Event::Warning(warning) if warning.code == Code::NoBlock => return false,
            Event::Warning(warning) if warning.code == Code::InventedResults => {
                self.results.invented_at = Some(warning.position.offset);
                self.has_report = true;
            }
            Event::Warning(_) => self.has_report = true,
            Event::Refused(_) => {
                self.results.is_refused = true;
                self.has_report = true;
            }
            // The conversation says itself that an answer broke off.
            Event::Unreadable => return false,
            Event::Output { .. }
            | Event::Changes { .. }
            | Event::Unfinished { .. }
            | Event::Jobs { .. }
            | Event::Tick
            | Event::MessageEnded { .. } => {}
        }
        // A buffer takes everything.
        let _ = self.reporter.event(event);
        self.results.is_refused || self.results.invented_at.is_some()
    }

    fn finished(&mut self, index: u64, outcome: &Outcome) {
        self.has_report = true;
        self.touched(outcome);
        let title = self.titles.remove(&index);
        let text = title.unwrap_or_else(|| {
            let title = outcome.title.as_deref().unwrap_or_default();
            format!("{} {title}", outcome.tool)
        });
        let code = outcome.error.as_ref().map(|error| error.code);
        self.results.calls.push(CallResult {
            text,
            is_failure: outcome.status.is_failure(),
            needs_approval: code == Some(ErrorCode::NeedsApproval),
        });
    }

    /// Notes the files and directories that a call used.
    fn touched(&mut self, outcome: &Outcome) {
        let files = outcome.fields.get("files").and_then(Value::as_array);
        let files = files.into_iter().flatten();
        let files = files.filter_map(|file| file.get("src")?.as_str());
        let files = files.map(|src| self.cwd.join(src));
        self.results.touched.extend(files);
        if let Some(cwd) = outcome.fields.get("cwd").and_then(Value::as_str) {
            self.cwd = self.cwd.join(cwd);
            self.results.touched.push(self.cwd.clone());
        }
    }

    /// Ends the report.
    pub(super) fn finish(self, redactor: &Redactor) -> AnswerResults {
        let mut results = self.results;
        // A buffer takes everything.
        let _ = self.reporter.finish();
        let report = self.report.take();
        let report = String::from_utf8_lossy(&report);
        results.report = self
            .has_report
            .then(|| redactor.redact_whole_again(report.trim_end()));
        results
    }
}

/// Buffer that is read after its writer is gone.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn take(&self) -> Vec<u8> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bytes)
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
