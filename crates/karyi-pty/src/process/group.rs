//! A process group in the session of a shell. Signals reach all of its processes, and no others.

use std::collections::HashSet;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use karyi_core::limits;

use crate::process::{self, Process};

/// A process group of a shell's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    id: i32,
    /// The shell, whose id is that of its session.
    shell: i32,
}

impl Group {
    /// Creates a group from an id, unless a signal to it would reach this program or all processes.
    pub(crate) fn new(id: i32, shell: i32) -> Option<Self> {
        let is_usual = process::may_be_signalled(id) && shell > 1;
        is_usual.then_some(Self { id, shell })
    }

    /// Returns true if the shell itself is in it.
    pub(crate) fn is_of_shell(self) -> bool {
        self.id == self.shell
    }

    /// Signals all its processes once, including those started meanwhile.
    pub(crate) fn signal_all(self, signal: Signal) {
        if !process::are_shown() {
            let _ = self.signal_at_once(signal);
            let _ = self.signal_at_once(Signal::SIGCONT);
            return;
        }
        let mut reached = HashSet::new();
        for _ in 0..limits::MAX_SIGNALLING_SCANS {
            if self.signal_fresh(signal, &mut reached) == 0 {
                return;
            }
        }
    }

    /// Signals its present processes, if it belongs to the shell's session.
    ///
    /// # Errors
    /// It belongs to another session, or has ended.
    pub(crate) fn signal_at_once(self, signal: Signal) -> nix::Result<()> {
        if !process::is_in_session(self.id, self.shell) {
            return Err(Errno::ESRCH);
        }
        killpg(Pid::from_raw(self.id), signal)
    }

    /// Signals its present processes, even if a program took the terminal into another session.
    ///
    /// # Errors
    /// None of them is a descendant of the shell.
    pub(crate) fn signal_now(self, signal: Signal) -> nix::Result<()> {
        let Err(error) = self.signal_at_once(signal) else {
            return Ok(());
        };
        let mut is_any = false;
        for seen in &self.members(&process::tree().0) {
            is_any |= process::signal(seen, signal);
        }
        if is_any { Ok(()) } else { Err(error) }
    }

    /// Signals the processes that are not in `reached` yet; returns their number. Each is opened first, so that a
    /// reused pid is never signalled.
    pub(crate) fn signal_fresh(self, signal: Signal, reached: &mut HashSet<i32>) -> usize {
        let mut fresh = self.members(&process::tree().0);
        fresh.retain(|seen| !reached.contains(&seen.pid));
        let is_in_session = |seen: &Process| seen.session == self.shell;
        if signal == Signal::SIGKILL && fresh.iter().any(is_in_session) {
            // No fork succeeds in the group meanwhile, and its id is not reused while it has processes.
            let _ = killpg(Pid::from_raw(self.id), signal);
        }
        for seen in &fresh {
            process::signal(seen, signal);
            // A stopped process handles a signal only when it is continued.
            process::signal(seen, Signal::SIGCONT);
            reached.insert(seen.pid);
        }
        fresh.len()
    }

    /// Returns the processes that are in the group and run: those of the shell's session, or the descendants of the
    /// shell if a program took the terminal into another session.
    pub(crate) fn members(self, all: &[Process]) -> Vec<Process> {
        let below = process::belonging(all, &[], &[self.shell]);
        let is_own = |seen: &Process| seen.session == self.shell || below.contains(&seen.pid);
        let is_member =
            |seen: &&Process| seen.group == self.id && is_own(seen) && !seen.is_zombie();
        all.iter().filter(is_member).copied().collect()
    }
}

/// Returns the `roots` and their descendants, in any group.
pub(crate) fn below(all: &[Process], roots: &[i32]) -> Vec<Process> {
    let below = process::belonging(all, &[], roots);
    let is_below = |seen: &&Process| below.contains(&seen.pid);
    all.iter().filter(is_below).copied().collect()
}

/// Ends the processes that survive their job, such as servers it started in the background, and their descendants:
/// with TERM, and after one step with KILL.
pub(crate) fn end_survivors(known: &[Process]) {
    let start = Instant::now();
    let mut reached = HashSet::new();
    let mut pause = limits::WAIT_SCAN_MIN;
    loop {
        let left = survivors(known);
        if left.is_empty() {
            return;
        }
        let is_late = start.elapsed() >= limits::JOB_LADDER_STEP;
        for seen in &left {
            if is_late {
                process::signal(seen, Signal::SIGKILL);
            } else if reached.insert(seen.pid) {
                process::signal(seen, Signal::SIGTERM);
                process::signal(seen, Signal::SIGCONT);
            }
        }
        if is_late {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
    }
}

/// Returns those that run, and their descendants.
fn survivors(known: &[Process]) -> Vec<Process> {
    let is_alive = |seen: &&Process| {
        process::find(seen.pid).is_some_and(|now| now.is_same(seen) && !now.is_zombie())
    };
    let roots: Vec<i32> = known.iter().filter(is_alive).map(|seen| seen.pid).collect();
    if roots.is_empty() {
        return Vec::new();
    }
    let mut left = below(&process::tree().0, &roots);
    left.retain(|seen| !seen.is_zombie());
    left
}

#[cfg(test)]
mod tests {
    use nix::unistd::getpgrp;

    use super::*;

    #[test]
    fn own_and_universal_groups_are_refused() {
        let own = getpgrp().as_raw();
        for id in [own, 1, 0, -1, i32::MIN] {
            assert_eq!(Group::new(id, 4_000_000), None, "{id}");
        }
        for shell in [1, 0, -1] {
            assert_eq!(Group::new(4_000_001, shell), None, "{shell}");
        }
    }

    /// The foreground group of a terminal whose shell has ended is 0, or there is none.
    #[test]
    fn a_terminal_whose_shell_is_gone_has_no_group_to_signal() {
        let pair = nix::pty::openpty(None, None).unwrap();
        let raw = nix::unistd::tcgetpgrp(&pair.master).map_or(0, Pid::as_raw);
        assert_eq!((raw, Group::new(raw, 4_000_000)), (0, None));
    }

    /// The test creates a session: its own may be 0 or 1 in containers.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_group_of_another_session_is_left_alone() {
        use std::io::Read as _;
        let mut command = std::process::Command::new("setsid");
        command
            .args(["sh", "-c", "echo; exec sleep 100"])
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let foreign = Group::new(id, 4_000_000).unwrap();
        foreign.signal_all(Signal::SIGKILL);
        assert!(!process::is_in_session(id, 4_000_000));
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(process::is_in_session(id, id));
        Group::new(id, id).unwrap().signal_all(Signal::SIGKILL);
        assert!(!child.wait().unwrap().success());
    }
}
