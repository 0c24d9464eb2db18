//! What a session tells about a job that no call waits for, and what it passes on to a shell that is
//! started beside it.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use nix::unistd::tcgetpgrp;
use tokio::sync::oneshot;

use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::engine::background::Background;
use crate::engine::pending_call::Sink;
use crate::process;
use crate::session::Session;
use crate::session::options::ForkState;
use crate::shell::snapshot::OWN_VARIABLES;
use crate::teardown::registry::{self, TAG_VARIABLE};
use crate::terminal::live_shell::LiveShell;
use karyi_core::shell_word::quote_bytes;

impl Session {
    /// Returns the number of the job that holds the terminal.
    #[must_use]
    pub fn job(&self) -> Option<u64> {
        self.shared().lock().job.as_ref().map(|job| job.number)
    }

    /// Returns the number of the job that was started last, whether it still runs or not.
    #[must_use]
    pub fn newest_job(&self) -> u64 {
        self.shared().lock().newest_job
    }

    /// Returns the exit status of a job that ended while no call waited for it, or whose call has
    /// been told.
    #[must_use]
    pub fn exit_status(&self, job: u64) -> Option<i32> {
        let state = self.shared().lock();
        let found = state.ended.iter().rev().find(|(number, _)| *number == job);
        found.map(|(_, status)| *status)
    }

    /// Takes what commands left in the background since this was last asked, with the number of the
    /// job that left it.
    #[must_use]
    pub fn take_background(&self) -> Vec<(u64, Background)> {
        std::mem::take(&mut self.shared().lock().background).into()
    }

    /// Returns true if the job that was started last has left something in the background that nobody has
    /// taken yet.
    #[must_use]
    pub fn has_unclaimed_background(&self) -> bool {
        let state = self.shared().lock();
        let mut left = state.background.iter();
        left.any(|(number, _)| *number == state.newest_job)
    }

    /// Returns how many processes in the background are not kept account of, since this was last
    /// asked.
    #[must_use]
    pub fn take_omitted_background(&self) -> u64 {
        std::mem::take(&mut self.shared().lock().omitted_background)
    }

    /// Returns true if anything runs in the session beside its shell, daemons too.
    #[must_use]
    pub fn has_others(&self) -> bool {
        registry::count_running(&self.shared().tag) > 1
    }

    /// Returns the last signal that was needed to end the session.
    #[must_use]
    pub fn last_signal(&self) -> Option<&'static str> {
        self.shared().lock().last_signal
    }

    /// Returns what the job in the foreground does; nothing when none runs. The session's thread
    /// looks afresh, unless it is busy for long; then it is what was seen last.
    pub async fn job_status(&self) -> Option<Status> {
        let (reply, looked) = oneshot::channel();
        {
            let mut state = self.shared().lock();
            state.job.as_ref()?;
            state.observation.waiters.push(reply);
        }
        self.shared().wake();
        let _ = tokio::time::timeout(limits::LOOK_ANSWER_TIMEOUT, looked).await;
        let state = self.shared().lock();
        let number = state.job.as_ref()?.number;
        Some(state.observation.status_of(number))
    }

    /// Returns how often the session's thread has looked at what its jobs do.
    #[must_use]
    pub fn scan_count(&self) -> u64 {
        self.shared().lock().observation.scans
    }

    /// Returns the process group in the foreground of the terminal.
    #[must_use]
    pub fn foreground_group(&self) -> Option<i32> {
        let live = self.shared().lock().live.clone()?;
        Some(tcgetpgrp(&live.master).ok()?.as_raw())
    }

    /// Gives what is printed while no command runs to `sink` from now on; without one it is kept, up
    /// to a limit, for the next call.
    pub fn set_idle_sink(&self, sink: Option<Sink>) {
        let mut idle_sink = self.shared().idle_sink();
        *idle_sink = sink;
        if let Some(sink) = idle_sink.as_mut() {
            let earlier = std::mem::take(&mut self.shared().lock().backlog);
            sink(&earlier);
        }
    }

    /// Returns what a shell beside this one begins with: its directory, its environment as its
    /// foreground job has it, and its functions, aliases and options as of the last snapshot.
    #[must_use]
    pub fn fork_state(&self) -> ForkState {
        let state = self.shared().lock();
        let (live, cwd) = (state.live.clone(), state.cwd.clone());
        let snapshot = state.snapshot.clone();
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
            snapshot,
            exports,
        }
    }

    /// Returns how old the snapshot is that a fork_state takes functions and options from.
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        self.saved_at().map(|at: Instant| at.elapsed())
    }
}

/// Returns the environment of the job's newest process that has it from its shell.
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

/// Returns the commands that set every variable of an environment.
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
