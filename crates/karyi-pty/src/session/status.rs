//! State of a session outside of calls: jobs, background jobs, and the state that a forked session takes over.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use nix::unistd::tcgetpgrp;
use tokio::sync::oneshot;

use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::shell_word::quote_bytes;

use crate::engine::background::Background;
use crate::engine::pending_call::Sink;
use crate::process;
use crate::session::Session;
use crate::session::options::ForkState;
use crate::shell::description::OVERRIDABLE;
use crate::shell::snapshot::OWN_VARIABLES;
use crate::teardown::registry::{self, TAG_VARIABLE};
use crate::terminal::live_shell::LiveShell;

impl Session {
    /// Returns the number of the job that holds the terminal.
    #[must_use]
    pub fn job(&self) -> Option<u64> {
        self.shared().lock().job.as_ref().map(|job| job.number)
    }

    /// Returns the number of the job that was started last, even if it has ended.
    #[must_use]
    pub fn newest_job(&self) -> u64 {
        self.shared().lock().history.newest()
    }

    /// Returns the exit status of an ended job.
    #[must_use]
    pub fn exit_status(&self, job: u64) -> Option<i32> {
        self.shared().lock().history.exit_status(job)
    }

    /// Takes the new background jobs, each with the number of the job that left it.
    #[must_use]
    pub fn take_background(&self) -> Vec<(u64, Background)> {
        self.shared().lock().history.take_background()
    }

    /// Returns true if the job that was started last has left a background job that was not taken yet.
    #[must_use]
    pub fn has_unclaimed_background(&self) -> bool {
        self.shared().lock().history.has_fresh_background()
    }

    /// Takes the number of new background processes that are not tracked.
    #[must_use]
    pub fn take_omitted_background(&self) -> u64 {
        self.shared().lock().history.take_omitted()
    }

    /// Returns true if the session has processes besides its shell, including daemons.
    #[must_use]
    pub fn has_others(&self) -> bool {
        registry::count_running(&self.shared().tag) > 1
    }

    /// Returns the last signal that was needed to end the session.
    #[must_use]
    pub fn last_signal(&self) -> Option<&'static str> {
        self.shared().lock().owner.last_signal
    }

    /// Returns the state of the job in the foreground, or `None` when none runs. The session's thread makes a new
    /// scan; if it is busy for long, the last observed state is returned.
    pub async fn job_status(&self) -> Option<Status> {
        let (reply, looked) = oneshot::channel();
        {
            let mut state = self.shared().lock();
            state.job.as_ref()?;
            state.seen.observation.waiters.push(reply);
        }
        self.shared().alarm.ring();
        let _ = tokio::time::timeout(limits::STATUS_SCAN_TIMEOUT, looked).await;
        let state = self.shared().lock();
        let number = state.job.as_ref()?.number;
        Some(state.seen.observation.status_of(number))
    }

    /// Returns true if the terminal collects a line without showing it, as for a password.
    #[must_use]
    pub fn hides_typing(&self) -> bool {
        let live = self.shared().lock().shell.live.clone();
        live.is_some_and(|live| live.watched_terminal().hides_line())
    }

    /// Waits while the job in the foreground works, or accepts input without need, until a time at most.
    pub async fn wait_while_at_work(&self, until: Instant) {
        while Instant::now() < until
            && matches!(
                self.job_status().await,
                Some(Status::AcceptsInput | Status::Running)
            )
        {
            tokio::time::sleep(limits::WAIT_SCAN_DETACHED).await;
        }
    }

    /// Returns the number of scans so far.
    #[must_use]
    pub fn scan_count(&self) -> u64 {
        self.shared().lock().seen.observation.scans
    }

    /// Returns the process group in the foreground of the terminal.
    #[must_use]
    pub fn foreground_group(&self) -> Option<i32> {
        let live = self.shared().lock().shell.live.clone()?;
        Some(tcgetpgrp(&live.master).ok()?.as_raw())
    }

    /// Sets the sink for output while no command runs; without one it is stored, up to a limit, for the next call.
    pub fn set_idle_sink(&self, sink: Option<Sink>) {
        let mut idle_sink = self.shared().idle_sink();
        *idle_sink = sink;
        if let Some(sink) = idle_sink.as_mut() {
            let earlier_output = std::mem::take(&mut self.shared().lock().backlog);
            sink(&earlier_output);
        }
    }

    /// Returns the state for a forked session: directory, the environment of the job in the foreground, and functions,
    /// aliases and options of the last snapshot.
    #[must_use]
    pub fn fork_state(&self) -> ForkState {
        let state = self.shared().lock();
        let (live, cwd) = (state.shell.live.clone(), state.shell.cwd.clone());
        let snapshot = state.snapshots.last.clone();
        let skips_rc = state.shell.rc_failure.is_some();
        drop(state);
        let mut exports = Vec::new();
        let (mut place, mut is_there) = (cwd.clone(), true);
        if let Some(live) = live {
            let environment = environment_of_job(&live, &self.shared().tag);
            exports = environment.map_or_else(Vec::new, |bytes| self::exports(&bytes));
            place = live.directory(cwd);
            is_there = !live.is_directory_deleted();
        }
        ForkState {
            cwd: place,
            is_there,
            skips_rc,
            snapshot,
            exports,
        }
    }

    /// Returns the age of the snapshot in [`Session::fork_state`].
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        self.saved_at().map(|at| at.elapsed())
    }
}

/// Returns the environment of the newest process of the job that inherited it from this shell.
fn environment_of_job(live: &LiveShell, tag: &str) -> Option<Vec<u8>> {
    let group = tcgetpgrp(&live.master).ok()?.as_raw();
    let own = format!("{TAG_VARIABLE}={tag}");
    let mut children = process::own_children(live.pid);
    children.reverse();
    let members = children
        .into_iter()
        .filter(|pid| process::find(*pid).is_some_and(|process| process.group == group));
    let mut environments = members.filter_map(process::environment);
    environments.find(|bytes| {
        let mut variables = bytes.split(|byte| *byte == 0);
        variables.any(|variable| variable == own.as_bytes())
    })
}

/// Returns commands that export what a shell has exported that does not end its start-up files, as far as a program
/// that it runs shows it. The setup sets the rest.
pub(crate) fn exports_during_setup(live: &LiveShell, tag: &str) -> Vec<u8> {
    let environment = environment_of_job(live, tag).unwrap_or_default();
    let is_kept = |variable: &&[u8]| {
        let name = variable.split(|byte| *byte == b'=').next();
        !OVERRIDABLE.iter().any(|own| name == Some(own.as_bytes()))
    };
    let variables = environment.split(|byte| *byte == 0).filter(is_kept);
    exports(&variables.collect::<Vec<_>>().join(&0))
}

/// Returns commands that export every variable of an environment.
fn exports(environment: &[u8]) -> Vec<u8> {
    let mut commands = Vec::new();
    for variable in environment.split(|byte| *byte == 0) {
        let Some(equals) = memchr::memchr(b'=', variable) else {
            continue;
        };
        let (name, value) = variable.split_at(equals);
        let is_own = OWN_VARIABLES.contains(&name) || name == TAG_VARIABLE.as_bytes();
        if is_name(name) && !is_own {
            let value = value.get(1..).unwrap_or_default();
            commands.extend_from_slice(b"\\export ");
            commands.extend_from_slice(name);
            commands.push(b'=');
            commands.extend(quote_bytes(std::ffi::OsStr::from_bytes(value)));
            commands.push(b'\n');
        }
    }
    commands
}

fn is_name(name: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_becomes_commands() {
        let environment =
            b"A=1\0PWD=/x\0B=it's\nso\0BASH_FUNC_f%%=() {\0KARYI_SESSION=t\0E=\0=x\0\0";
        let expected = "\\export A='1'\n\\export B='it'\\''s\nso'\n\\export E=''\n";
        let commands = String::from_utf8(exports(environment)).unwrap();
        assert_eq!(commands, expected);
    }
}
