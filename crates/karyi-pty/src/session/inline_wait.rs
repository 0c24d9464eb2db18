//! Lets a caller wait for its own command in place of the session's thread.
//!
//! Most commands end sooner than two threads can be woken one after the other. So the caller reads the terminal itself
//! for a moment, while the session's thread sleeps behind a shut gate. The caller handles only the mark. Output is
//! left to the session's thread, because a sink may block on the caller's thread, and so is everything that only the
//! thread that started the shell can do.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::alarm::Alarm;
use crate::engine::pending_call::Sink;
use crate::session::options::CommandRequest;
use crate::session::{Session, WaitingCall};
use crate::terminal::live_shell::LiveShell;
use crate::terminal::marks::Mark;

/// The engine while a caller holds it; dropping it opens the gate again.
struct InlineWaiter<'a> {
    engine: MutexGuard<'a, Engine>,
    live: Arc<LiveShell>,
}

/// Result of one wait.
enum WaitStep {
    /// Nothing happened.
    Nothing,
    /// The call has its result.
    Answered,
    /// The session's thread must take over.
    HandOver,
}

impl Session {
    /// Begins a command and waits for a moment for its end; returns `None` if there is no shell to begin it.
    pub(crate) fn begin_and_wait_inline(
        &self,
        request: &mut CommandRequest,
        sink: &mut Option<Sink>,
    ) -> Result<Option<WaitingCall<'_>>, ToolError> {
        let engine = self.engine();
        let waiter = engine
            .as_deref()
            .and_then(|engine| self.claim_engine(engine));
        let Some(mut waiting) = self.begin_command(request, sink)? else {
            return Ok(None);
        };
        // This runs while the shell wakes up, long before it can print anything.
        let Some(mut waiter) = waiter.filter(InlineWaiter::shuts_gate) else {
            return Ok(Some(waiting));
        };
        match waiter.wait() {
            WaitStep::Answered => {}
            WaitStep::Nothing => {
                waiting.patience = limits::WAIT_SCAN_MIN - limits::CALLER_READ_TIME
            }
            WaitStep::HandOver => {
                drop(waiter);
                self.shared().wake();
            }
        }
        Ok(Some(waiting))
    }

    /// Locks the engine unless another thread holds it or waits for it.
    fn claim_engine<'a>(&self, engine: &'a Mutex<Engine>) -> Option<InlineWaiter<'a>> {
        if self.shared().is_claimed() {
            return None;
        }
        let engine = engine.try_lock().ok()?;
        let live = engine.running.as_ref()?.live.clone();
        if !live.fast_path.procfs.lists_children() {
            // Finding the background jobs of a command may take long.
            return None;
        }
        let can_wait = engine.alarm.is_some() && live.gate.is_some();
        can_wait.then_some(InlineWaiter { engine, live })
    }
}

impl InlineWaiter<'_> {
    /// Hides output from the session's thread; returns false if that fails.
    fn shuts_gate(&self) -> bool {
        let gate = self.live.gate.as_ref();
        gate.is_some_and(|gate| gate.shut(self.live.mark_sources()))
    }

    /// Waits for the end of the command, for a short time.
    fn wait(&mut self) -> WaitStep {
        let until = Instant::now() + limits::CALLER_READ_TIME;
        match self.engine.step(&self.live, until) {
            WaitStep::Answered if self.engine.sleeps_too_long() => WaitStep::HandOver,
            step => step,
        }
    }
}

impl Drop for InlineWaiter<'_> {
    fn drop(&mut self) {
        if let Some(gate) = &self.live.gate {
            gate.open(self.live.mark_sources());
        }
    }
}

impl Engine {
    /// Waits until something happens, and handles it if it is only the mark.
    fn step(&mut self, live: &LiveShell, until: Instant) -> WaitStep {
        if !self.unread.is_empty() || self.mark_fifo.is_pending() {
            return WaitStep::HandOver;
        }
        let mark = self.shared.lock().awaited_mark();
        self.mark_extractor.await_mark(mark);
        loop {
            let alarm = self.alarm.as_mut();
            let Some(ready) = alarm.and_then(|alarm| await_readiness(live, alarm, until)) else {
                return WaitStep::Nothing;
            };
            let has_mark =
                ready.has_mark && self.mark_fifo.poll(&live.marks, &self.mark_extractor, mark);
            // Other output of the shell between commands is ignored.
            if has_mark || ready.has_output {
                break;
            }
        }
        let Some(mark) = self.read_mark(live) else {
            return WaitStep::HandOver;
        };
        self.command_ended(mark);
        if self.shared.lock().job.is_some() {
            return WaitStep::HandOver;
        }
        WaitStep::Answered
    }

    /// Reads the terminal, which is empty if the mark came through the FIFO. Everything but a lone mark is left
    /// unread.
    fn read_mark(&mut self, live: &LiveShell) -> Option<Mark> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = crate::terminal::live_shell::read_some(&live.master, &mut buffer);
        let bytes = buffer.get(..count).unwrap_or_default();
        let mark = match self.mark_fifo.mark() {
            Some(mark) if count == 0 => self.mark_extractor.only_mark(mark),
            Some(_) => None,
            None => self.mark_extractor.only_mark(bytes),
        };
        match mark {
            Some(_) => self.mark_fifo.discard(),
            None => self.unread.extend_from_slice(bytes),
        }
        self.buffer = buffer;
        mark
    }
}

/// Descriptors that are readable.
struct Readiness {
    has_output: bool,
    has_mark: bool,
}

/// Waits for the terminal or the mark FIFO until a point in time.
#[cfg(target_os = "linux")]
fn await_readiness(live: &LiveShell, alarm: &mut Alarm, until: Instant) -> Option<Readiness> {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    loop {
        let now = Instant::now();
        if now >= until || !alarm.set(now, until) {
            return None;
        }
        let [master, marks] = live.mark_sources();
        let input = PollFlags::POLLIN;
        let mut polled =
            [master.as_fd(), marks.as_fd(), alarm.as_fd()].map(|from| PollFd::new(from, input));
        let is_there = poll(&mut polled, PollTimeout::NONE).is_ok();
        let [has_output, has_mark, _] = polled.map(|polled| polled.any().unwrap_or(true));
        // A timer that was set for an earlier command, or a signal, does not end the wait.
        if is_there && (has_output || has_mark) {
            return Some(Readiness {
                has_output,
                has_mark,
            });
        }
    }
}

/// Not supported on this platform.
#[cfg(not(target_os = "linux"))]
fn await_readiness(_live: &LiveShell, _alarm: &mut Alarm, _until: Instant) -> Option<Readiness> {
    None
}
