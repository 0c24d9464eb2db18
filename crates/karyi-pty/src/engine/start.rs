//! Starts a shell with the state it begins with, and puts it into service after its first mark.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::launcher::{RunningShell, start_error};
use crate::engine::state::Order;
use crate::session::status;
use crate::shell::command_lines::RESTORE_ENV_LINE;
use crate::shell::secrets::{ShellVariables, assignments};
use crate::shell::snapshot::{Snapshot, SnapshotFeeder};
use crate::teardown::registry;
use crate::terminal::marks::Mark;

/// State that a new shell begins with.
#[derive(Clone, Copy)]
struct InitialState<'a> {
    cwd: &'a Path,
    /// Snapshot of an earlier shell.
    snapshot: Option<&'a Snapshot>,
    /// Commands that follow those of the snapshot.
    exports: &'a [u8],
    rc_limit: Option<Duration>,
}

/// Reason why a shell has not started: it is still busy.
const NO_ANSWER: &str = "it did not answer in time";

impl Engine {
    /// Starts the first shell.
    ///
    /// # Errors
    /// `session_failed` when it does not answer, not even without the user's start-up files.
    pub(crate) fn start(&mut self) -> Result<(), ToolError> {
        let cwd = self.shared.lock().shell.cwd.clone();
        match self.launcher.take_fork_state() {
            Some(fork_state) => {
                self.start_shell(&cwd, fork_state.snapshot.as_ref(), &fork_state.exports)
            }
            None => self.start_shell(&cwd, None, &[]),
        }
    }

    /// Starts a shell with all saved state; if that fails, without the user's start-up files, then with no state at
    /// all.
    pub(super) fn start_shell(
        &mut self,
        cwd: &Path,
        snapshot: Option<&Snapshot>,
        exports: &[u8],
    ) -> Result<(), ToolError> {
        let more = snapshot.map_or(limits::NO_GRACE, |_| limits::RESTORE_TIMEOUT);
        let mut initial = InitialState {
            exports,
            cwd,
            snapshot,
            rc_limit: self.launcher.rc_limit(),
        };
        let mut kept = Vec::new();
        if initial.rc_limit.is_some() {
            let Err((error, exported)) = self.try_start(initial, limits::SETUP_TIMEOUT + more)
            else {
                return Ok(());
            };
            // The start-up files are not tried twice: they would cost their time limit at every restart.
            self.launcher.avoid_startup_files();
            let (name, why) = (&self.shared.name, error.message);
            let note = format!("{name} runs without its start-up files, with which {why}");
            self.shared.lock().shell.rc_failure = Some(note);
            kept = exported;
        }
        initial.rc_limit = None;
        if snapshot.is_none() && exports.is_empty() {
            initial.exports = &kept;
        }
        let first = self.try_start_plain(initial, limits::SHELL_START_TIMEOUT + more);
        if first.is_ok() || snapshot.is_none() || self.is_ordered_to_end() {
            return first;
        }
        initial.snapshot = None;
        initial.exports = &[];
        self.try_start_plain(initial, limits::SHELL_START_TIMEOUT)
    }

    /// Starts a shell without the user's start-up files.
    fn try_start_plain(
        &mut self,
        initial: InitialState<'_>,
        limit: Duration,
    ) -> Result<(), ToolError> {
        self.try_start(initial, limit).map_err(|(error, _)| error)
    }

    /// Starts a shell; else returns the error, and commands that export what a shell that is still busy has exported.
    fn try_start(
        &mut self,
        initial: InitialState<'_>,
        limit: Duration,
    ) -> Result<(), (ToolError, Vec<u8>)> {
        let size = self.shared.lock().shell.size;
        let spawned = self.restore_files();
        let spawned = spawned.and_then(|()| self.launcher.spawn(initial.cwd, size));
        let mut running = spawned.map_err(|error| (error, Vec::new()))?;
        match self.initialize(&mut running, initial, limit) {
            Ok(_) if initial.rc_limit.is_some() && running.live.lacks_descriptors() => {
                running.kill();
                let error = start_error(&format!(
                    "they leave it fewer than {} descriptors (`ulimit -n`)",
                    limits::MIN_SHELL_DESCRIPTORS
                ));
                Err((error, Vec::new()))
            }
            Ok(mark) => {
                running.live.note_program();
                self.put_into_service(running, mark);
                Ok(())
            }
            Err(error) => {
                let exported = status::exports_during_setup(&running.live, &self.shared.tag);
                running.kill();
                Err((error, exported))
            }
        }
    }

    /// Lets a new shell source the user's start-up files. After the time limit it gets Ctrl+C, and keeps what they
    /// have set so far.
    fn read_startup_files(
        &mut self,
        running: &mut RunningShell,
        limit: Duration,
    ) -> Result<(), ToolError> {
        let live = running.live.clone();
        let (dialect, paths) = (self.shared.dialect, &live.paths);
        let mut before = [RESTORE_ENV_LINE, &dialect.rc_lines(paths)].concat();
        let mut pause = limit;
        let mut is_interrupted = false;
        let given_up = Instant::now() + limit + limits::RC_INTERRUPT_TIMEOUT;
        loop {
            // A new number each time: after Ctrl+C the shell may still answer the line before it.
            let number = self.shared.lock().next_number();
            before.push_str(&dialect.descriptor_lines(paths));
            before.push_str(&dialect.mark_line(paths, number));
            let written = live.write_lines(std::mem::take(&mut before).as_bytes());
            written.map_err(|error| start_error(&error.to_string()))?;
            self.output.await_start(number);
            let answer = self.await_first_mark(running, None, Instant::now() + pause);
            let is_busy = matches!(answer, Err((NO_ANSWER, _)));
            if !is_busy || Instant::now() >= given_up || self.is_ordered_to_end() {
                // The output is mostly prompts.
                return answer.map(drop).map_err(|(reason, _)| start_error(reason));
            }
            if self.launcher.avoid_startup_files() {
                self.note_slow_startup_files(limit);
                pause = limits::RC_INTERRUPT_PAUSE;
            } else if !is_interrupted {
                pause *= 2;
            }
            is_interrupted = !is_interrupted;
            if !is_interrupted {
                // What is not read is flushed before the first command.
                let typed = live.type_input_line();
                typed.map_err(|error| start_error(&error.to_string()))?;
                continue;
            }
            if let Some(group) = live.foreground_group() {
                let _ = group.signal_now(Signal::SIGINT);
            }
            live.signal_shell(Signal::SIGINT);
        }
    }

    fn note_slow_startup_files(&self, limit: Duration) {
        let (name, seconds) = (&self.shared.name, limit.as_secs_f64());
        let note = format!(
            "{name} stopped reading its start-up files after {seconds} s; what they had set by then stays, and \
             --rc-timeout SECONDS gives them longer"
        );
        self.shared.lock().shell.rc_failure = Some(note);
    }

    /// Sends a new shell its first lines and waits for its first mark.
    fn initialize(
        &mut self,
        running: &mut RunningShell,
        initial: InitialState<'_>,
        limit: Duration,
    ) -> Result<Mark, ToolError> {
        if let Some(limit) = initial.rc_limit {
            self.read_startup_files(running, limit)?;
        }
        let until = Instant::now() + limit;
        let live = running.live.clone();
        let (dialect, paths) = (self.shared.dialect, &live.paths);
        let number = self.shared.lock().next_number();
        let mut lines = match initial.rc_limit {
            Some(_) => Vec::new(),
            None => RESTORE_ENV_LINE.as_bytes().to_vec(),
        };
        lines.extend(dialect.setup_line(paths).into_bytes());
        let mut feeder = None;
        let mut commands = initial.snapshot.map_or_else(Vec::new, |snapshot| {
            self.launcher.restore_commands(snapshot, dialect)
        });
        commands.extend_from_slice(initial.exports);
        let mut state = self.shared.lock();
        let secrets = state.shell.secrets.named();
        state.shell.variables = ShellVariables::of(&secrets);
        drop(state);
        commands.extend_from_slice(&assignments(dialect, &secrets));
        if !commands.is_empty() {
            lines.extend(dialect.restore_line(paths).into_bytes());
            let fifo = paths.file("restore");
            feeder = Some(
                SnapshotFeeder::new(&fifo, commands)
                    .map_err(|error| start_error(&error.to_string()))?,
            );
        }
        lines.extend(dialect.directory_line(initial.cwd));
        if initial.snapshot.is_some() {
            // Shows what was restored.
            lines.extend(dialect.snapshot_line(paths).into_bytes());
        }
        lines.extend(dialect.mark_line(paths, number).into_bytes());
        live.write_lines(&lines)
            .map_err(|error| start_error(&error.to_string()))?;
        self.output.await_start(number);
        let answer = self.await_first_mark(running, feeder, until);
        let answer =
            answer.and_then(|mark| self.unset_extra_exports(running, initial, until, mark));
        answer.map_err(|(reason, printed)| match initial.rc_limit {
            // The output is mostly prompts.
            Some(_) => start_error(reason),
            None => start_error(&format!("{reason}: {}", readable_text(&printed))),
        })
    }

    /// Unsets variables that the start-up files export and the snapshot does not have: the user had unset them.
    /// Returns the last mark.
    fn unset_extra_exports(
        &mut self,
        running: &mut RunningShell,
        initial: InitialState<'_>,
        until: Instant,
        mark: Mark,
    ) -> Result<Mark, (&'static str, Vec<u8>)> {
        let new = self.snapshots.last.as_ref();
        let names = match (initial.snapshot, new) {
            (Some(old), Some(new)) if new.taken > old.taken => {
                new.exports_beyond(old, initial.exports)
            }
            _ => Vec::new(),
        };
        if names.is_empty() {
            return Ok(mark);
        }
        let (dialect, paths) = (self.shared.dialect, &running.live.paths);
        let number = self.shared.lock().next_number();
        let mut lines: String = names.iter().map(|name| dialect.unset_line(name)).collect();
        lines.push_str(&dialect.snapshot_line(paths));
        lines.push_str(&dialect.mark_line(paths, number));
        let written = running.live.write_lines(lines.as_bytes());
        written.map_err(|_| ("it took no lines", Vec::new()))?;
        self.output.await_start(number);
        self.await_first_mark(running, None, until)
    }

    /// Waits for the first mark; else returns the reason why it did not come, and the output.
    fn await_first_mark(
        &mut self,
        running: &mut RunningShell,
        mut feeder: Option<SnapshotFeeder>,
        until: Instant,
    ) -> Result<Mark, (&'static str, Vec<u8>)> {
        let mut printed = Vec::new();
        while Instant::now() < until && !self.is_ordered_to_end() {
            if let Some(feeder) = &mut feeder {
                feeder.step();
            }
            let pause = match feeder.as_ref().is_some_and(SnapshotFeeder::is_open) {
                true => limits::WAIT_SCAN_MIN,
                false => limits::WAIT_SCAN_MAX,
            };
            running.wait_for_output(pause);
            self.snapshots.read(&running.child.snapshots);
            let (count, mark) = self.output.read_start(&running.live.master, &mut printed);
            if let Some(mark) = mark {
                self.snapshots.read(&running.child.snapshots);
                return Ok(mark);
            }
            if count == 0 && running.has_ended() {
                return Err(("it ended at once", printed));
            }
        }
        Err((NO_ANSWER, printed))
    }

    /// Returns true if the owner has ordered the end of the session.
    pub(crate) fn is_ordered_to_end(&self) -> bool {
        let state = self.shared.lock();
        state
            .owner
            .orders
            .iter()
            .any(|order| matches!(order, Order::Close(_) | Order::Abandon))
    }

    /// Puts a new shell into service after its first mark.
    fn put_into_service(&mut self, running: RunningShell, mark: Mark) {
        registry::verify_stamp(&self.shared.tag, running.live.pid);
        running.child.reset_modes(&running.live);
        running.live.flush_input();
        let live = &running.live;
        live.fast_path
            .enable_if_possible(self.shared.dialect, &live.paths, live.process.as_ref());
        let _ = std::fs::remove_file(running.live.paths.file("restore"));
        let mut state = self.shared.lock();
        state.shell.cwd = running.live.directory(mark.cwd);
        state.shell.live = Some(running.live.clone());
        state.shell.last_status = 0;
        state.snapshots.requested = 0;
        drop(state);
        self.snapshots.received = 0;
        self.output.follow_new_shell();
        self.running = Some(running);
        self.background.command_ended();
        self.snapshots.command_ended();
    }
}

fn readable_text(printed: &[u8]) -> String {
    let mut text = String::new();
    let mut terminal = crate::text::TerminalText::new();
    terminal.push(printed, &mut text);
    terminal.finish(&mut text);
    text.trim().replace('\n', " / ")
}
