//! Output of the terminal on its way to a receiver, and the marks that end it.
//!
//! Output of a job goes to the call that waits for it, else to the job's own sink, else it is stored for the next call.
//! The state is not locked while a sink runs, because a sink may block.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use karyi_core::limits;

use crate::engine::pending_call::{SharedSink, Sink};
use crate::engine::screen_tracker::ScreenTracker;
use crate::engine::state::Shared;
use crate::terminal::live_shell::{LiveShell, read_some};
use crate::terminal::mark_fifo::MarkFifo;
use crate::terminal::marks::{Mark, MarkExtractor};
use crate::terminal::output_hints::HintReader;

/// Bytes of a new shell that are read at once.
const START_BYTES: usize = 4096;

/// The only reader of the terminal.
pub(crate) struct Output {
    mark_extractor: MarkExtractor,
    /// Marks that bash writes beside the terminal.
    mark_fifo: MarkFifo,
    tracker: ScreenTracker,
    hint_reader: HintReader,
    buffer: Vec<u8>,
    /// Range of the buffer that was not sent yet.
    unsent: Range<usize>,
}

impl Output {
    /// Creates the reader of a session with a nonce, which hides the session's directory.
    pub(crate) fn new(nonce: &str, directory: &Path) -> Self {
        Self {
            mark_extractor: MarkExtractor::new(nonce),
            mark_fifo: MarkFifo::default(),
            tracker: ScreenTracker::new(directory),
            hint_reader: HintReader::default(),
            buffer: vec![0; limits::TERMINAL_READ_BYTES],
            unsent: 0..0,
        }
    }

    /// Sets the number of the mark that a new shell prints next.
    pub(crate) fn await_start(&mut self, number: u64) {
        self.mark_extractor.await_mark(Some(number));
    }

    /// Reads output of a new shell into `printed`; returns the number of bytes read, and the awaited mark.
    pub(crate) fn read_start(
        &mut self,
        terminal: &OwnedFd,
        printed: &mut Vec<u8>,
    ) -> (usize, Option<Mark>) {
        let mut chunk = [0; START_BYTES];
        let count = read_some(terminal, &mut chunk);
        let bytes = chunk.get(..count).unwrap_or_default();
        let mut keep = |output: &[u8]| printed.extend_from_slice(output);
        let (_, mark) = self.mark_extractor.push(bytes, &mut keep);
        let excess = printed.len().saturating_sub(limits::MAX_START_OUTPUT_BYTES);
        printed.drain(..excess);
        (count, mark)
    }

    /// Drops the marks of an earlier shell.
    pub(crate) fn follow_new_shell(&mut self) {
        self.mark_fifo = MarkFifo::default();
    }

    /// Reads the mark FIFO. Output that is on the terminal by now was printed before the mark.
    pub(crate) fn poll_marks(&mut self, shared: &Shared, live: &LiveShell) {
        let mark = shared.lock().awaited_mark();
        self.mark_extractor.await_mark(mark);
        self.mark_fifo.poll(&live.marks, &self.mark_extractor, mark);
    }

    /// Returns true if a mark waits for the output before it.
    pub(crate) fn has_pending_mark(&self) -> bool {
        self.mark_fifo.is_pending()
    }

    /// Reads the terminal once; returns the number of bytes to send.
    pub(crate) fn read(&mut self, live: &LiveShell) -> usize {
        let count = read_some(&live.master, &mut self.buffer);
        self.begin(count, live);
        count
    }

    /// Makes a pending mark the next output if all output before it was sent; `count` is the number of bytes read last.
    /// Returns true if it did.
    pub(crate) fn take_due_mark(
        &mut self,
        count: usize,
        shared: &Shared,
        live: &LiveShell,
    ) -> bool {
        if !self.mark_fifo.is_pending() {
            return false;
        }
        let awaited = shared.lock().awaited_mark();
        let Some(mark) = self.mark_fifo.take_due(count, awaited) else {
            return false;
        };
        if let Some(place) = self.buffer.get_mut(..mark.len()) {
            place.copy_from_slice(&mark);
            self.begin(mark.len(), live);
        }
        true
    }

    fn begin(&mut self, length: usize, live: &LiveShell) {
        self.unsent = 0..length;
        let bytes = self.buffer.get(self.unsent.clone()).unwrap_or_default();
        self.hint_reader.push(bytes, &live.hints);
    }

    /// Returns true if something was read and not sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what was read, up to the next mark, to its receiver; returns the mark.
    pub(crate) fn send(&mut self, shared: &Shared, live: &LiveShell) -> Option<Mark> {
        let Self {
            mark_extractor,
            tracker,
            ..
        } = self;
        let bytes = self.buffer.get(self.unsent.clone()).unwrap_or_default();
        let mut state = shared.lock();
        let job = state.job.as_ref().map(|job| job.number);
        let may_notify = state.job.as_ref().is_none_or(|job| job.output.may_notify);
        mark_extractor.await_mark(state.awaited_mark());
        tracker.follow(job, may_notify);
        tracker.show_to_person(state.person.has_terminal);
        let mut push = |sink: &mut dyn FnMut(&[u8])| {
            let (used, mark) = mark_extractor.push(bytes, &mut |output| {
                tracker.send_output(output, &live.master, sink);
            });
            if mark.is_some() {
                tracker.send_held(&live.master, sink);
            }
            (used, mark)
        };
        let (sink, earlier_output) = state.sink();
        let (used, mark) = if let Some(sink) = sink {
            drop(state);
            let mut sink = locked(&sink);
            send_earlier(&earlier_output, &mut sink);
            let result = push(&mut *sink);
            state = shared.lock();
            result
        } else if job.is_some() {
            push(&mut |output| state.store_backlog(output))
        } else {
            drop(state);
            let mut idle_sink = shared.idle_sink();
            let result = push(&mut |output| match idle_sink.as_mut() {
                Some(sink) => sink(output),
                None => shared.lock().store_backlog(output),
            });
            state = shared.lock();
            result
        };
        state.seen.shows_screen = tracker.is_full_screen();
        self.unsent.start += used;
        mark
    }

    /// Sends a new call the output from before it.
    pub(crate) fn begin_call(shared: &Shared) {
        let (sink, earlier_output) = shared.lock().sink();
        if let Some(sink) = sink {
            send_earlier(&earlier_output, &mut locked(&sink));
        }
    }

    /// Types the terminal's replies to queries of the job.
    pub(crate) fn reply_to_queries(&mut self, live: &LiveShell) {
        if self.tracker.has_replies() {
            self.tracker.send_replies(&live.master);
        }
    }

    /// Returns true if the output ends with the message that a program cannot be executed.
    pub(crate) fn shows_refusal(&self) -> bool {
        let tail = self.tracker.tail();
        let line = tail.trim_end().lines().next_back().unwrap_or_default();
        let words = [
            "permission denied",
            "is a directory",
            "exec format error",
            "cannot execute",
        ];
        words.iter().any(|word| line.contains(word))
    }

    /// Forgets the terminal's state of a job that has ended.
    pub(crate) fn end_job(&mut self, live: &LiveShell) {
        if self.tracker.may_leave_input() {
            // What the command has not read is not meant for the next one.
            live.flush_input();
        }
        self.tracker.follow(None, true);
    }
}

/// Locks a sink. Nobody waits for it, since only the session's thread uses it.
fn locked(sink: &SharedSink) -> MutexGuard<'_, Sink> {
    sink.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_earlier(output: &[u8], sink: &mut Sink) {
    if !output.is_empty() {
        sink(output);
    }
}
