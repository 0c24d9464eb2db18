//! Periodic work for the job in the foreground: type input, scan what the job waits for, enforce time limits, take a
//! snapshot while no job runs.

use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::termios::{self, InputFlags, LocalFlags};
use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::engine::Engine;
use crate::engine::job::Verdict;
use crate::engine::job_lines::spaced;
use crate::engine::launcher::RunningShell;
use crate::engine::output::Output;
use crate::engine::pending_call::{PendingInput, Progress};
use crate::teardown::registry;
use crate::terminal::live_shell::{InputLocation, LiveShell};
use crate::wait::{Certainty, Finding, shows_input};

impl Engine {
    /// Does the work that is due: type, scan the job, enforce time limits, take a snapshot.
    pub(crate) fn poll_job(&mut self) {
        let Some(live) = self.running.as_ref().map(|running| running.live.clone()) else {
            return;
        };
        self.reap_periodically();
        let mut state = self.shared.lock();
        let watched = state.watched();
        let Some(job) = state.job.as_mut() else {
            drop(state);
            self.save_when_idle(&live);
            return;
        };
        // Most commands have ended before this thread wakes.
        job.lines.send_last(&live);
        let is_due = state.seen.observation.is_due();
        drop(state);
        if self.watch.follow(watched) {
            Output::begin_call(&self.shared);
        }
        self.type_input(&live);
        self.reply_to_queries(&live);
        self.kill_if_input_lost(&live);
        if Instant::now() >= self.watch.next_scan() || is_due {
            self.scan(&live);
        }
        self.enforce_deadline();
    }

    /// Reaps orphans also while commands follow each other without a pause.
    fn reap_periodically(&mut self) {
        if self.reaped_at.elapsed() >= limits::REAP_EVERY {
            self.reaped_at = Instant::now();
            registry::reap_orphans();
        }
    }

    fn type_input(&mut self, live: &LiveShell) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let input = state.call.as_mut().and_then(|call| call.input.as_mut());
        let Some(input) = input.filter(|input| !input.rest().is_empty()) else {
            return;
        };
        // A terminal takes a few thousand bytes at once, and more must not be copied each time.
        let next = input.rest().chunks(limits::TERMINAL_READ_BYTES).next();
        let typed = as_typed(next.unwrap_or_default(), live);
        let count = nix::unistd::write(&live.master, &typed).unwrap_or(0);
        if let Some(job) = &mut state.job {
            job.typed.add(input.rest().get(..count).unwrap_or_default());
        }
        input.written += count;
        if input.rest().is_empty() {
            self.watch.reset();
        }
    }

    fn scan(&mut self, live: &LiveShell) {
        // Elsewhere the system reports its end.
        let is_polled = live.process.is_none();
        if is_polled && (self.running.as_mut()).is_some_and(RunningShell::has_ended) {
            self.shell_ended();
            return;
        }
        if self.has_outcome(live) {
            return;
        }
        let finding = self.watch.scan(live, &self.shared);
        if finding == Finding::Unknown {
            return;
        }
        // Output from before the job began to wait belongs to the result.
        self.poll_marks();
        if self.read_terminal() {
            return;
        }
        self.act_on(finding, live);
    }

    /// Kills the shell of a job that has closed the shell's input.
    fn kill_if_input_lost(&mut self, live: &LiveShell) {
        let state = self.shared.lock();
        let script = state.shell.script.identity();
        let job = state.job.as_ref();
        let may_close = job.is_some_and(|job| job.script.may_close_input);
        drop(state);
        if self.watch.has_lost_input(may_close, script, live) {
            live.signal_shell(Signal::SIGKILL);
        }
    }

    fn act_on(&mut self, finding: Finding, live: &LiveShell) {
        match finding {
            Finding::Unknown => {}
            Finding::Idle => self.request_lost_mark(live),
            Finding::StealsInput(pid) => {
                live.watched_terminal().kill_input_thief(pid);
                self.watch.reset();
            }
            Finding::HungUp => live.signal_shell(Signal::SIGKILL),
            Finding::Reading(_) if self.reads_terminal_as_input(live) => {}
            Finding::Reading(certainty) => {
                self.job_waits(live, Status::AwaitingInput, certainty);
            }
            Finding::Accepting(quiet, certainty) => {
                let is_long = quiet >= limits::ACCEPTS_INPUT_QUIET;
                if is_long || self.awaits_reader() && self.may_type(live) {
                    self.job_waits(live, Status::AcceptsInput, certainty);
                }
            }
            // The caller believes that the input is read, and nothing contradicts that.
            Finding::Silent(quiet) if self.awaits_reader() && quiet >= limits::GUESS_QUIET => {
                self.type_gated_input(live);
            }
            Finding::Silent(_) => {}
            Finding::Stopped if self.awaits_reader() || self.is_for_end() => {}
            Finding::Stopped => self.finish(Status::Stopped, None, Certainty::Known),
            Finding::PartlyStopped => self.repeat_stop(live),
        }
    }

    /// Sends the stop signal to the rest of a job that a key was to stop. A program that was just being started lost
    /// the signal, and on a busy machine may lose the next one as well. One that the shell itself waits for was
    /// stopped too early, and is continued first.
    fn repeat_stop(&mut self, live: &LiveShell) {
        let mut state = self.shared.lock();
        let Some(call) = state.call.as_mut().filter(|call| call.stops > 0) else {
            return;
        };
        call.stops -= 1;
        drop(state);
        let group = live.foreground_group();
        if let Some(group) = group.filter(|_| !live.watched_terminal().continue_stopped_copies()) {
            let _ = group.signal_at_once(Signal::SIGTSTP);
        }
        self.watch.reset();
    }

    /// Returns true if the call has input that waits for a reader.
    fn awaits_reader(&self) -> bool {
        let state = self.shared.lock();
        state.input().is_some_and(PendingInput::awaits_reader)
    }

    /// Returns true if input may be typed now: a program that is about to ask for a secret turns echo off later.
    fn may_type(&self, live: &LiveShell) -> bool {
        let state = self.shared.lock();
        let is_secret = state.input().is_some_and(|input| input.is_secret);
        drop(state);
        !is_secret || self.watch.hides_input(live)
    }

    /// Returns true if only the end of the job ends the call.
    fn is_for_end(&self) -> bool {
        let state = self.shared.lock();
        state.call.as_ref().is_some_and(|call| call.is_for_end)
    }

    fn job_waits(&mut self, live: &LiveShell, status: Status, certainty: Certainty) {
        if self.awaits_reader() {
            self.type_gated_input(live);
            return;
        }
        let state = self.shared.lock();
        let is_left = state.is_typing() || state.has_person();
        drop(state);
        if !is_left && !self.is_for_end() {
            let is_waiting = status == Status::AwaitingInput;
            let echo = is_waiting.then(|| !self.watch.hides_input(live));
            self.finish(status, echo, certainty);
        }
    }

    /// Types input that waited for a reader.
    fn type_gated_input(&mut self, live: &LiveShell) {
        let is_hidden = self.watch.hides_input(live);
        let is_canonical = live.watched_terminal().is_canonical();
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        if !self.watch.is_about(state) {
            return;
        }
        let Some(input) = state.call.as_mut().and_then(|call| call.input.as_mut()) else {
            return;
        };
        let open_line = state
            .job
            .as_ref()
            .map_or(0, |job| job.typed.open_line_bytes());
        let refusal = if input.is_secret && !is_hidden {
            Some(echo_error(live))
        } else if !self.watch.passes_unchanged(input.values, live) {
            Some(unsafe_character_error())
        } else if (is_canonical || !input.values.is_empty())
            && longest_line(input.unsent(), open_line) > limits::MAX_TERMINAL_INPUT_LINE
        {
            // Where keys are read at once there may be another terminal behind, with the same limit.
            Some(line_too_long_error())
        } else {
            None
        };
        if let Some(error) = refusal {
            state.refuse_input(error, !is_hidden);
            return;
        }
        let lines = input.unsent().split(|byte| *byte == b'\n').count();
        let is_by_line = input.is_secret || is_hidden && lines <= limits::MAX_GATED_LINES;
        input.allow(is_by_line);
        drop(guard);
        self.type_input(live);
    }

    /// Returns true if the outcome of the job is known, and only the shell is not ready: it must get its input back or
    /// end.
    fn has_outcome(&mut self, live: &LiveShell) -> bool {
        let state = self.shared.lock();
        let job = state.job.as_ref();
        let Some(verdict) = job.and_then(|job| job.marks.verdict()).cloned() else {
            return false;
        };
        drop(state);
        self.watch.scan_at(Instant::now() + limits::WAIT_SCAN_MIN);
        if let Verdict::Exited(mark, until) = verdict {
            let is_whole = !live.lacks_descriptors() && !live.has_lost_terminal();
            if live.input_location() == InputLocation::Stdin && is_whole {
                self.complete(mark);
            } else if Instant::now() >= until {
                live.signal_shell(Signal::SIGKILL);
            }
        }
        true
    }

    /// Returns true if the shell printed its mark but reads the terminal instead of its FIFO: the command has closed
    /// the descriptors with which the shell restores its input. It would run typed input as its own lines, so it is
    /// replaced; the status in the mark stays valid.
    fn reads_terminal_as_input(&self, live: &LiveShell) -> bool {
        let mut state = self.shared.lock();
        if !self.watch.shell_reads_terminal(live) || !self.watch.is_about(&state) {
            return false;
        }
        let Some(job) = state.job.as_mut() else {
            return false;
        };
        let Some(mark) = job.marks.take_early() else {
            return false;
        };
        job.marks.decide(Verdict::Exited(mark, Instant::now()));
        true
    }

    /// Requests a mark that did not come although the shell waits for its next line.
    fn request_lost_mark(&mut self, live: &LiveShell) {
        let dialect = self.shared.dialect;
        let mut state = self.shared.lock();
        let Some(job) = state.job.as_mut() else {
            return;
        };
        if let Some(mark) = job.marks.take_early() {
            // The mark was genuine after all.
            drop(state);
            self.complete(mark);
            return;
        }
        live.fast_path.disable();
        let attempt = job.marks.count_request();
        let lines = dialect.lost_mark_lines(&live.paths, job.marks.number, attempt);
        // A trap or a hook that reads the shell's input gets an empty line. The line of the mark is already one of
        // those it may read.
        let lines = lines.map(|lines| spaced(lines.as_bytes(), limits::LINES_FOR_HOOKS - 1));
        if attempt == 0 {
            job.lines.add_after(dialect.unset_line("KARYI_LAST"));
        }
        let is_due = lines.is_some_and(|lines| live.write_lines(&lines).is_ok());
        if !is_due {
            job.marks.decide(Verdict::Killed);
            live.signal_shell(Signal::SIGKILL);
        }
        drop(state);
        self.watch.reset();
    }

    /// Ends the call while the job runs on.
    fn finish(&mut self, status: Status, echo: Option<bool>, certainty: Certainty) {
        let mut state = self.shared.lock();
        if !self.watch.is_about(&state) {
            return;
        }
        state.report(Progress {
            echo,
            is_probable: certainty == Certainty::Probable,
            ..Progress::of(status)
        });
    }

    fn enforce_deadline(&mut self) {
        let state = self.shared.lock();
        let deadline = state.call.as_ref().and_then(|call| call.deadline);
        drop(state);
        if deadline.is_none_or(|at| Instant::now() < at) {
            return;
        }
        // Output that is available now still belongs to the call, and may end it.
        self.poll_marks();
        while self.read_terminal() && self.output.has_pending_mark() {}
        let is_unread = {
            let mut state = self.shared.lock();
            if state.call.is_none() {
                return;
            }
            if state.person.answers.take().is_some() {
                // The next scan finds out if it waits.
                self.watch.scan_at(Instant::now());
                return;
            }
            state.input().is_some_and(PendingInput::is_untouched)
        };
        if is_unread {
            let error = self.no_reader_error();
            self.shared.lock().reply(Err(error));
        } else if let Some(certainty) = self.watch.accepts_quietly() {
            self.finish(Status::AcceptsInput, None, certainty);
        } else {
            self.finish(Status::Running, None, Certainty::Known);
        }
    }

    /// Returns the error of input that nobody reads. It says what the job does now: on a busy machine no scan may have
    /// come before the time limit.
    fn no_reader_error(&mut self) -> ToolError {
        if let Some(running) = &self.running {
            self.watch.scan(&running.live, &self.shared);
        }
        let found = if self.watch.is_stopped() {
            "the job is stopped"
        } else {
            "the job did not read the terminal in time"
        };
        ToolError::new(ErrorCode::NoReader, format!("{found}; nothing was sent"))
    }

    fn save_when_idle(&mut self, live: &LiveShell) {
        if !self.snapshots.take_due() {
            return;
        }
        let line = self.shared.dialect.idle_lines(&live.paths);
        let mut state = self.shared.lock();
        // A command that came first is followed by its own snapshot.
        if state.job.is_none() {
            let _ = live.write_lines(line.as_bytes());
            state.snapshots.requested += 1;
            state.snapshots.is_needed = false;
        }
        drop(state);
        registry::reap_orphans();
    }
}

/// Returns input as the Enter key types it: where the terminal reads single keys and does not turn a carriage return
/// into a line feed, programs take a line feed for another key.
pub(crate) fn as_typed(input: &[u8], live: &LiveShell) -> Zeroizing<Vec<u8>> {
    let is_raw = termios::tcgetattr(&live.master).is_ok_and(|modes| {
        !modes.input_flags.contains(InputFlags::ICRNL)
            && !modes.local_flags.contains(LocalFlags::ICANON)
    });
    let key = |byte: &u8| match *byte {
        b'\n' if is_raw => b'\r',
        byte => byte,
    };
    Zeroizing::new(input.iter().map(key).collect())
}

/// Returns the error of a secret that would be echoed.
fn echo_error(live: &LiveShell) -> ToolError {
    let shown = if shows_input(&live.master) {
        "shows"
    } else {
        "may show"
    };
    let message = format!("the secret was not sent: the terminal {shown} what is typed");
    ToolError::new(ErrorCode::EchoOn, message)
}

/// Returns the error of a secret that the terminal would change.
fn unsafe_character_error() -> ToolError {
    let message = "the secret was not sent: it holds a character that the terminal acts on";
    ToolError::new(ErrorCode::UnsafeContext, message).with_hint(
        "give it to the command as a file, $KARYI{NAME|file}, or on its standard input through a pipe",
    )
}

/// Returns the error of input whose end the terminal would drop.
fn line_too_long_error() -> ToolError {
    let message = format!(
        "the job reads whole lines, and a terminal holds {} bytes of one; nothing was sent",
        limits::MAX_TERMINAL_INPUT_LINE
    );
    ToolError::new(ErrorCode::LineTooLong, message)
}

/// Returns the length in bytes of the longest line; `open_line` bytes of the first one were typed before.
fn longest_line(text: &[u8], open_line: usize) -> usize {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines
        .map(|(index, line)| line.len() + if index == 0 { open_line } else { 0 })
        .max()
        .unwrap_or(0)
}
