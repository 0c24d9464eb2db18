//! Log lines: one JSON object each, to whoever listens.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::limits;
use crate::store::ids;

/// One line of the log.
#[derive(Debug, Default, Serialize)]
pub struct Line<'a> {
    /// What happened.
    pub event: &'a str,
    /// The trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<&'a str>,
    /// The site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_id: Option<&'a str>,
    /// Time since the request came, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Identifier of the call in the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<&'a str>,
    /// Status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<&'a str>,
    /// What there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

thread_local! {
    /// The line that is being written.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The way to the log. A log that is not read loses lines; it holds up nobody.
#[derive(Clone, Default)]
pub struct Log {
    lines: Option<Arc<End>>,
}

/// Closes the log when the last way to it is gone.
struct End(Arc<Lines>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.come.notify_all();
    }
}

/// Lines that wait to be read, one after another.
#[derive(Default)]
pub struct Lines {
    waiting: Mutex<Waiting>,
    come: Condvar,
}

#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    is_closed: bool,
    /// Whether the reader sleeps.
    is_idle: bool,
}

impl Lines {
    /// Waits for lines and takes all there are in exchange for `text`, which has been dealt with;
    /// false when the log has ended. Lines come in whole.
    pub fn take(&self, text: &mut Vec<u8>) -> bool {
        text.clear();
        let mut waiting = self.some();
        std::mem::swap(&mut waiting.text, text);
        !text.is_empty()
    }

    /// Waits until there is something to take or the log has ended.
    pub fn wait(&self) {
        drop(self.some());
    }

    fn some(&self) -> MutexGuard<'_, Waiting> {
        let mut waiting = self.lock();
        while waiting.text.is_empty() && !waiting.is_closed {
            waiting.is_idle = true;
            let come = self.come.wait(waiting);
            waiting = come.unwrap_or_else(PoisonError::into_inner);
        }
        waiting
    }

    fn add(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.text.len() + line.len() > limits::MAX_WAITING_LOG_BYTES {
            return;
        }
        waiting.text.extend_from_slice(line);
        if std::mem::take(&mut waiting.is_idle) {
            drop(waiting);
            self.come.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Makes a log, and what its lines are read from.
    #[must_use]
    pub fn new() -> (Self, Arc<Lines>) {
        let lines = Arc::<Lines>::default();
        let log = Self {
            lines: Some(Arc::new(End(Arc::clone(&lines)))),
        };
        (log, lines)
    }

    /// Writes one line.
    pub fn write(&self, line: &Line<'_>) {
        let Some(lines) = &self.lines else { return };
        LINE.with_borrow_mut(|text| {
            text.clear();
            if serde_json::to_writer(&mut *text, line).is_err() {
                return;
            }
            // A line is an object, and its time the last member.
            text.pop();
            text.extend_from_slice(b",\"timestamp\":\"");
            ids::add_now(text);
            text.extend_from_slice(b"\"}\n");
            lines.0.add(text);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_object_with_the_time_at_its_end() {
        let (log, lines) = Log::new();
        let other = log.clone();
        log.write(&Line {
            event: "tool_call_success",
            latency_ms: Some(45),
            ..Line::default()
        });
        drop(log);
        other.write(&Line::default());
        let mut text = Vec::new();
        assert!(lines.take(&mut text));
        let taken = String::from_utf8(text.clone()).unwrap();
        let start = "{\"event\":\"tool_call_success\",\"latency_ms\":45,\"timestamp\":\"2";
        let (line, next) = taken.split_once('\n').unwrap();
        assert!(line.starts_with(start) && line.ends_with("Z\"}"), "{line}");
        assert!(
            next.starts_with("{\"event\":\"\",") && next.ends_with("Z\"}\n"),
            "{next}"
        );
        drop(other);
        assert!(!lines.take(&mut text));
        lines.wait();
    }

    #[test]
    fn a_log_that_nobody_reads_loses_lines() {
        let (log, lines) = Log::new();
        let message = "x".repeat(limits::MAX_WAITING_LOG_BYTES / 4);
        let line = Line {
            message: Some(&message),
            ..Line::default()
        };
        (0..10).for_each(|_| log.write(&line));
        let mut text = Vec::new();
        assert!(lines.take(&mut text));
        assert_eq!(text.split(|byte| *byte == b'\n').count(), 4);
        assert!(text.ends_with(b"Z\"}\n"));
    }

    #[test]
    fn whoever_waits_for_lines_is_woken() {
        let (log, lines) = Log::new();
        let reader = std::thread::spawn(move || {
            let (mut all, mut text) = (0, Vec::new());
            while lines.take(&mut text) {
                all += text.iter().filter(|byte| **byte == b'\n').count();
                lines.wait();
            }
            all
        });
        (0..1000).for_each(|_| log.write(&Line::default()));
        drop(log);
        assert_eq!(reader.join().unwrap(), 1000);
    }
}
