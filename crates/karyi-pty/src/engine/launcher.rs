//! Spawns the shells of a session, one after the other.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use karyi_core::error::{ErrorCode, ToolError};

use crate::host::error_hints;
use crate::process;
use crate::session::options::ForkState;
use crate::shell::Dialect;
use crate::shell::snapshot::Snapshot;
use crate::teardown::registry;
use crate::terminal::directory::nearest_enterable;
use crate::terminal::live_shell::{LiveShell, ShellChild, Size};
use crate::terminal::script_file::ScriptFile;
use crate::terminal::spawn::SpawnConfig;

/// A running shell and its handles.
pub(crate) struct RunningShell {
    pub(crate) live: Arc<LiveShell>,
    pub(crate) child: ShellChild,
}

/// Configuration of the shells of a session, and lessons from the earlier ones.
pub(crate) struct ShellLauncher {
    config: SpawnConfig,
    /// Time limit of the user's start-up files; `None` if none are read.
    rc_limit: Option<Duration>,
    /// State for the first shell.
    fork_state: Option<ForkState>,
    /// True if something that a script has defined read the input of the last shell.
    avoids_functions: bool,
    directory: Option<tempfile::TempDir>,
}

impl ShellLauncher {
    /// Creates a launcher of shells whose files are in a directory.
    pub(crate) fn new(
        config: SpawnConfig,
        rc_limit: Option<Duration>,
        fork_state: Option<ForkState>,
        directory: tempfile::TempDir,
    ) -> Self {
        Self {
            config,
            rc_limit,
            fork_state,
            avoids_functions: false,
            directory: Some(directory),
        }
    }

    /// Takes the state for the first shell.
    pub(crate) fn take_fork_state(&mut self) -> Option<ForkState> {
        self.fork_state.take()
    }

    /// Returns the time limit of the user's start-up files; `None` if none are read.
    pub(crate) fn rc_limit(&self) -> Option<Duration> {
        self.rc_limit
    }

    /// Starts all further shells without the user's start-up files; returns false if that was decided before.
    pub(crate) fn avoid_startup_files(&mut self) -> bool {
        self.rc_limit.take().is_some()
    }

    /// Starts the next shell without the functions of the last one.
    pub(crate) fn avoid_functions(&mut self) {
        self.avoids_functions = true;
    }

    /// Returns the part of a snapshot that the next shell gets.
    pub(crate) fn usable(&mut self, snapshot: Option<Snapshot>) -> Option<Snapshot> {
        match std::mem::take(&mut self.avoids_functions) {
            // A function that reads between two commands would do so again.
            true => snapshot.map(|whole| whole.environment_only()),
            false => snapshot,
        }
    }

    /// Creates the session's files, and the FIFO for the snapshots of a running shell.
    ///
    /// # Errors
    /// The directory cannot be created or takes no files.
    pub(crate) fn restore_files(
        &self,
        running: Option<&mut RunningShell>,
    ) -> Result<ScriptFile, ToolError> {
        let restored = self.config.write_files().and_then(|script| {
            if let Some(running) = running {
                running.child.snapshots = self.config.make_snapshot_fifo()?;
            }
            Ok(script)
        });
        restored.map_err(|error| {
            let what = "the session's files are gone and could not be created again";
            error_hints::failed(format!("{what}: {error}"), &error)
        })
    }

    /// Removes the session's files.
    pub(crate) fn remove_files(&mut self) {
        self.directory = None;
    }

    /// Spawns a shell in a directory, or the nearest one that can be entered.
    ///
    /// # Errors
    /// The system cannot create a terminal, a FIFO or a process.
    pub(crate) fn spawn(&self, cwd: &Path, size: Size) -> Result<RunningShell, ToolError> {
        let place = nearest_enterable(cwd);
        let spawned = registry::spawn_registered(&self.config.tag, || {
            let spawned = self.config.spawn(place, size);
            spawned.map(|(live, child)| (live.pid, (live, child)))
        });
        let (live, child) = spawned.map_err(|error| {
            let reason = match error_hints::is_unrelated_to_directory(&error) {
                true => error.to_string(),
                false => format!("{error} (in the directory {})", place.display()),
            };
            error_hints::failed(not_started(&reason), &error)
        })?;
        let live = Arc::new(live);
        Ok(RunningShell { live, child })
    }

    /// Returns the commands that restore a snapshot, which may come from another session.
    pub(crate) fn restore_commands(&self, snapshot: &Snapshot, dialect: &dyn Dialect) -> Vec<u8> {
        let mut commands = snapshot.restore_commands(dialect, &self.config.variables());
        commands.extend(self.config.tag_line().into_bytes());
        commands
    }
}

impl RunningShell {
    /// Sleeps until the shell prints or ends, for `pause` at most.
    pub(crate) fn wait_for_output(&self, pause: Duration) {
        let mut polled = vec![
            PollFd::new(self.live.master.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.child.snapshots.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(process) = &self.live.process {
            polled.push(PollFd::new(process.as_fd(), PollFlags::POLLIN));
        }
        let pause = PollTimeout::try_from(pause.as_micros().div_ceil(1000));
        let _ = nix::poll::poll(&mut polled, pause.unwrap_or(PollTimeout::MAX));
    }

    /// Returns true if the shell has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let ended = self.child.process.try_wait();
        ended.is_ok_and(|status| status.is_some())
    }

    /// Kills a shell that did not start, with all it started.
    pub(crate) fn kill(&mut self) {
        // Background jobs of an earlier shell run on.
        let (all, _) = process::tree();
        for pid in process::belonging(&all, &[self.live.pid], &[]) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.process.wait();
        registry::shell_reaped(self.live.pid);
    }
}

/// Returns the error of a shell that did not start.
pub(crate) fn start_error(reason: &str) -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, not_started(reason))
}

fn not_started(reason: &str) -> String {
    format!("the shell could not be started: {reason}")
}
