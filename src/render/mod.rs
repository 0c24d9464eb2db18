//! Events of a run to a report: XML, JSON, JSON lines or text for a person.
//!
//! Results come out in document order, each as soon as everything before it is out, so that a long
//! run needs no memory for what it has already told. JSON lines tell events as they happen.
//! [`call_list`] and [`call_text`] show calls that were read and not run.

pub mod call_list;
pub mod call_text;
pub mod diagnostic;
pub mod diff_text;
pub mod fields;
pub mod json;
pub mod jsonl;
pub mod paint;
pub mod reporter;
pub mod text;
pub mod wire;
pub mod xml;

use std::io;

use karyi_core::error::{Diagnostic, Severity};
use karyi_core::outcome::{JobNews, Outcome, ReportStatus};

pub use reporter::Reporter;

/// The shape of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For a person at a terminal.
    Text,
    /// One XML element.
    Xml,
    /// One JSON object on one line.
    Json,
    /// One JSON object per event and line.
    Jsonl,
}

/// What stands at the end of a report.
#[derive(Debug)]
pub struct Summary<'a> {
    /// How the message went.
    pub status: ReportStatus,
    /// Results there are.
    pub calls: u64,
    /// Warnings and the refusal, in order of appearance.
    pub diagnostics: &'a [Noted],
    /// Diagnostics left out because there were too many.
    pub omitted_diagnostics: u64,
    /// Commands that went on after their call, and those in the background.
    pub jobs: &'a [JobNews],
    /// Jobs left out because there were too many.
    pub omitted_jobs: u64,
    /// Name of the session's shell, when one was started.
    pub shell: Option<&'a str>,
    /// Why that is not the shell the user has.
    pub note: Option<&'a str>,
}

/// Writes one shape of report. Results arrive in document order; output arrives live. A shape that
/// tells everything in its results leaves the rest as it is.
pub trait Style {
    /// A call starts.
    fn started(&mut self, _: &Started<'_>) -> io::Result<()> {
        Ok(())
    }
    /// A running call printed something.
    fn output(&mut self, _: &Printed<'_>) -> io::Result<()> {
        Ok(())
    }
    /// The next result in document order.
    fn result(&mut self, index: u64, outcome: &Outcome) -> io::Result<()>;
    /// A warning or the refusal, at the moment it is known.
    fn diagnostic(&mut self, _: &Noted) -> io::Result<()> {
        Ok(())
    }
    /// Time passes while a call runs.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// The end of the report.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()>;
    /// Whether results are told the moment they are there, in no order.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// A diagnostic and what it means.
#[derive(Debug)]
pub struct Noted {
    /// Whether it ends the message.
    pub severity: Severity,
    /// What it says.
    pub diagnostic: Diagnostic,
}

/// A call that starts.
#[derive(Debug)]
pub struct Started<'a> {
    /// Its place in the message, from 0.
    pub index: u64,
    /// Its id.
    pub id: &'a str,
    /// Its tool.
    pub tool: &'a str,
    /// What stands before its title.
    pub heading: &'a str,
    /// What it is about, one line.
    pub title: &'a str,
}

/// What a running call printed.
#[derive(Debug)]
pub struct Printed<'a> {
    /// Its place in the message, from 0.
    pub index: u64,
    /// Its id.
    pub id: &'a str,
    /// The text, redacted.
    pub text: &'a str,
}
