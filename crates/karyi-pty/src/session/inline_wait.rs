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
use crate::terminal::live_shell::Live;
use crate::terminal::marks::Mark;

/// The engine in the hands of a caller; it is the thread's again in the end, whatever happens.
struct Driver<'a> {
    engine: MutexGuard<'a, Engine>,
    live: Arc<Live>,
}

/// What a moment of waiting came to.
enum Step {
    /// Nothing has come.
    Nothing,
    /// The call was answered.
    Answered,
    /// Something is to be done that is for the session's thread.
    HandOver,
}

impl Session {
    /// Begins a command and waits for a moment for its end; there may be no shell to begin it.
    pub(crate) fn begin_and_drive(
        &self,
        request: &mut CommandRequest,
        sink: &mut Option<Sink>,
    ) -> Result<Option<Waiting<'_>>, ToolError> {
        let engine = self.engine();
        let driver = engine.as_deref().and_then(|engine| self.take(engine));
        let Some(mut waiting) = self.begin_command(request, sink)? else {
            return Ok(None);
        };
        // While the shell wakes up, long before it can print anything.
        let Some(mut driver) = driver.filter(Driver::shuts_gate) else {
            return Ok(Some(waiting));
        };
        match driver.drive() {
            Step::Answered => {}
            Step::Nothing => waiting.patience = limits::WAIT_SCAN_MIN - limits::CALLER_READS,
            Step::HandOver => {
                drop(driver);
                self.shared().wake();
            }
        }
        Ok(Some(waiting))
    }

    /// Takes the engine when nobody has it or waits for it.
    fn take<'a>(&self, engine: &'a Mutex<Engine>) -> Option<Driver<'a>> {
        if self.shared().is_claimed() {
            return None;
        }
        let engine = engine.try_lock().ok()?;
        let live = engine.running.as_ref()?.live.clone();
        if !live.kept.files.tell_children() {
            // To look for what a command has left may take long.
            return None;
        }
        let can_wait = engine.alarm.is_some() && live.gate.is_some();
        can_wait.then_some(Driver { engine, live })
    }
}

impl Driver<'_> {
    /// Hides the output from the session's thread; returns whether that is so.
    fn shuts_gate(&self) -> bool {
        let gate = self.live.gate.as_ref();
        gate.is_some_and(|gate| gate.shut(self.live.sources()))
    }

    /// Waits for the end of the command, but not for long.
    fn drive(&mut self) -> Step {
        let until = Instant::now() + limits::CALLER_READS;
        match self.engine.step(&self.live, until) {
            Step::Answered if self.engine.sleeps_too_long() => Step::HandOver,
            step => step,
        }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if let Some(gate) = &self.live.gate {
            gate.open(self.live.sources());
        }
    }
}

impl Engine {
    /// Waits until something comes, and takes it in when it is nothing but the mark.
    fn step(&mut self, live: &Live, until: Instant) -> Step {
        if !self.unread.is_empty() || self.told.is_pending() {
            return Step::HandOver;
        }
        let mark = self.shared.lock().awaited_mark();
        self.cutter.await_mark(mark);
        loop {
            let alarm = self.alarm.as_mut();
            let Some(news) = alarm.and_then(|alarm| await_news(live, alarm, until)) else {
                return Step::Nothing;
            };
            let is_told = news.is_told && self.told.hear(&live.marks, &self.cutter, mark);
            // What the shell prints there beside marks is nothing to anyone.
            if is_told || news.has_output {
                break;
            }
        }
        let Some(mark) = self.read_mark(live) else {
            return Step::HandOver;
        };
        self.command_ended(mark);
        if self.shared.lock().job.is_some() {
            return Step::HandOver;
        }
        Step::Answered
    }

    /// Reads the terminal, which has nothing to say when the mark was told; all that is not the mark
    /// alone is left unread.
    fn read_mark(&mut self, live: &Live) -> Option<Mark> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = crate::terminal::live_shell::read_some(&live.master, &mut buffer);
        let bytes = buffer.get(..count).unwrap_or_default();
        let mark = match self.told.mark() {
            Some(told) if count == 0 => self.cutter.only_mark(told),
            Some(_) => None,
            None => self.cutter.only_mark(bytes),
        };
        match mark {
            Some(_) => self.told.pass(),
            None => self.unread.extend_from_slice(bytes),
        }
        self.buffer = buffer;
        mark
    }
}

/// What has come.
struct News {
    has_output: bool,
    is_told: bool,
}

/// Waits for the terminal or the shell to say something, but not longer than until a point in time.
#[cfg(target_os = "linux")]
fn await_news(live: &Live, alarm: &mut Alarm, until: Instant) -> Option<News> {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    loop {
        let now = Instant::now();
        if now >= until || !alarm.set(now, until) {
            return None;
        }
        let [master, marks] = live.sources();
        let input = PollFlags::POLLIN;
        let mut asked =
            [master.as_fd(), marks.as_fd(), alarm.as_fd()].map(|from| PollFd::new(from, input));
        let is_there = poll(&mut asked, PollTimeout::NONE).is_ok();
        let [has_output, is_told, _] = asked.map(|asked| asked.any().unwrap_or(true));
        // An alarm that was set for an earlier command, or a signal, ends no wait.
        if is_there && (has_output || is_told) {
            return Some(News {
                has_output,
                is_told,
            });
        }
    }
}

/// Elsewhere nobody drives.
#[cfg(not(target_os = "linux"))]
fn await_news(_live: &Live, _alarm: &mut Alarm, _until: Instant) -> Option<News> {
    None
}
