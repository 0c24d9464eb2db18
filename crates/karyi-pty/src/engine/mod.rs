//! The thread of a session: reads the terminal, ends calls, restarts the shell.
//!
//! It sleeps in one `poll` for output, snapshots, the end of the shell and orders. It decides from the state it shares
//! with callers; the state is never locked while a sink runs or processes are scanned.

pub(crate) mod alarm;
pub mod background;
pub(crate) mod background_finder;
mod command_end;
mod history;
pub(crate) mod job;
pub(crate) mod job_lines;
pub(crate) mod job_start;
pub(crate) mod job_watch;
pub(crate) mod launcher;
mod notices;
pub(crate) mod observation;
pub(crate) mod output;
pub(crate) mod pending_call;
pub(crate) mod poll;
mod reply;
mod restart;
mod screen_tracker;
mod shutdown;
mod start;
pub(crate) mod state;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::Signal;

use karyi_core::limits;

use crate::engine::background_finder::BackgroundFinder;
use crate::engine::job_watch::JobWatch;
use crate::engine::launcher::{RunningShell, ShellLauncher};
use crate::engine::output::Output;
use crate::engine::state::{Order, Shared};
use crate::shell::snapshot::SnapshotCollector;
use crate::terminal::live_shell::LiveShell;

/// The thread's half of a session.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) running: Option<RunningShell>,
    pub(crate) output: Output,
    pub(crate) watch: JobWatch,
    pub(crate) snapshots: SnapshotCollector,
    pub(crate) background: BackgroundFinder,
    /// The time of the last reaping of orphans.
    pub(crate) reaped_at: Instant,
    pub(crate) is_done: bool,
    // Last, because the files of the shell must outlive everything that uses them.
    pub(crate) launcher: ShellLauncher,
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
        let is_typing = self.shared.lock().is_typing();
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
        if events.has_output || self.output.has_pending_mark() {
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
            return self.snapshots.due_at();
        }
        let scan = self.watch.next_scan();
        let deadline = state.call.as_ref().and_then(|call| call.deadline);
        Some(deadline.map_or(scan, |at| at.min(scan)))
    }

    fn read_snapshot(&mut self) {
        if let Some(running) = &self.running {
            self.snapshots.read(&running.child.snapshots);
            self.shared.lock().snapshots.last = self.snapshots.last.clone();
        }
    }

    /// Reads available output up to a limit: orders and time limits wait meanwhile.
    fn read_available(&mut self) {
        self.poll_marks();
        for _ in 0..limits::READS_IN_A_ROW {
            if !self.read_terminal() {
                return;
            }
        }
    }

    /// Reads the mark FIFO.
    pub(crate) fn poll_marks(&mut self) {
        if let Some(running) = &self.running {
            self.output.poll_marks(&self.shared, &running.live);
        }
    }

    /// Reads output once, or accepts a pending mark. Returns true if there was any.
    pub(crate) fn read_terminal(&mut self) -> bool {
        let Some(live) = self.running.as_ref().map(|running| running.live.clone()) else {
            return false;
        };
        let count = self.output.read(&live);
        self.send_output(&live);
        if !self.output.take_due_mark(count, &self.shared, &live) {
            return count > 0;
        }
        self.send_output(&live);
        self.poll_marks();
        true
    }

    /// Sends what was read, and acts on the marks in it.
    fn send_output(&mut self, live: &LiveShell) {
        if !self.output.has_unsent() {
            return;
        }
        while self.output.has_unsent() {
            match self.output.send(&self.shared, live) {
                Some(mark) => self.command_ended(mark),
                None => self.reply_to_queries(live),
            }
        }
        self.watch.reset();
    }

    /// Types the terminal's replies to queries of the job, but not in the middle of other input.
    pub(crate) fn reply_to_queries(&mut self, live: &LiveShell) {
        if !self.shared.lock().is_typing() {
            self.output.reply_to_queries(live);
        }
    }

    /// Processes the orders of the session's owner. Orders after the one to close are dropped: they would start a
    /// shell that is never ended.
    fn process_orders(&mut self) {
        while !self.is_done {
            // One by one, so that a failing start ends as soon as the session is closed.
            let order = self.shared.lock().owner.orders.pop_front();
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
                    self.launcher.remove_files();
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
