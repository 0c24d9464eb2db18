//! Structured log: one JSON object per line, read by another thread.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use karyi_core::ids;
use karyi_core::limits;
use karyi_store::members::Members;

/// Line of the log.
#[derive(Debug, Default)]
pub struct LogLine<'a> {
    /// Name of the event.
    pub event: &'a str,
    /// Trace.
    pub trace_id: Option<&'a str>,
    /// Tool.
    pub tool_name: Option<&'a str>,
    /// Tenant.
    pub tenant_id: Option<&'a str>,
    /// Site.
    pub site_id: Option<&'a str>,
    /// Time since the request arrived, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Id of the call in the ledger.
    pub call_id: Option<&'a str>,
    /// HTTP status of the response.
    pub http_status: Option<u16>,
    /// Kind of the error.
    pub error_type: Option<&'a str>,
    /// Message.
    pub message: Option<&'a str>,
}

impl LogLine<'_> {
    /// Appends the line to `text` as an object that ends with the current time.
    fn add_to(&self, text: &mut Vec<u8>) {
        let mut members = Members::begin(text);
        members.text("event", self.event);
        members.some("trace_id", self.trace_id);
        members.some("tool_name", self.tool_name);
        members.some("tenant_id", self.tenant_id);
        members.some("site_id", self.site_id);
        members.some_number("latency_ms", self.latency_ms);
        members.some("call_id", self.call_id);
        members.some_number("http_status", self.http_status.map(u64::from));
        members.some("error_type", self.error_type);
        members.some("message", self.message);
        let time = members.value("timestamp");
        time.push(b'"');
        ids::add_now(time);
        time.push(b'"');
        members.end();
        text.push(b'\n');
    }
}

thread_local! {
    /// Buffer for the line of this thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Handle for writing to the log. Lines are dropped when the reader falls behind; no call waits for
/// it.
#[derive(Clone, Default)]
pub struct Log {
    lines: Option<Arc<LogCloser>>,
}

/// Closes the queue when the last [`Log`] is dropped.
struct LogCloser(Arc<LogQueue>);

impl Drop for LogCloser {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.available.notify_all();
    }
}

/// Queue of lines for the reader.
#[derive(Default)]
pub struct LogQueue {
    pending: Mutex<PendingLines>,
    available: Condvar,
}

#[derive(Default)]
struct PendingLines {
    text: Vec<u8>,
    /// Lines dropped because the queue was full.
    lost: u64,
    is_closed: bool,
    /// True while the reader waits.
    is_idle: bool,
}

impl PendingLines {
    /// Appends a line that says how many lines were dropped.
    fn report_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        let start = format!(
            "{{\"event\":\"log_lines_lost\",\"message\":\"{lost} lines were lost: the log was not read\",\"timestamp\":\""
        );
        self.text.extend_from_slice(start.as_bytes());
        ids::add_now(&mut self.text);
        self.text.extend_from_slice(b"\"}\n");
    }
}

impl LogQueue {
    /// Waits for lines and swaps them with `text`, whose content is cleared; false at the end of
    /// the log. Lines are never split.
    pub fn take(&self, text: &mut Vec<u8>) -> bool {
        text.clear();
        let mut pending = self.wait_for_lines();
        std::mem::swap(&mut pending.text, text);
        !text.is_empty()
    }

    /// Waits until there are lines or the log has ended.
    pub fn wait(&self) {
        drop(self.wait_for_lines());
    }

    fn wait_for_lines(&self) -> MutexGuard<'_, PendingLines> {
        let mut pending = self.lock();
        while pending.text.is_empty() && !pending.is_closed {
            pending.is_idle = true;
            let available = self.available.wait(pending);
            pending = available.unwrap_or_else(PoisonError::into_inner);
        }
        pending
    }

    fn add(&self, line: &[u8]) {
        let mut pending = self.lock();
        if pending.text.len() + line.len() > limits::MAX_WAITING_LOG_BYTES {
            pending.lost += 1;
            return;
        }
        if pending.lost > 0 {
            pending.report_lost();
        }
        pending.text.extend_from_slice(line);
        if std::mem::take(&mut pending.is_idle) {
            drop(pending);
            self.available.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingLines> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Creates a log and the queue of its lines.
    #[must_use]
    pub fn new() -> (Self, Arc<LogQueue>) {
        let lines = Arc::<LogQueue>::default();
        let log = Self {
            lines: Some(Arc::new(LogCloser(Arc::clone(&lines)))),
        };
        (log, lines)
    }

    /// Writes one line.
    pub fn write(&self, line: &LogLine<'_>) {
        let Some(lines) = &self.lines else { return };
        BUFFER.with_borrow_mut(|text| {
            text.clear();
            line.add_to(text);
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
        log.write(&LogLine {
            event: "tool_call_success",
            latency_ms: Some(45),
            ..LogLine::default()
        });
        drop(log);
        other.write(&LogLine::default());
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
    fn lines_are_dropped_when_the_queue_is_full() {
        let (log, lines) = Log::new();
        let message = "x".repeat(limits::MAX_WAITING_LOG_BYTES / 4);
        let line = LogLine {
            message: Some(&message),
            ..LogLine::default()
        };
        (0..10).for_each(|_| log.write(&line));
        let mut text = Vec::new();
        assert!(lines.take(&mut text));
        assert_eq!(text.split(|byte| *byte == b'\n').count(), 4);
        assert!(text.ends_with(b"Z\"}\n"));
        // The next line reports how many were dropped.
        log.write(&LogLine::default());
        log.write(&LogLine::default());
        assert!(lines.take(&mut text));
        let text = String::from_utf8(text).unwrap();
        let read_lines: Vec<&str> = text.lines().collect();
        let lost = "{\"event\":\"log_lines_lost\",\"message\":\"7 lines were lost: the log was not read\",\"timestamp\":\"2";
        assert!(
            read_lines.len() == 3 && read_lines[0].starts_with(lost),
            "{text}"
        );
    }

    #[test]
    fn a_waiting_reader_is_woken() {
        let (log, lines) = Log::new();
        let reader = std::thread::spawn(move || {
            let (mut all, mut text) = (0, Vec::new());
            while lines.take(&mut text) {
                all += text.iter().filter(|byte| **byte == b'\n').count();
                lines.wait();
            }
            all
        });
        (0..1000).for_each(|_| log.write(&LogLine::default()));
        drop(log);
        assert_eq!(reader.join().unwrap(), 1000);
    }
}
