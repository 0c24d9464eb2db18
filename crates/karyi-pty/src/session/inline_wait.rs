//! A caller that does the work of the session's thread while it waits for its own command.
//!
//! Most commands end sooner than two threads are woken, one after the other. So the caller reads the
//! terminal itself for a moment, while the session's thread sleeps behind a shut gate. It takes
//! nothing but the mark: output goes to a sink, which may wait for what the caller's own thread is to
//! do, and all else is for the thread that started the shell.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::alarm::Alarm;
use crate::engine::pending_call::Sink;
use crate::session::options::CommandRequest;
use crate::session::{Session, Waiting};
use crate::terminal::live_shell::LiveShell;
use crate::terminal::marks::Mark;

/// The engine in the hands of a caller; it is the thread's again in the end, whatever happens.
struct InlineWaiter<'a> {
    engine: MutexGuard<'a, Engine>,
    live: Arc<LiveShell>,
}

/// What a moment of waiting came to.
enum WaitStep {
    /// Nothing has come.
    Nothing,
    /// The call was answered.
    Answered,
    /// Something is to be done that is for the session's thread.
    HandOver,
}

impl Session {
    /// Begins a command and waits for a moment for its end; there may be no shell to begin it.
    pub(crate) fn begin_and_wait_inline(
        &self,
        request: &mut CommandRequest,
        sink: &mut Option<Sink>,
    ) -> Result<Option<Waiting<'_>>, ToolError> {
        let engine = self.engine();
        let waiter = engine
            .as_deref()
            .and_then(|engine| self.claim_engine(engine));
        let Some(mut waiting) = self.begin_command(request, sink)? else {
            return Ok(None);
        };
        // While the shell wakes up, long before it can print anything.
        let Some(mut waiter) = waiter.filter(InlineWaiter::shuts_gate) else {
            return Ok(Some(waiting));
        };
        match waiter.wait() {
            WaitStep::Answered => {}
            WaitStep::Nothing => waiting.patience = limits::WAIT_SCAN_MIN - limits::CALLER_READS,
            WaitStep::HandOver => {
                drop(waiter);
                self.shared().wake();
            }
        }
        Ok(Some(waiting))
    }

    /// Takes the engine when nobody has it or waits for it.
    fn claim_engine<'a>(&self, engine: &'a Mutex<Engine>) -> Option<InlineWaiter<'a>> {
        if self.shared().is_claimed() {
            return None;
        }
        let engine = engine.try_lock().ok()?;
        let live = engine.running.as_ref()?.live.clone();
        if !live.fast_path.procfs.lists_children() {
            // To look for what a command has left may take long.
            return None;
        }
        let can_wait = engine.alarm.is_some() && live.gate.is_some();
        can_wait.then_some(InlineWaiter { engine, live })
    }
}

impl InlineWaiter<'_> {
    /// Hides the output from the session's thread; returns whether that is so.
    fn shuts_gate(&self) -> bool {
        let gate = self.live.gate.as_ref();
        gate.is_some_and(|gate| gate.shut(self.live.mark_sources()))
    }

    /// Waits for the end of the command, but not for long.
    fn wait(&mut self) -> WaitStep {
        let until = Instant::now() + limits::CALLER_READS;
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
    /// Waits until something comes, and takes it in when it is nothing but the mark.
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
            // What the shell prints there beside marks is nothing to anyone.
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

    /// Reads the terminal, which has nothing to say when the mark was told; all that is not the mark
    /// alone is left unread.
    fn read_mark(&mut self, live: &LiveShell) -> Option<Mark> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = crate::terminal::live_shell::read_some(&live.master, &mut buffer);
        let bytes = buffer.get(..count).unwrap_or_default();
        let mark = match self.mark_fifo.mark() {
            Some(told) if count == 0 => self.mark_extractor.only_mark(told),
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

/// What has come.
struct Readiness {
    has_output: bool,
    has_mark: bool,
}

/// Waits for the terminal or the shell to say something, but not longer than until a point in time.
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
        let mut asked =
            [master.as_fd(), marks.as_fd(), alarm.as_fd()].map(|from| PollFd::new(from, input));
        let is_there = poll(&mut asked, PollTimeout::NONE).is_ok();
        let [has_output, has_mark, _] = asked.map(|asked| asked.any().unwrap_or(true));
        // An alarm that was set for an earlier command, or a signal, ends no wait.
        if is_there && (has_output || has_mark) {
            return Some(Readiness {
                has_output,
                has_mark,
            });
        }
    }
}

/// Elsewhere nobody drives.
#[cfg(not(target_os = "linux"))]
fn await_readiness(_live: &LiveShell, _alarm: &mut Alarm, _until: Instant) -> Option<Readiness> {
    None
}
