//! Orders results by their calls, sums them up and passes them to a style.

use std::collections::BTreeMap;
use std::io;

use crate::exec::{Event, shorten};
use crate::render::{CallOutput, CallStart, SeverityDiagnostic, Style, Summary};
use karyi_core::error::{Diagnostic, Severity};
use karyi_core::limits;
use karyi_core::outcome::{JobNews, Outcome, Tally};
use karyi_vault::redact::Redacted;

/// Reporter of one message.
pub struct Reporter {
    style: Box<dyn Style + Send>,
    /// Bytes that the texts of further results may have.
    left: usize,
    tally: Tally,
    /// Results that wait for earlier ones.
    early: BTreeMap<u64, Outcome>,
    next_index: u64,
    diagnostics: Vec<SeverityDiagnostic>,
    omitted_diagnostics: u64,
    jobs: Vec<JobNews>,
    omitted_jobs: u64,
    shell: Option<String>,
    note: Option<String>,
}

impl Reporter {
    /// Makes a reporter that writes in `style` and shows that many bytes of texts.
    #[must_use]
    pub fn new(style: Box<dyn Style + Send>, left: usize) -> Self {
        Self {
            style,
            left,
            tally: Tally::default(),
            early: BTreeMap::new(),
            next_index: 0,
            diagnostics: Vec::new(),
            omitted_diagnostics: 0,
            jobs: Vec::new(),
            omitted_jobs: 0,
            shell: None,
            note: None,
        }
    }

    /// Handles one event.
    ///
    /// # Errors
    /// The report could not be written.
    pub fn event(&mut self, event: Redacted<Event>) -> io::Result<()> {
        if let Some(start) = CallStart::of(event.get()) {
            return self.style.started(&start);
        }
        match event.into_inner() {
            Event::Output { index, id, text } => self.style.output(&CallOutput {
                index,
                id: id.as_str(),
                text: text.as_str(),
            }),
            Event::Unfinished { index, line } => self.style.unfinished(index, line.as_str()),
            Event::Finished { index, outcome } => self.finished(index, *outcome.into_inner()),
            Event::Warning(diagnostic) => self.diagnostic(Severity::Warning, *diagnostic),
            Event::Refused(diagnostic) => {
                self.tally.add_refusal();
                self.diagnostic(Severity::Error, *diagnostic)
            }
            Event::Started { .. } | Event::Changes { .. } | Event::Prose(_) => Ok(()),
            Event::Tick => self.style.tick(),
            Event::MessageEnded {
                is_interrupted,
                shell,
                note,
            } => {
                self.shell = shell;
                self.note = note;
                if is_interrupted {
                    self.tally.add_interruption();
                }
                Ok(())
            }
            Event::Jobs { news, omitted } => {
                news.iter().for_each(|job| self.tally.add_job(job));
                self.jobs.extend(news);
                self.omitted_jobs += omitted;
                Ok(())
            }
            Event::Unreadable => {
                self.tally.add_refusal();
                Ok(())
            }
        }
    }

    /// Ends the report and returns its totals.
    ///
    /// # Errors
    /// The report could not be written.
    pub fn finish(mut self) -> io::Result<Tally> {
        let status = self.tally.status();
        self.style.end(&Summary {
            status,
            calls: self.tally.calls(),
            diagnostics: &self.diagnostics,
            omitted_diagnostics: self.omitted_diagnostics,
            jobs: &self.jobs,
            omitted_jobs: self.omitted_jobs,
            shell: self.shell.as_deref(),
            note: self.note.as_deref(),
        })?;
        Ok(self.tally)
    }

    fn finished(&mut self, index: u64, mut outcome: Outcome) -> io::Result<()> {
        if self.style.is_unordered() {
            shorten::fit(&mut outcome, &mut self.left);
            self.style.result(index, &outcome)?;
        }
        self.early.insert(index, outcome);
        while let Some(mut outcome) = self.early.remove(&self.next_index) {
            self.tally.add(&outcome);
            if !self.style.is_unordered() {
                shorten::fit(&mut outcome, &mut self.left);
                self.style.result(self.next_index, &outcome)?;
            }
            self.next_index += 1;
        }
        Ok(())
    }

    fn diagnostic(&mut self, severity: Severity, diagnostic: Diagnostic) -> io::Result<()> {
        let noted = SeverityDiagnostic {
            severity,
            diagnostic,
        };
        self.style.diagnostic(&noted)?;
        if self.diagnostics.len() < limits::MAX_DIAGNOSTICS {
            self.diagnostics.push(noted);
        } else {
            self.omitted_diagnostics += 1;
        }
        Ok(())
    }
}
