//! Structured log: karyi's own `tracing` events as JSON, one object per line, written by another
//! thread.
//!
//! `tracing::info!(event = "...", ...)` writes a line. Fields without a value are omitted. Without
//! [`JsonLog`] as the subscriber of the program, nothing is logged.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use karyi_core::ids;
use karyi_core::limits;
use karyi_store::members::Members;

/// Space for a line of usual length.
const LINE_BYTES: usize = 256;

/// Subscriber that writes events as JSON. Lines are dropped when the reader falls behind; no call
/// waits for it.
pub struct JsonLog {
    sender: Sender<Vec<u8>>,
    /// Bytes of the lines that wait.
    waiting: Arc<AtomicUsize>,
    /// Number of lines dropped since the last one that was not.
    lost: AtomicU64,
}

/// Lines that wait to be written.
pub struct LogLines {
    receiver: Receiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    is_over: bool,
}

impl JsonLog {
    /// Creates a log and the other end of its lines.
    #[must_use]
    pub fn new() -> (Self, LogLines) {
        let (sender, receiver) = channel();
        let waiting = Arc::<AtomicUsize>::default();
        let lines = LogLines {
            receiver,
            waiting: Arc::clone(&waiting),
            is_over: false,
        };
        let log = Self {
            sender,
            waiting,
            lost: AtomicU64::new(0),
        };
        (log, lines)
    }

    fn add(&self, line: Vec<u8>) {
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // Without a reader there is nobody to tell.
        let _ = self.sender.send(line);
    }
}

impl Subscriber for JsonLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("karyi")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let line = json_line(|line| event.record(line));
        if self.waiting.load(Ordering::Relaxed) + line.len() > limits::MAX_WAITING_LOG_BYTES {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let message = format!("{lost} lines were lost: the log was not read");
            self.add(json_line(|line| {
                line.0.text("event", "log_lines_lost");
                line.0.text("message", &message);
            }));
        }
        self.add(line);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Line whose members are the fields of an event.
struct JsonLine<'t>(Members<'t>);

impl Visit for JsonLine<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.number(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.text(field.name(), &format!("{value:?}"));
    }
}

/// Returns a line with these members and the current time.
fn json_line(record: impl FnOnce(&mut JsonLine<'_>)) -> Vec<u8> {
    let mut text = Vec::with_capacity(LINE_BYTES);
    let mut line = JsonLine(Members::begin(&mut text));
    record(&mut line);
    let time = line.0.value("timestamp");
    time.push(b'"');
    ids::add_now(time);
    time.push(b'"');
    line.0.end();
    text.push(b'\n');
    text
}

impl LogLines {
    /// Waits for lines and returns them; none at the end of the log.
    pub fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.is_over {
            let line = match all.is_empty() {
                true => self.receiver.recv().unwrap_or_default(),
                false => match self.receiver.try_recv() {
                    Ok(line) => line,
                    Err(_) => break,
                },
            };
            self.is_over = line.is_empty();
            match all.is_empty() {
                true => all = line,
                false => all.extend_from_slice(&line),
            }
        }
        self.waiting.fetch_sub(all.len(), Ordering::Relaxed);
        all
    }
}

/// Thread that writes the lines.
pub struct LogWriter {
    sender: Sender<Vec<u8>>,
    thread: JoinHandle<()>,
}

impl LogWriter {
    /// Starts a log and its thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut out: Box<dyn Write + Send>) -> io::Result<(JsonLog, Self)> {
        let (log, mut lines) = JsonLog::new();
        let work = move || loop {
            let text = lines.take();
            if text.is_empty() {
                break;
            }
            // There is no other place to report that it is closed.
            let _ = out.write_all(&text);
            // Waking this thread costs a caller more than its line, so lines accumulate first.
            std::thread::sleep(limits::LOG_PAUSE);
        };
        let sender = log.sender.clone();
        let thread = std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok((log, Self { sender, thread }))
    }

    /// Waits until the last lines are written, within a limit: a blocked standard error must not
    /// delay the exit.
    pub async fn end(self) {
        // An empty line is the end.
        let _ = self.sender.send(Vec::new());
        let until = Instant::now() + limits::LOG_END_TIMEOUT;
        while !self.thread.is_finished() && Instant::now() < until {
            tokio::time::sleep(limits::LOG_PAUSE).await;
        }
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut LogLines) -> String {
        String::from_utf8(lines.take()).unwrap()
    }

    #[test]
    fn a_line_is_an_object_with_the_time_at_its_end() {
        let (log, mut lines) = JsonLog::new();
        tracing::subscriber::with_default(log, || {
            let (none, code) = (None::<&str>, Some(200_u16));
            let error = format_args!("\"a\" {}", 1);
            tracing::info!(
                event = "a",
                latency_ms = 45_u64,
                none,
                code,
                message = error
            );
            tracing::info!(target: "another", event = "b");
            tracing::debug!(event = "c");
        });
        let text = taken(&mut lines);
        let start = r#"{"event":"a","latency_ms":45,"code":200,"message":"\"a\" 1","timestamp":"2"#;
        assert!(text.starts_with(start), "{text}");
        assert!(
            text.ends_with("Z\"}\n") && text.lines().count() == 1,
            "{text}"
        );
        assert_eq!(taken(&mut lines), "");
    }

    #[test]
    fn lines_are_dropped_when_too_many_wait() {
        let (log, mut lines) = JsonLog::new();
        tracing::subscriber::with_default(log, || {
            let message = "x".repeat(limits::MAX_WAITING_LOG_BYTES / 4);
            (0..10).for_each(|_| tracing::info!(message));
            assert_eq!(taken(&mut lines).lines().count(), 3);
            // The next line reports how many were dropped.
            tracing::info!(event = "a");
            tracing::info!(event = "b");
            let text = taken(&mut lines);
            let lost = "{\"event\":\"log_lines_lost\",\"message\":\"7 lines were lost: the log was not read\",\"timestamp\":\"2";
            assert!(
                text.lines().count() == 3 && text.starts_with(lost),
                "{text}"
            );
        });
    }

    #[tokio::test]
    async fn all_lines_are_written_before_the_end() {
        let mut file = tempfile::tempfile().unwrap();
        let out = Box::new(file.try_clone().unwrap());
        let (log, writer) = LogWriter::start(out).unwrap();
        // The subscriber of a program is never dropped.
        let guard = tracing::subscriber::set_default(log);
        (0..1000_u64).for_each(|number| tracing::info!(number));
        writer.end().await;
        drop(guard);
        let mut text = String::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text.lines().count(), 1000);
    }
}
