//! What a session's thread does for the job in the foreground while nothing happens by itself: it
//! types input, looks at what the job waits for, keeps time limits, and saves the shell's state when
//! no job runs.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::outcome::Status;

use super::ending;
use super::engine::{Engine, TakenSink};
use super::live::Live;
use super::state::Progress;
use super::wait::{Finding, Watch, shows_input};

/// How often a lost mark is asked for before the shell is given up.
const MAX_RESCUES: u32 = 2;

impl Engine {
    /// Does what is due: types, looks at the job, keeps time limits, saves the shell's state.
    pub(super) fn tend(&mut self) {
        let Some(live) = self.running.as_ref().map(|running| running.live.clone()) else {
            return;
        };
        let state = self.shared.lock();
        let Some(job) = state.job.as_ref().map(|job| job.number) else {
            drop(state);
            self.save_when_idle(&live);
            return;
        };
        let call = state.call.as_ref().map_or(0, |call| call.number);
        drop(state);
        if self.watched != (job, call) {
            self.watched = (job, call);
            self.watch = Watch::new();
            self.next_look = Instant::now();
            self.pass_on_earlier();
        }
        self.type_input(&live);
        self.answer(&live);
        if Instant::now() >= self.next_look {
            self.look(&live);
        }
        self.keep_deadline();
    }

    /// Gives a new call the output that came before it.
    fn pass_on_earlier(&mut self) {
        let taken = self
            .shared
            .lock()
            .call
            .as_mut()
            .and_then(TakenSink::from_call);
        if let Some(mut taken) = taken {
            taken.pass_on_earlier();
            taken.put_back(&self.shared, self.tracker.is_full_screen());
        }
    }

    fn type_input(&mut self, live: &Live) {
        let mut state = self.shared.lock();
        let input = state.call.as_mut().and_then(|call| call.input.as_mut());
        let Some(input) = input.filter(|input| input.is_open && !input.rest().is_empty()) else {
            return;
        };
        input.written += nix::unistd::write(&live.master, input.rest()).unwrap_or(0);
        let is_done = input.rest().is_empty();
        drop(state);
        if is_done {
            self.look_afresh();
        }
    }

    fn look(&mut self, live: &Live) {
        if live.process.is_none() && self.has_ended() {
            self.shell_ended();
            return;
        }
        let activity = live.subject().look();
        let finding = self.watch.add(activity, Instant::now());
        let is_attached = self.shared.lock().call.is_some();
        let pause = if is_attached {
            self.watch.pause()
        } else {
            limits::WAIT_SCAN_DETACHED
        };
        self.next_look = Instant::now() + pause;
        if finding == Finding::Unknown {
            return;
        }
        // What was printed before the job began to wait belongs to the result.
        if self.read_terminal() {
            return;
        }
        self.act_on(finding, live);
    }

    /// Asks for the shell's end where the system cannot tell it by itself.
    fn has_ended(&mut self) -> bool {
        let child = self
            .running
            .as_mut()
            .map(|running| &mut running.owned.child);
        child.is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_some()))
    }

    fn act_on(&mut self, finding: Finding, live: &Live) {
        match finding {
            Finding::Unknown => {}
            Finding::Idle => self.rescue(live),
            Finding::Reading => self.job_waits(live, Status::AwaitingInput),
            Finding::Accepting(quiet) => {
                let is_gated = self.is_gated();
                if is_gated || quiet >= limits::ACCEPTS_INPUT_QUIET {
                    self.job_waits(live, Status::AcceptsInput);
                }
            }
            Finding::Stopped if self.is_gated() => {}
            Finding::Stopped => self.finish(Status::Stopped, None),
        }
    }

    /// Whether the call has input that waits for a reader.
    fn is_gated(&self) -> bool {
        let state = self.shared.lock();
        let input = state.call.as_ref().and_then(|call| call.input.as_ref());
        input.is_some_and(|input| !input.is_open)
    }

    fn job_waits(&mut self, live: &Live, status: Status) {
        if self.is_gated() {
            self.open_gate(live);
            return;
        }
        if !self.is_typing() {
            let echo = (status == Status::AwaitingInput).then(|| !live.subject().hides_input());
            self.finish(status, echo);
        }
    }

    fn open_gate(&mut self, live: &Live) {
        let mut state = self.shared.lock();
        let Some(input) = state.call.as_mut().and_then(|call| call.input.as_mut()) else {
            return;
        };
        if input.is_secret && !live.subject().hides_input() {
            let shown = if shows_input(&live.master) {
                "shows"
            } else {
                "may show"
            };
            let message = format!("the secret was not sent: the terminal {shown} what is typed");
            state.reply(Err(ToolError::new(ErrorCode::EchoOn, message)));
            return;
        }
        input.is_open = true;
        drop(state);
        self.type_input(live);
    }

    /// The shell waits for its next line, and the mark did not come: asks for it again.
    fn rescue(&mut self, live: &Live) {
        let kind = self.shared.kind;
        let mut state = self.shared.lock();
        let Some(job) = state.job.as_mut() else {
            return;
        };
        let mut lines = String::new();
        if job.rescues > 0 {
            lines.push_str(kind.rescue_lines());
        }
        lines.push_str(&kind.mark_line(&live.places, job.number));
        job.rescues += 1;
        let is_hopeless = job.rescues > MAX_RESCUES;
        drop(state);
        if is_hopeless || live.write_lines(lines.as_bytes()).is_err() {
            let _ = kill(Pid::from_raw(live.pid), Signal::SIGKILL);
        }
        self.look_afresh();
    }

    /// Ends the call while the job goes on.
    fn finish(&mut self, status: Status, echo: Option<bool>) {
        let mut state = self.shared.lock();
        let restarted = if state.call.is_some() {
            state.restart.take()
        } else {
            None
        };
        state.reply(Ok(Progress {
            status,
            exit_code: None,
            cwd: None,
            echo,
            restarted,
        }));
    }

    fn keep_deadline(&mut self) {
        let state = self.shared.lock();
        let deadline = state.call.as_ref().and_then(|call| call.deadline);
        drop(state);
        if deadline.is_none_or(|at| Instant::now() < at) {
            return;
        }
        // What has come in by now still belongs to the call, and may end it.
        if self.read_terminal() && self.shared.lock().call.is_none() {
            return;
        }
        if self.is_gated() {
            let message = "the job did not read the terminal in time; nothing was sent";
            self.shared
                .lock()
                .reply(Err(ToolError::new(ErrorCode::NoReader, message)));
        } else if self.watch.accepts() {
            self.finish(Status::AcceptsInput, None);
        } else {
            self.finish(Status::Running, None);
        }
    }

    fn save_when_idle(&mut self, live: &Live) {
        let is_due = |since: Instant| since.elapsed() >= limits::SNAPSHOT_IDLE;
        if !self.unsaved_since.is_some_and(is_due) {
            return;
        }
        self.unsaved_since = None;
        let line = self.shared.kind.snapshot_line(&live.places);
        let state = self.shared.lock();
        // A command that came first is followed by a snapshot of its own.
        if state.job.is_none() {
            let _ = live.write_lines(line.as_bytes());
        }
        drop(state);
        ending::reap_orphans();
    }
}
