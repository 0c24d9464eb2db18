//! Renders the events of a run as a report: XML, JSON, JSON lines or text for people.
//!
//! Results are written in document order, each as soon as all earlier ones are written, so that a long run
//! does not accumulate them. JSON lines are written as events happen. [`call_list`] and [`call_text`] show calls
//! that were parsed and not run.

pub mod borrowed_fields;
pub mod call_list;
pub mod call_text;
pub mod diagnostic;
pub mod diff_text;
pub mod item_text;
pub mod json;
pub mod jsonl;
pub mod line_window;
pub mod paint;
pub mod reporter;
pub mod spinner;
pub mod text_report;
pub mod wire;
pub mod xml;

use std::io;

use crate::exec::Event;
use karyi_core::error::{Diagnostic, Severity};
use karyi_core::outcome::{JobNews, Outcome, ReportStatus};

pub use reporter::Reporter;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people at a terminal.
    Text,
    /// One XML element.
    Xml,
    /// One JSON object on one line.
    Json,
    /// One JSON object per event and line.
    Jsonl,
}

/// Contents of the end of a report.
#[derive(Debug)]
pub struct Summary<'a> {
    /// Status of the message.
    pub status: ReportStatus,
    /// Number of results.
    pub calls: u64,
    /// Warnings and the refusal, in order of appearance.
    pub diagnostics: &'a [SeverityDiagnostic],
    /// Number of diagnostics left out because there were too many.
    pub omitted_diagnostics: u64,
    /// Jobs: commands that outlived their call, and background processes.
    pub jobs: &'a [JobNews],
    /// Number of jobs left out because there were too many.
    pub omitted_jobs: u64,
    /// Name of the session's shell, when one was started.
    pub shell: Option<&'a str>,
    /// Reason why it is not the user's own shell.
    pub note: Option<&'a str>,
}

/// Writes one format of report. Results arrive in document order; output arrives live. A format without live
/// output ignores it.
pub trait Style {
    /// A call starts.
    fn started(&mut self, _: &CallStart<'_>) -> io::Result<()> {
        Ok(())
    }
    /// A running call prints output.
    fn output(&mut self, _: &CallOutput<'_>) -> io::Result<()> {
        Ok(())
    }
    /// The line that a running call has printed without its end changes.
    fn unfinished(&mut self, _index: u64, _line: &str) -> io::Result<()> {
        Ok(())
    }
    /// The next result in document order.
    fn result(&mut self, index: u64, outcome: &Outcome) -> io::Result<()>;
    /// A warning or the refusal, as soon as it is known.
    fn diagnostic(&mut self, _: &SeverityDiagnostic) -> io::Result<()> {
        Ok(())
    }
    /// Periodic tick while a call runs.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// The end of the report.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()>;
    /// Returns true when results are written immediately, in any order.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// A diagnostic and its severity.
#[derive(Debug)]
pub struct SeverityDiagnostic {
    /// Severity.
    pub severity: Severity,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
}

/// The start of a call.
#[derive(Debug)]
pub struct CallStart<'a> {
    /// Index of the call in the message, from 0.
    pub index: u64,
    /// Id of the call.
    pub id: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// Text before the title.
    pub heading: &'a str,
    /// The whole script, or the files: what runs.
    pub title: &'a str,
    /// Number of lines of the script.
    pub line_count: usize,
    /// Name that the model gave the call.
    pub label: Option<&'a str>,
}

impl<'a> CallStart<'a> {
    /// Returns the start of a call; nothing for another event.
    #[must_use]
    pub fn of(event: &'a Event) -> Option<Self> {
        let Event::Started {
            index,
            id,
            tool,
            heading,
            title,
            line_count,
            label,
        } = event
        else {
            return None;
        };
        Some(Self {
            index: *index,
            id,
            tool,
            heading,
            title,
            line_count: *line_count,
            label: label.as_deref(),
        })
    }
}

/// Output of a running call.
#[derive(Debug)]
pub struct CallOutput<'a> {
    /// Index of the call in the message, from 0.
    pub index: u64,
    /// Id of the call.
    pub id: &'a str,
    /// Redacted text.
    pub text: &'a str,
}
