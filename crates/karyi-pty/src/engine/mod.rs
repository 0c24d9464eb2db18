//! The thread of a session: reads the terminal, ends calls, restarts the shell.
//!
//! It sleeps in one `poll` for output, snapshots, the end of the shell and orders. It decides from the state it shares
//! with callers; the state is never locked while a sink runs or processes are scanned.

pub(crate) mod alarm;
pub mod background;
pub(crate) mod call_sink;
pub(crate) mod job;
pub(crate) mod job_start;
pub(crate) mod observation;
pub(crate) mod pending_call;
pub(crate) mod poll;
mod reply;
mod restart;
pub(crate) mod screen_tracker;
mod shutdown;
pub(crate) mod state;

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::Signal;

use karyi_core::limits;

use crate::engine::background::{Background, ProcessClaims, WeakBackground};
use crate::engine::call_sink::CallSink;
use crate::engine::job::Verdict;
use crate::engine::job_start::Resubmission;
use crate::engine::screen_tracker::ScreenTracker;
use crate::engine::state::{Order, Shared, State};
use crate::session::options::ForkState;
use crate::shell::delivery;
use crate::shell::snapshot::SnapshotCollector;
use crate::terminal::live_shell::{InputLocation, LiveShell, ShellChild, read_some};
use crate::terminal::mark_fifo::MarkFifo;
use crate::terminal::marks::{Mark, MarkExtractor};
use crate::terminal::output_hints::HintReader;
use crate::terminal::spawn::SpawnConfig;
use crate::wait::{Scanner, Watch};

/// Returns true if output ends with the message that a program cannot be executed.
fn is_refusal(tail: &str) -> bool {
    let line = tail.trim_end().lines().next_back().unwrap_or_default();
    let words = [
        "permission denied",
        "is a directory",
        "exec format error",
        "cannot execute",
    ];
    words.iter().any(|word| line.contains(word))
}

/// The thread's half of a session.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spawn_config: SpawnConfig,
    /// Time limit of the user's start-up files; `None` if none are read.
    pub(crate) rc_limit: Option<Duration>,
    pub(crate) running: Option<RunningShell>,
    pub(crate) mark_extractor: MarkExtractor,
    pub(crate) tracker: ScreenTracker,
    pub(crate) collector: SnapshotCollector,
    pub(crate) buffer: Vec<u8>,
    /// True if the shell was killed because another program reads its input.
    pub(crate) has_input_thief: bool,
    /// Marks that bash writes beside the terminal.
    pub(crate) mark_fifo: MarkFifo,
    pub(crate) watch: Watch,
    pub(crate) scanner: Scanner,
    pub(crate) hint_reader: HintReader,
    /// Numbers of the job and the call that the watch is about.
    pub(crate) watched: (u64, u64),
    pub(crate) next_scan: Instant,
    /// Number of consecutive scans in which the shell had lost its input, and the time of the last one.
    pub(crate) lost_input_scans: (u32, Instant),
    /// The time the last command ended, if no snapshot was taken since.
    pub(crate) unsaved_since: Option<Instant>,
    pub(crate) ended_at: Instant,
    /// Children that earlier jobs left in the background.
    pub(crate) known_children: HashSet<i32>,
    /// Processes that belong to one of these background jobs.
    pub(crate) claims: ProcessClaims,
    /// Background jobs of earlier commands.
    pub(crate) followed: Vec<WeakBackground>,
    /// State for the first shell.
    pub(crate) fork_state: Option<ForkState>,
    /// The time of the last reaping of orphans.
    pub(crate) reaped_at: Instant,
    pub(crate) is_done: bool,
    // Last, because the files of the shell must outlive everything that uses them.
    pub(crate) directory: Option<tempfile::TempDir>,
}

/// A running shell and its handles.
pub(crate) struct RunningShell {
    pub(crate) live: Arc<LiveShell>,
    pub(crate) child: ShellChild,
}

/// Events after a sleep.
#[derive(Debug, Default, Clone, Copy)]
struct Events {
    has_output: bool,
    has_snapshot: bool,
    has_ended: bool,
    has_rung: bool,
    is_hung_up: bool,
}

impl Engine {
    /// Runs the session until it is closed.
    pub(crate) fn run(&mut self) {
        while !self.is_done {
            let events = self.sleep();
            if events.has_rung {
                self.shared.alarm.silence();
            }
            self.act(events);
        }
    }

    /// Sleeps until something happens or is due.
    fn sleep(&self) -> Events {
        let alarm = &self.shared.alarm;
        let limit = alarm.limit(self.next_due());
        let is_typing = self.is_typing();
        let input = PollFlags::POLLIN;
        let sources = alarm.sources();
        let mut polled: Vec<_> = sources.map(|from| PollFd::new(from, input)).collect();
        let alarms = polled.len();
        if let Some(RunningShell { live, child }) = &self.running {
            polled.push(PollFd::new(live.master.as_fd(), input));
            polled.push(PollFd::new(live.marks.as_fd(), input));
            polled.push(PollFd::new(child.snapshots.as_fd(), input));
            // Only the slave side reports a hang-up.
            polled.push(PollFd::new(live.slave.as_fd(), PollFlags::empty()));
            if let Some(process) = &live.process {
                polled.push(PollFd::new(process.as_fd(), input));
            }
            if is_typing {
                polled.push(PollFd::new(live.master.as_fd(), PollFlags::POLLOUT));
            }
        }
        if nix::poll::poll(&mut polled, limit).is_err() {
            return Events::default();
        }
        let has = |polled: &PollFd<'_>| polled.any().unwrap_or(true);
        let (alarms, shell) = polled.split_at(alarms);
        let is_there = |index: usize| shell.get(index).is_some_and(has);
        let running = self.running.as_ref();
        let has_process = running.is_some_and(|running| running.live.process.is_some());
        Events {
            has_rung: alarms.iter().any(has),
            has_output: is_there(0) || is_there(1),
            has_snapshot: is_there(2),
            is_hung_up: is_there(3),
            has_ended: has_process && is_there(4),
        }
    }

    /// Handles the events of a sleep.
    fn act(&mut self, events: Events) {
        if events.has_output || self.mark_fifo.is_pending() {
            self.read_available();
        }
        if events.is_hung_up {
            self.kill_shell_without_terminal();
        }
        if events.has_snapshot {
            self.read_snapshot();
        }
        self.process_orders();
        // No shell follows one that was killed with its session.
        if events.has_ended && !self.is_done && !self.is_ordered_to_end() {
            self.shell_ended();
        }
        self.poll_job();
    }

    /// Kills a shell whose terminal was hung up, also an idle one: input and output are impossible from then on, and
    /// the terminal would stay readable forever.
    fn kill_shell_without_terminal(&mut self) {
        if let Some(running) = &self.running {
            running.live.signal_shell(Signal::SIGKILL);
        }
    }

    /// Returns the time of the next timed action.
    fn next_due(&self) -> Option<Instant> {
        let state = self.shared.lock();
        if state.job.is_none() || self.running.is_none() {
            return self
                .unsaved_since
                .map(|since| since + limits::SNAPSHOT_IDLE);
        }
        let deadline = state.call.as_ref().and_then(|call| call.deadline);
        Some(deadline.map_or(self.next_scan, |at| at.min(self.next_scan)))
    }

    pub(crate) fn is_typing(&self) -> bool {
        let state = self.shared.lock();
        let input = state.call.as_ref().and_then(|call| call.input.as_ref());
        input.is_some_and(|input| !input.rest().is_empty())
    }

    fn read_snapshot(&mut self) {
        if let Some(running) = &self.running {
            self.collector.read(&running.child.snapshots);
            let mut state = self.shared.lock();
            if state.saved_at != self.collector.saved_at() {
                state.saved_at = self.collector.saved_at();
                state.snapshot = self.collector.last.clone();
            }
        }
    }

    /// Reads available output up to a limit: orders and time limits wait meanwhile.
    fn read_available(&mut self) {
        self.poll_mark_fifo();
        for _ in 0..limits::READS_IN_A_ROW {
            if !self.read_terminal() {
                return;
            }
        }
    }

    /// Reads output once, or accepts a pending mark. Returns true if there was any.
    pub(crate) fn read_terminal(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let live = running.live.clone();
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = read_some(&live.master, &mut buffer);
        self.accept_output(buffer.get(..count).unwrap_or_default(), &live);
        self.buffer = buffer;
        self.accept_due_mark(count, &live) || count > 0
    }

    /// Processes output.
    fn accept_output(&mut self, bytes: &[u8], live: &LiveShell) {
        if bytes.is_empty() {
            return;
        }
        self.hint_reader.push(bytes, &live.hints);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (used, mark) = self.send_output(rest, live);
            rest = rest.get(used..).unwrap_or_default();
            match mark {
                Some(mark) => self.command_ended(mark),
                None => self.reply_to_queries(live),
            }
        }
        self.reset_watch();
    }

    /// Reads the mark FIFO. Output that is on the terminal by now was printed before the mark.
    pub(crate) fn poll_mark_fifo(&mut self) {
        let Some(running) = &self.running else {
            return;
        };
        let mark = self.shared.lock().awaited_mark();
        self.mark_extractor.await_mark(mark);
        self.mark_fifo
            .poll(&running.live.marks, &self.mark_extractor, mark);
    }

    /// Accepts a pending mark if the output before it is read; returns true if it did.
    fn accept_due_mark(&mut self, count: usize, live: &LiveShell) -> bool {
        if !self.mark_fifo.is_pending() {
            return false;
        }
        let awaited = self.shared.lock().awaited_mark();
        let Some(mark) = self.mark_fifo.take_due(count, awaited) else {
            return false;
        };
        self.accept_output(&mark, live);
        self.poll_mark_fifo();
        true
    }

    /// Sends output up to the next mark to its receiver.
    fn send_output(&mut self, bytes: &[u8], live: &LiveShell) -> (usize, Option<Mark>) {
        let Self {
            shared,
            mark_extractor,
            tracker,
            ..
        } = self;
        let mut state = shared.lock();
        let job = state.job.as_ref().map(|job| job.number);
        let may_notify = state.job.as_ref().is_none_or(|job| job.may_notify);
        mark_extractor.await_mark(state.awaited_mark());
        tracker.follow(job, may_notify);
        if let Some(mut taken) = state.call.as_mut().and_then(CallSink::from_call) {
            drop(state);
            taken.send_earlier_output();
            let result = mark_extractor.push(bytes, &mut |output| {
                tracker.send_output(output, &live.master, &mut taken.sink);
            });
            taken.put_back(shared, tracker.is_full_screen());
            return result;
        }
        let Some(number) = job else {
            drop(state);
            return self.send_idle_output(bytes, live);
        };
        let Some(mut sink) = state.output_sink_of(number).and_then(Option::take) else {
            let result = mark_extractor.push(bytes, &mut |output| {
                tracker.send_output(output, &live.master, &mut |output| {
                    state.store_backlog(output)
                });
            });
            state.shows_screen = tracker.is_full_screen();
            return result;
        };
        drop(state);
        let result = mark_extractor.push(bytes, &mut |output| {
            tracker.send_output(output, &live.master, &mut sink);
        });
        let mut state = shared.lock();
        state.shows_screen = tracker.is_full_screen();
        // The sink of a job that has ended meanwhile is dropped.
        if let Some(place) = state.output_sink_of(number) {
            *place = Some(sink);
        }
        result
    }

    /// Sends output that is printed while no command runs to the idle sink.
    fn send_idle_output(&mut self, bytes: &[u8], live: &LiveShell) -> (usize, Option<Mark>) {
        let Self {
            shared,
            mark_extractor,
            tracker,
            ..
        } = self;
        let mut idle_sink = shared.idle_sink();
        let mut hand_on = |output: &[u8]| match idle_sink.as_mut() {
            Some(sink) => sink(output),
            None => shared.lock().store_backlog(output),
        };
        let result = mark_extractor.push(bytes, &mut |output| {
            tracker.send_output(output, &live.master, &mut hand_on);
        });
        shared.lock().shows_screen = tracker.is_full_screen();
        result
    }

    /// Types the terminal's replies to queries of the job, but not in the middle of other input.
    pub(crate) fn reply_to_queries(&mut self, live: &LiveShell) {
        if self.tracker.has_replies() && !self.is_typing() {
            self.tracker.send_replies(&live.master);
        }
    }

    /// Resets wait detection because the job made progress.
    pub(crate) fn reset_watch(&mut self) {
        self.watch = Watch::new();
        self.next_scan = Instant::now() + self.watch.pause();
    }

    /// Handles the mark of the running command.
    pub(crate) fn command_ended(&mut self, mut mark: Mark) {
        let returns_126 = |state: &State| state.job.as_ref().is_some_and(|job| job.may_return_126);
        let is_refused = mark.status == 126
            && (returns_126(&self.shared.lock()) || is_refusal(&self.tracker.tail()));
        mark.status = self.shared.dialect.exit_status(mark.status, is_refused);
        let Some(running) = &self.running else {
            return;
        };
        let live = &running.live;
        if live.fast_path.contradicts(&mark, &live.slave) {
            // Requested through the terminal's path, another mark shows what the shell can still do.
            live.fast_path.disable();
            return;
        }
        let place = running.live.input_location();
        let mut state = self.shared.lock();
        if !mark.lacks_values && !state.has_begun_script() && place == InputLocation::Stdin {
            match state.resend(live, self.shared.dialect) {
                Resubmission::Sent => return,
                Resubmission::Exhausted => {
                    // The next shell has neither its traps nor its prompts and functions.
                    self.has_input_thief = true;
                    live.signal_shell(Signal::SIGKILL);
                    return;
                }
                Resubmission::Refused => {}
            }
        }
        match (place, &mut state.job) {
            (_, None) => return,
            (InputLocation::Stdin, Some(job))
                if job.may_limit && live.lacks_descriptors() || live.has_lost_terminal() =>
            {
                job.verdict = Some(Verdict::Exited(mark, Instant::now()));
                return;
            }
            (InputLocation::Stdin, Some(_)) => {}
            // The script itself printed it: a mark comes when the script is done.
            (InputLocation::SetAside, Some(job)) => {
                job.early_mark = Some(mark);
                return;
            }
            (InputLocation::Lost, Some(job)) => {
                // The shell would never read the next command. The status in the mark stays valid.
                let patience = if job.is_repaired {
                    limits::REPAIR_TIMEOUT
                } else {
                    limits::NO_GRACE
                };
                job.verdict = Some(Verdict::Exited(mark, Instant::now() + patience));
                return;
            }
        }
        drop(state);
        self.complete(mark);
    }

    /// Ends the running command, whose shell is ready for the next one.
    pub(crate) fn complete(&mut self, mark: Mark) {
        let Some(running) = &self.running else {
            return;
        };
        running.child.reset_modes(&running.live);
        if self.tracker.has_replied() {
            // Replies the command has not read are not meant for the next one.
            running.live.flush_input();
        }
        self.tracker.follow(None, true);
        let live = running.live.clone();
        let (background, omitted) = self.background_jobs(&live);
        let Some(running) = &self.running else {
            return;
        };
        running.live.hints.reset();
        let mut has_stopped = running.live.has_stopped_child(mark.status);
        let dialect = self.shared.dialect;
        let mut state = self.shared.lock();
        let Some(job) = state.job.take() else {
            return;
        };
        if job.was_typed_to {
            running.live.flush_input();
        }
        let is_stop = job.may_hide_stop && mark.status == 0;
        has_stopped |= is_stop && background.iter().any(Background::has_stopped);
        let after = job.last_lines(mark.is_errexit, dialect);
        if !after.is_empty() {
            let _ = running.live.write_lines(&after);
        }
        state.cwd = match job.original_directory.clone() {
            Some(original_directory) if original_directory.is_dir() => original_directory,
            // The session's own directory is gone, so the shell stays where it is.
            Some(_) => mark.cwd,
            None if mark.cwd == state.cwd => mark.cwd,
            None => running.live.directory(mark.cwd),
        };
        let has_begun = state.has_begun_script();
        if mark.lacks_values {
            state.secrets.forget();
        } else if !has_begun {
            state.variables.forget();
        }
        state.was_in_other_directory =
            job.original_directory.is_some() || state.was_in_other_directory && !has_begun;
        state.last_status = mark.status;
        state.shows_screen = false;
        state.has_children = !self.known_children.is_empty();
        state.has_left_children |= state.has_children || job.may_leave;
        state.store_background(job.number, background, omitted);
        let answer = match mark.lacks_values {
            true => state.end_unrun_job(job.number, delivery::not_delivered()),
            false if !has_begun => state.end_unbegun_job(&job),
            false => state.end_job(job.number, mark.status, has_stopped),
        };
        drop(state);
        self.ended_at = Instant::now();
        self.unsaved_since = Some(self.ended_at);
        if let Some(answer) = answer {
            answer.send();
        }
    }

    /// Returns the background jobs of the running command, and the number of processes left out.
    fn background_jobs(&mut self, live: &LiveShell) -> (Vec<Background>, u64) {
        let (shell, known, claims) = (live.pid, &mut self.known_children, &self.claims);
        let (may_leave, may_leave_session) = self.shared.may_leave();
        let (mut left, omitted) = match live.fast_path.procfs.children() {
            Some(children) => background::new_jobs(shell, children, known, claims),
            None => background::new_jobs_without_children_list(shell, may_leave, known, claims),
        };
        if !may_leave {
            return (left, omitted);
        }
        // An earlier job claims the child it continues in before it counts as one of this command.
        self.followed.retain(WeakBackground::runs_on);
        self.followed.extend(left.iter().map(Background::downgrade));
        if !may_leave_session {
            return (left, omitted);
        }
        let (apart, more) = background::detached_jobs(shell, &left, self.ended_at, claims);
        left.extend(apart);
        (left, omitted + more)
    }

    /// Processes the orders of the session's owner. Orders after the one to close are dropped: they would start a
    /// shell that is never ended.
    fn process_orders(&mut self) {
        while !self.is_done {
            // One by one, so that a failing start ends as soon as the session is closed.
            let order = self.shared.lock().orders.pop_front();
            let Some(order) = order else {
                return;
            };
            match order {
                Order::Start(reply) => {
                    let _ = reply.send(self.start_again());
                }
                Order::Close(reply) => {
                    let ended = self.close();
                    // Before the reply: the program may exit as soon as it has it.
                    drop(self.directory.take());
                    let _ = reply.send(ended);
                    self.is_done = true;
                }
                Order::Abandon => {
                    self.abandon();
                    self.is_done = true;
                }
            }
        }
    }
}
