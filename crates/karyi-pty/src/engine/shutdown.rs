//! Ends a session: HUP, TERM and KILL to all its processes. Jobs come first and the shell last, and each may finish its
//! traps.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::pending_call::Progress;
use crate::process;
use crate::teardown::registry::{self, SignalRound};

/// The signals that end a session, in this order.
const SIGNALS: [(Signal, &str); 3] = [
    (Signal::SIGHUP, "HUP"),
    (Signal::SIGTERM, "TERM"),
    (Signal::SIGKILL, "KILL"),
];

impl Engine {
    /// Ends every process of the session; returns the last signal sent, if a job ran.
    pub(crate) fn close(&mut self) -> Option<&'static str> {
        let state = self.shared.lock();
        let had_job = state.job.is_some();
        drop(state);
        let jobs_until = Instant::now() + limits::TRAP_GRACE;
        let mut round = SignalRound::new(Signal::SIGHUP);
        self.end_jobs_before_shell(&mut round, jobs_until);
        self.let_shell_end(had_job);
        let mut last = None;
        for (signal, name) in SIGNALS {
            if round.signal != signal {
                round = SignalRound::new(signal);
            }
            if registry::signal_all(&self.shared.tag, &mut round).count == 0 {
                break;
            }
            last = Some(name);
            self.shared.lock().owner.last_signal = Some(name);
            if self.wait_until_gone(&mut round, jobs_until) {
                break;
            }
        }
        self.remove_shell();
        last.filter(|_| had_job)
    }

    /// Kills every process of the session at once.
    pub(crate) fn abandon(&mut self) {
        let mut round = SignalRound::new(Signal::SIGKILL);
        self.wait_until_gone(&mut round, Instant::now());
        self.remove_shell();
    }

    /// Signals the jobs and waits until they have ended, while the shell is stopped: it must not go on with the next
    /// command of its script, and the kernel sends HUP to the foreground job again when the shell ends.
    fn end_jobs_before_shell(&mut self, round: &mut SignalRound, until: Instant) {
        let Some(live) = self.running.as_ref().map(|running| running.live.clone()) else {
            return;
        };
        let tag = self.shared.tag.clone();
        if !process::are_shown()
            || registry::processes(&tag)
                .iter()
                .all(|seen| seen.pid == live.pid)
        {
            return;
        }
        self.shared.lock().owner.last_signal = Some("HUP");
        live.signal_shell(Signal::SIGSTOP);
        round.held_back = Some(live.pid);
        let mut pause = limits::WAIT_SCAN_MIN;
        while registry::signal_all(&tag, round).may_end && Instant::now() < until {
            self.read_output_for(pause);
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        round.held_back = None;
    }

    /// Lets an idle shell exit by itself if HUP would end it without its EXIT trap.
    fn let_shell_end(&mut self, has_job: bool) {
        let Some(live) = self.running.as_ref().map(|running| running.live.clone()) else {
            return;
        };
        if !has_job && !self.shared.dialect.runs_exit_trap_on_hangup() {
            live.signal_shell(Signal::SIGCONT);
            if live.write_lines(b"\\exit\n").is_ok() {
                self.read_output_for(limits::TRAP_GRACE);
            }
        } else if !process::are_shown() {
            // Most sessions have no other process, and querying every process for it takes long.
            live.signal_shell(Signal::SIGHUP);
            self.read_output_for(limits::UNSEEN_SHELL_GRACE);
        }
    }

    /// Repeats a round until every process has ended, or for a limited time; returns true if they have. The time of
    /// the jobs may be up while the shell still has some.
    fn wait_until_gone(&mut self, round: &mut SignalRound, jobs_until: Instant) -> bool {
        let until = Instant::now()
            + match round.signal {
                Signal::SIGKILL => limits::KILL_TIMEOUT,
                Signal::SIGHUP => limits::TRAP_GRACE,
                _ => limits::SIGNAL_LADDER_STEP,
            };
        let mut pause = limits::WAIT_SCAN_MIN;
        // Twice, because a scan takes time and misses a process that changes its parent meanwhile.
        let mut has_seen_none = false;
        while Instant::now() < until {
            let left = registry::signal_all(&self.shared.tag, round);
            let is_none = left.count == 0;
            let is_late = round.signal == Signal::SIGHUP && Instant::now() >= jobs_until;
            if !is_none && (!left.may_end || is_late && !self.has_shell()) {
                return false;
            }
            if is_none && (has_seen_none || registry::has_no_children()) {
                return true;
            }
            has_seen_none = is_none;
            self.read_output_for(pause);
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        false
    }

    fn has_shell(&self) -> bool {
        let shell = self.running.as_ref().map(|running| running.live.pid);
        let found = shell.and_then(process::find);
        found.is_some_and(|shell| !shell.is_zombie())
    }

    /// Reads output for a while, or until the shell has ended.
    fn read_output_for(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        while let Some(running) = &mut self.running
            && Instant::now() < until
        {
            let left = until.saturating_duration_since(Instant::now());
            if running.has_ended() {
                registry::shell_reaped(running.live.pid);
                std::thread::sleep(left);
            } else {
                running.wait_for_output(left);
                if running.has_ended() {
                    return;
                }
            }
            self.snapshots.read(&running.child.snapshots);
            self.read_terminal();
        }
    }

    /// Removes the shell from the session.
    fn remove_shell(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.process.try_wait();
        }
        registry::unregister(&self.shared.tag);
        let mut state = self.shared.lock();
        state.shell.live = None;
        state.job = None;
        state.owner.is_closed = true;
        state.reply(Ok(Progress::killed()));
    }
}
