//! The thread of a session: reads the terminal, ends calls, starts the shell again when it is gone.
//!
//! It sleeps in one `poll` for everything that can happen: output, a snapshot, the end of the
//! shell, an order. What it decides it decides from the state both sides share; the state is never
//! held while a sink runs or while processes are looked at.

use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::outcome::Status;

use super::ending;
use super::live::{Live, Owned, Plan, read_some};
use super::marks::{Mark, MarkCutter};
use super::snapshot::Collector;
use super::state::{Call, Order, Progress, Shared, Sink};
use super::wait::{Finding, Watch, shows_input};

/// How often a lost mark is asked for before the shell is given up.
const MAX_RESCUES: u32 = 2;

/// The thread's own half of a session.
pub(super) struct Engine {
    pub(super) shared: Arc<Shared>,
    pub(super) plan: Plan,
    pub(super) wakes: UnixStream,
    pub(super) has_rc: bool,
    pub(super) running: Option<Running>,
    pub(super) cutter: MarkCutter,
    pub(super) collector: Collector,
    pub(super) buffer: Vec<u8>,
    pub(super) watch: Watch,
    /// What the watch is about: the numbers of the job and the call.
    pub(super) watched: (u64, u64),
    pub(super) next_look: Instant,
    /// When the last command ended, if nothing was saved since.
    pub(super) unsaved_since: Option<Instant>,
    pub(super) ended_at: Instant,
    pub(super) is_done: bool,
    // Last, because the files of the shell must outlive everything that uses them.
    pub(super) _directory: tempfile::TempDir,
}

/// A shell and what belongs to it on this side.
pub(super) struct Running {
    pub(super) live: Arc<Live>,
    pub(super) owned: Owned,
}

/// What there is to do after a sleep.
#[derive(Debug, Default, Clone, Copy)]
struct Events {
    has_output: bool,
    has_snapshot: bool,
    has_ended: bool,
    was_woken: bool,
}

impl Engine {
    /// Runs until the session is closed.
    pub(super) fn run(mut self) {
        while !self.is_done {
            let events = self.sleep();
            if events.has_output {
                self.read_terminal();
            }
            if events.was_woken {
                self.clear_wakes();
            }
            if events.has_snapshot {
                self.read_snapshot();
            }
            if events.has_ended {
                self.shell_ended();
            }
            self.obey();
            self.tend();
        }
    }

    fn sleep(&self) -> Events {
        let timeout = self.time_to_sleep();
        let input = PollFlags::POLLIN;
        let mut asked = vec![PollFd::new(self.wakes.as_fd(), input)];
        if let Some(running) = &self.running {
            let live = &running.live;
            let terminal = if self.is_typing() {
                input | PollFlags::POLLOUT
            } else {
                input
            };
            asked.push(PollFd::new(live.master.as_fd(), terminal));
            asked.push(PollFd::new(live.state.as_fd(), input));
            if let Some(process) = &live.process {
                asked.push(PollFd::new(process.as_fd(), input));
            }
        }
        if nix::poll::poll(&mut asked, timeout).is_err() {
            return Events::default();
        }
        let has = |index: usize| {
            let events = asked.get(index).and_then(PollFd::revents);
            events.is_some_and(|events| !events.difference(PollFlags::POLLOUT).is_empty())
        };
        Events {
            was_woken: has(0),
            has_output: has(1),
            has_snapshot: has(2),
            has_ended: has(3),
        }
    }

    /// Returns how long nothing needs to be done unless something happens.
    fn time_to_sleep(&self) -> PollTimeout {
        let state = self.shared.lock();
        let mut next = self
            .unsaved_since
            .map(|since| since + limits::SNAPSHOT_IDLE);
        if state.job.is_some() && self.running.is_some() {
            let deadline = state.call.as_ref().and_then(|call| call.deadline);
            next = Some(deadline.map_or(self.next_look, |at| at.min(self.next_look)));
        }
        drop(state);
        let Some(next) = next else {
            return PollTimeout::NONE;
        };
        let left = next.saturating_duration_since(Instant::now());
        // Rounded up: waking early would only mean to sleep again.
        let left_ms = left.as_micros().div_ceil(1000);
        PollTimeout::try_from(left_ms).unwrap_or(PollTimeout::MAX)
    }

    fn is_typing(&self) -> bool {
        let state = self.shared.lock();
        let input = state.call.as_ref().and_then(|call| call.input.as_ref());
        input.is_some_and(|input| input.is_open && !input.rest().is_empty())
    }

    fn clear_wakes(&mut self) {
        let mut bytes = [0; 64];
        while (&self.wakes)
            .read(&mut bytes)
            .is_ok_and(|count| count == bytes.len())
        {}
    }

    fn read_snapshot(&mut self) {
        if let Some(running) = &self.running {
            self.collector.read(&running.live.state);
        }
    }

    /// Reads output once. Returns whether there was any.
    pub(super) fn read_terminal(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = read_some(&running.live.master, &mut buffer);
        let mut rest = buffer.get(..count).unwrap_or_default();
        while !rest.is_empty() {
            let (used, mark) = self.pass_on(rest);
            rest = rest.get(used..).unwrap_or_default();
            if let Some(mark) = mark {
                self.command_ended(mark);
            }
        }
        self.buffer = buffer;
        if count > 0 {
            self.look_afresh();
        }
        count > 0
    }

    /// Hands output up to the next mark to whom it belongs.
    fn pass_on(&mut self, bytes: &[u8]) -> (usize, Option<Mark>) {
        let mut state = self.shared.lock();
        self.cutter
            .await_mark(state.job.as_ref().map(|job| job.number));
        let Some(mut taken) = state.call.as_mut().and_then(TakenSink::from_call) else {
            return self.cutter.push(bytes, &mut |output| state.keep(output));
        };
        drop(state);
        taken.pass_on_earlier();
        let result = self.cutter.push(bytes, &mut taken.sink);
        taken.put_back(&self.shared);
        result
    }

    /// Begins to watch the job as if nothing were known: it has done something.
    pub(super) fn look_afresh(&mut self) {
        self.watch = Watch::new();
        self.next_look = Instant::now() + self.watch.pause();
    }

    /// The mark of the running command has come.
    fn command_ended(&mut self, mark: Mark) {
        let Some(running) = &self.running else {
            return;
        };
        running.owned.reset_modes(&running.live);
        let kind = self.shared.kind;
        let mut state = self.shared.lock();
        let Some(job) = state.job.take() else {
            return;
        };
        let mut after = job.after.clone();
        if mark.is_errexit {
            after.extend(kind.no_errexit_line().into_bytes());
        }
        if !after.is_empty() {
            let _ = running.live.write_lines(&after);
        }
        state.cwd = match job.home {
            Some(home) => home,
            None if mark.cwd == state.cwd => mark.cwd,
            None => running.live.directory(mark.cwd),
        };
        state.last_status = mark.status;
        state.end_job(mark.status);
        drop(state);
        self.ended_at = Instant::now();
        self.unsaved_since = Some(self.ended_at);
    }

    /// Does what the owner of the session asked for.
    fn obey(&mut self) {
        let orders = std::mem::take(&mut self.shared.lock().orders);
        for order in orders {
            match order {
                Order::Start(reply) => {
                    let _ = reply.send(self.start_again());
                }
                Order::Close(reply) => {
                    let _ = reply.send(self.close());
                    self.is_done = true;
                }
                Order::Abandon => {
                    self.abandon();
                    self.is_done = true;
                }
            }
        }
    }

    /// Does what is due: types, looks at the job, keeps time limits, saves the shell's state.
    fn tend(&mut self) {
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
            taken.put_back(&self.shared);
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
            let shell = nix::unistd::Pid::from_raw(live.pid);
            let _ = nix::sys::signal::kill(shell, nix::sys::signal::Signal::SIGKILL);
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

/// A call's sink, out for use while the state is not held.
struct TakenSink {
    number: u64,
    sink: Sink,
    earlier: Vec<u8>,
}

impl TakenSink {
    fn from_call(call: &mut Call) -> Option<Self> {
        Some(Self {
            number: call.number,
            sink: call.sink.take()?,
            earlier: std::mem::take(&mut call.earlier),
        })
    }

    fn pass_on_earlier(&mut self) {
        let earlier = std::mem::take(&mut self.earlier);
        if !earlier.is_empty() {
            (self.sink)(&earlier);
        }
    }

    fn put_back(self, shared: &Shared) {
        let mut state = shared.lock();
        if let Some(call) = state
            .call
            .as_mut()
            .filter(|call| call.number == self.number)
        {
            call.sink = Some(self.sink);
        }
    }
}
