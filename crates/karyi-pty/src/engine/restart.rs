//! Starts the shell of a session, and restarts it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::engine::background::{self, Background, BackgroundStatus};
use crate::engine::job::{Job, Verdict};
use crate::engine::pending_call::Restart;
use crate::engine::state::Order;
use crate::engine::{Engine, RunningShell};
use crate::host::error_hints;
use crate::process::{self, Process};
use crate::session::status;
use crate::shell::command_lines::RESTORE_ENV_LINE;
use crate::shell::secrets::{ShellVariables, assignments};
use crate::shell::snapshot::{Snapshot, SnapshotFeeder};
use crate::teardown::registry;
use crate::terminal::directory::nearest_enterable;
use crate::terminal::live_shell::read_some;
use crate::terminal::mark_fifo::MarkFifo;
use crate::terminal::marks::Mark;

/// State that every restart loses.
const ALWAYS_LOST: [&str; 3] = ["variables", "traps", "jobs"];
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
        let cwd = self.shared.lock().cwd.clone();
        match self.fork_state.take() {
            Some(fork_state) => {
                self.start_shell(&cwd, fork_state.snapshot.as_ref(), &fork_state.exports)
            }
            None => self.start_shell(&cwd, None, &[]),
        }
    }

    /// Starts the shell unless one runs, and restores its files if they are gone.
    pub(crate) fn start_again(&mut self) -> Result<(), ToolError> {
        self.restore_files().map_err(|error| files_error(&error))?;
        if self.running.is_some() {
            return Ok(());
        }
        let cwd = self.shared.lock().cwd.clone();
        let restart = self.restart_in(cwd, true)?;
        self.shared.lock().restart = Some(restart);
        Ok(())
    }

    /// Restores the session's files when a command has removed them.
    fn restore_files(&mut self) -> io::Result<()> {
        if self.shared.lock().script.exists() {
            return Ok(());
        }
        let script = self.spawn_config.write_files()?;
        if let Some(running) = &mut self.running {
            running.child.snapshots = self.spawn_config.make_snapshot_fifo()?;
            self.collector.forget_partial();
        }
        self.shared.lock().set_script(script);
        Ok(())
    }

    /// Handles the end of the shell: reports the status of its command and starts another shell.
    pub(crate) fn shell_ended(&mut self) {
        self.read_last_output();
        let Some(mut running) = self.running.take() else {
            return;
        };
        let status = running.child.process.wait().map_or(1, exit_code);
        registry::shell_reaped(running.live.pid);
        self.collector.read(&running.child.snapshots);
        self.collector.forget_partial();
        let (mut background, omitted) = self.background_of_ended_shell(running.live.pid);
        let mut state = self.shared.lock();
        state.live = None;
        // The job stays until there is a shell for another one.
        let job = state.job.as_ref();
        let number = job.map(|job| job.number);
        let has_begun = state.has_begun_script();
        let is_unread = job
            .is_some_and(|job| job.is_unread(&running.live) || !has_begun && job.may_be_resent());
        let reported = self.reported_cwd(job, state.requested_snapshots);
        let is_known = reported.is_some() || !job.is_some_and(|job| job.may_move);
        let cwd = reported.unwrap_or_else(|| state.cwd.clone());
        drop(state);
        let restart = self.restart_in(cwd, is_known);
        // Drop those that ended with the shell.
        background.retain(|left| left.status() != BackgroundStatus::Ended);
        let mut state = self.shared.lock();
        // Another job may have begun with the new shell.
        let job = state.job.take_if(|job| Some(job.number) == number);
        state.store_background(number.unwrap_or_default(), background, omitted);
        state.restart = Some(restart.unwrap_or_else(|_| everything_lost()));
        let job = match job {
            Some(job) if is_unread => match state.restart_unread_job(job, self.shared.dialect) {
                Ok(()) => return,
                Err(job) => Some(*job),
            },
            job => job,
        };
        let answer = job.and_then(|job| match job.verdict {
            _ if !has_begun && job.repeats == 0 => state.end_unstarted_job(&job),
            _ if !has_begun => state.end_unbegun_job(&job),
            Some(Verdict::Killed) => state.end_killed_job(job.number),
            Some(Verdict::Exited(mark, _)) => state.end_job(job.number, mark.status, false),
            None => state.end_job(job.number, status, false),
        });
        drop(state);
        if let Some(answer) = answer {
            answer.send();
        }
    }

    /// Returns the background jobs that the last command of an ended shell left.
    fn background_of_ended_shell(&mut self, shell: i32) -> (Vec<Background>, u64) {
        let mut all = registry::processes(&self.shared.tag);
        // Older ones belong to earlier commands: they were reported, or are daemons.
        let longest = self.ended_at.elapsed() + limits::PROCESS_CLOCK_TICK;
        let is_of_last = |seen: &Process| seen.age().is_none_or(|age| age <= longest);
        all.retain(is_of_last);
        let state = self.shared.lock();
        let shows_syscalls =
            process::are_shown() || state.job.as_ref().is_some_and(|job| job.may_leave);
        drop(state);
        let known = &mut self.known_children;
        let (left, omitted) = background::jobs_of_ended_shell(shell, all, known, &self.claims);
        match shows_syscalls {
            true => (left, omitted),
            // The command they belong to is unknown.
            false => (Vec::new(), omitted + left.len() as u64),
        }
    }

    /// Returns the shell's directory at its end, if the shell reported it.
    fn reported_cwd(&self, job: Option<&Job>, requested_snapshots: u64) -> Option<PathBuf> {
        if let Some(original_directory) = job.and_then(|job| job.original_directory.clone()) {
            return Some(original_directory);
        }
        if let Some(Verdict::Exited(mark, _)) = job.and_then(|job| job.verdict.as_ref()) {
            return Some(mark.cwd.clone());
        }
        // A snapshot that was not requested is that of the shell's exit trap.
        let last = self.collector.last.as_ref();
        let last = last.filter(|_| self.collector.received > requested_snapshots);
        last.map(|snapshot| snapshot.cwd.clone())
    }

    /// Starts the next shell in a directory; `is_known` is false if the last shell may have been in another one.
    fn restart_in(&mut self, cwd: PathBuf, is_known: bool) -> Result<Restart, ToolError> {
        let mut snapshot = self.collector.last.clone();
        if std::mem::take(&mut self.has_input_thief) {
            // A function that reads between two commands would do so again.
            snapshot = snapshot.map(|whole| whole.environment_only());
        }
        let (fit, left_out) = match &snapshot {
            Some(whole) => {
                let secrets = self.shared.lock().secrets.clone();
                let (fit, left_out) = whole.without_secrets(&secrets);
                (Some(fit), left_out)
            }
            None => (None, Vec::new()),
        };
        self.start_shell(&cwd, fit.as_ref(), &[])?;
        let dialect = self.shared.dialect;
        let (restored, age) = match (&snapshot, &self.collector.last) {
            (Some(old), Some(new)) if new.taken > old.taken => {
                let restored_parts = old.unchanged_parts(dialect.restorable(), new);
                (restored_parts, Some(old.taken.elapsed()))
            }
            _ => (Vec::new(), None),
        };
        let is_lost = |name: &&&str| !restored.contains(*name);
        let lost = dialect.restorable().iter().filter(is_lost);
        let is_there = is_known && self.shared.lock().cwd == cwd;
        let place = |is_wanted: bool| ["cwd"].into_iter().filter(move |_| is_wanted);
        let lost = place(!is_there)
            .chain(lost.copied())
            .chain(dialect.unprintable().iter().copied())
            .chain(ALWAYS_LOST);
        Ok(Restart {
            lost: lost.map(str::to_owned).chain(left_out).collect(),
            restored: place(is_there)
                .chain(restored.iter().copied())
                .map(str::to_owned)
                .collect(),
            snapshot_age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    /// Reads what the shell printed before it ended; other programs may print on.
    pub(crate) fn read_last_output(&mut self) {
        self.poll_mark_fifo();
        let until = Instant::now() + limits::LAST_OUTPUT_TIMEOUT;
        while Instant::now() < until && self.read_terminal() {}
    }

    /// Starts a shell with all saved state; if that fails, without the user's start-up files, then with no state at
    /// all.
    fn start_shell(
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
            rc_limit: self.rc_limit,
        };
        let mut kept = Vec::new();
        if self.rc_limit.is_some() {
            let Err((error, exported)) = self.try_start(initial, limits::SETUP_TIMEOUT + more)
            else {
                return Ok(());
            };
            // The start-up files are not tried twice: they would cost their time limit at every restart.
            self.rc_limit = None;
            let (name, why) = (&self.shared.name, error.message);
            let note = format!("{name} runs without its start-up files, with which {why}");
            self.shared.lock().rc_failure = Some(note);
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
        let mut running = self
            .spawn_shell(initial)
            .map_err(|error| (error, Vec::new()))?;
        match self.initialize(&mut running, initial, limit) {
            Ok(_) if initial.rc_limit.is_some() && running.live.lacks_descriptors() => {
                self.end_failed_start(&mut running);
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
                self.end_failed_start(&mut running);
                Err((error, exported))
            }
        }
    }

    fn spawn_shell(&mut self, initial: InitialState<'_>) -> Result<RunningShell, ToolError> {
        self.restore_files().map_err(|error| files_error(&error))?;
        let size = self.shared.lock().size;
        let place = nearest_enterable(initial.cwd);
        let spawned = registry::spawn_registered(&self.spawn_config.tag, || {
            self.spawn_config
                .spawn(place, size)
                .map(|(live, child)| (live.pid, (live, child)))
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

    /// Kills a shell that did not start, with all it started.
    fn end_failed_start(&self, running: &mut RunningShell) {
        // Background jobs of an earlier shell run on.
        let (all, _) = process::tree();
        for pid in process::belonging(&all, &[running.live.pid], &[]) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = running.child.process.wait();
        registry::shell_reaped(running.live.pid);
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
            self.mark_extractor.await_mark(Some(number));
            let answer = self.await_first_mark(running, None, Instant::now() + pause);
            let is_busy = matches!(answer, Err((NO_ANSWER, _)));
            if !is_busy || Instant::now() >= given_up || self.is_ordered_to_end() {
                // The output is mostly prompts.
                return answer.map(drop).map_err(|(reason, _)| start_error(reason));
            }
            if self.rc_limit.take().is_some() {
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
        self.shared.lock().rc_failure = Some(note);
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
            let mut commands = snapshot.restore_commands(dialect, &self.spawn_config.variables());
            // The snapshot may come from another session.
            commands.extend(self.spawn_config.tag_line().into_bytes());
            commands
        });
        commands.extend_from_slice(initial.exports);
        let mut state = self.shared.lock();
        let secrets = state.secrets.named();
        state.variables = ShellVariables::of(&secrets);
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
        self.mark_extractor.await_mark(Some(number));
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
        let new = self.collector.last.as_ref();
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
        self.mark_extractor.await_mark(Some(number));
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
            sleep_for_output(running, pause);
            self.collector.read(&running.child.snapshots);
            let mut chunk = [0; 4096];
            let count = read_some(&running.live.master, &mut chunk);
            let bytes = chunk.get(..count).unwrap_or_default();
            let (_, mark) = self
                .mark_extractor
                .push(bytes, &mut |output| printed.extend_from_slice(output));
            if let Some(mark) = mark {
                self.collector.read(&running.child.snapshots);
                return Ok(mark);
            }
            let excess = printed.len().saturating_sub(limits::MAX_START_OUTPUT_BYTES);
            printed.drain(..excess);
            if count == 0
                && running
                    .child
                    .process
                    .try_wait()
                    .is_ok_and(|status| status.is_some())
            {
                return Err(("it ended at once", printed));
            }
        }
        Err((NO_ANSWER, printed))
    }

    /// Returns true if the owner has ordered the end of the session.
    pub(crate) fn is_ordered_to_end(&self) -> bool {
        let state = self.shared.lock();
        state
            .orders
            .iter()
            .any(|order| matches!(order, Order::Close(_) | Order::Abandon))
    }

    /// Puts a new shell into service after its first mark.
    fn put_into_service(&mut self, running: RunningShell, mark: Mark) {
        registry::verify_stamp(&self.spawn_config.tag, running.live.pid);
        running.child.reset_modes(&running.live);
        running.live.flush_input();
        let live = &running.live;
        live.fast_path
            .enable_if_possible(self.shared.dialect, &live.paths, live.process.as_ref());
        let _ = std::fs::remove_file(running.live.paths.file("restore"));
        let mut state = self.shared.lock();
        state.cwd = running.live.directory(mark.cwd);
        state.live = Some(running.live.clone());
        state.last_status = 0;
        state.requested_snapshots = 0;
        drop(state);
        self.collector.received = 0;
        self.mark_fifo = MarkFifo::default();
        self.running = Some(running);
        self.ended_at = Instant::now();
        self.unsaved_since = Some(self.ended_at);
    }
}

/// Sleeps until the shell prints or ends, for `pause` at most.
pub(crate) fn sleep_for_output(running: &RunningShell, pause: Duration) {
    let mut polled = vec![
        PollFd::new(running.live.master.as_fd(), PollFlags::POLLIN),
        PollFd::new(running.child.snapshots.as_fd(), PollFlags::POLLIN),
    ];
    if let Some(process) = &running.live.process {
        polled.push(PollFd::new(process.as_fd(), PollFlags::POLLIN));
    }
    let pause = PollTimeout::try_from(pause.as_micros().div_ceil(1000));
    let _ = nix::poll::poll(&mut polled, pause.unwrap_or(PollTimeout::MAX));
}

/// Returns the status a shell would report for an ended process.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    status.code().unwrap_or(signal)
}

fn everything_lost() -> Restart {
    let lost = ["cwd", "environment", "functions", "aliases", "options"];
    Restart {
        restored: Vec::new(),
        lost: lost
            .iter()
            .chain(&ALWAYS_LOST)
            .map(|word| (*word).to_owned())
            .collect(),
        snapshot_age_ms: None,
    }
}

fn readable_text(printed: &[u8]) -> String {
    let mut text = String::new();
    let mut terminal = crate::text::TerminalText::new();
    terminal.push(printed, &mut text);
    terminal.finish(&mut text);
    text.trim().replace('\n', " / ")
}

fn files_error(error: &io::Error) -> ToolError {
    let message = format!("the session's files are gone and could not be created again: {error}");
    error_hints::failed(message, error)
}

fn start_error(reason: &str) -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, not_started(reason))
}

fn not_started(reason: &str) -> String {
    format!("the shell could not be started: {reason}")
}
