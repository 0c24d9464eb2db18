//! Ends a session: HUP, TERM and KILL to all its processes, one second apart.

use std::collections::HashSet;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::pending_call::Progress;
use crate::engine::restart::sleep_for_output;
use crate::process;
use crate::teardown::registry;

/// The signals that end a session, in this order.
const SIGNALS: [(Signal, &str); 3] = [
    (Signal::SIGHUP, "HUP"),
    (Signal::SIGTERM, "TERM"),
    (Signal::SIGKILL, "KILL"),
];

impl Engine {
    /// Ends every process of the session, one signal a second; returns the last signal sent, if a job ran.
    pub(crate) fn close(&mut self) -> Option<&'static str> {
        let state = self.shared.lock();
        let had_job = state.job.is_some();
        drop(state);
        if let Some(running) = &self.running
            && self.shared.dialect.ignores_hangup()
            && !had_job
            && process::own_children(running.live.pid).is_empty()
        {
            let _ = kill(Pid::from_raw(running.live.pid), Signal::SIGKILL);
        }
        if let Some(running) = &self.running
            && !process::are_shown()
        {
            // Most sessions have no other process, and querying every process for it takes long.
            running.live.signal_shell(Signal::SIGHUP);
            self.read_output_for(limits::UNSEEN_SHELL_GRACE);
        }
        let mut last = None;
        for (signal, name) in SIGNALS {
            let mut signalled = HashSet::new();
            if registry::signal_all(&self.spawn_config.tag, signal, &mut signalled) == 0 {
                break;
            }
            last = Some(name);
            self.shared.lock().last_signal = Some(name);
            if self.wait_until_gone(signal, signalled) {
                break;
            }
        }
        self.remove_shell();
        last.filter(|_| had_job)
    }

    /// Kills every process of the session at once.
    pub(crate) fn abandon(&mut self) {
        self.wait_until_gone(Signal::SIGKILL, HashSet::new());
        self.remove_shell();
    }

    fn wait_until_gone(&mut self, signal: Signal, mut signalled: HashSet<i32>) -> bool {
        let until = Instant::now()
            + match signal {
                Signal::SIGKILL => limits::KILL_TIMEOUT,
                _ => limits::SIGNAL_LADDER_STEP,
            };
        let mut pause = limits::WAIT_SCAN_MIN;
        // Twice, because a scan takes time and misses a process that changes its parent meanwhile.
        let mut has_seen_none = false;
        while Instant::now() < until {
            let is_none = registry::signal_all(&self.spawn_config.tag, signal, &mut signalled) == 0;
            if is_none && has_seen_none {
                return true;
            }
            has_seen_none = is_none;
            self.read_output_for(pause);
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        false
    }

    /// Reads output for a while, or until the shell has ended.
    fn read_output_for(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        while let Some(running) = &mut self.running
            && Instant::now() < until
        {
            let left = until.saturating_duration_since(Instant::now());
            if has_ended(&mut running.child.process) {
                registry::shell_reaped(running.live.pid);
                std::thread::sleep(left);
            } else {
                sleep_for_output(running, left);
                if has_ended(&mut running.child.process) {
                    return;
                }
            }
            self.collector.read(&running.child.snapshots);
            self.read_terminal();
        }
    }

    /// Removes the shell from the session.
    fn remove_shell(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.process.try_wait();
        }
        registry::unregister(&self.spawn_config.tag);
        let mut state = self.shared.lock();
        state.live = None;
        state.job = None;
        state.is_closed = true;
        state.reply(Ok(Progress::killed()));
    }
}
