//! What a session knows: the job in the foreground, the call that waits for it, what came before.
//!
//! Both sides of a session share it: calls are attached on the caller's side, which keeps the way
//! of a command to the shell short; the session's thread reads the terminal and ends them.

use std::collections::VecDeque;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::outcome::Status;
use crate::secret::{Binding, ByteSet};

use super::background::Background;
use super::delivery::{self, Delivery};
use super::live::{Live, ScriptFile, Size};
use super::marks::Mark;
use super::mend::starts_background;
use super::secrets::{Carrier, carriers};
use super::shell::{Kind, Shell};
use super::sight::Sight;
use super::snapshot::Snapshot;

/// Takes the output that belongs to a call. It may block; it must not call back into the session.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// What came of a call when its result became final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How the job ended, or what it does.
    pub status: Status,
    /// Its exit status, when it ended.
    pub exit_code: Option<i32>,
    /// The session's directory, when the job ended.
    pub cwd: Option<PathBuf>,
    /// Whether the terminal shows what is typed, when the job waits for input; if not, it asks for
    /// a password.
    pub echo: Option<bool>,
    /// What became of the shell, when it had to be started again.
    pub restarted: Option<Restart>,
    /// Whether the status is a guess: the kernel did not show what the job does.
    pub is_probable: bool,
    /// Bytes of the input that were not typed, because the job ended or did not read them.
    pub unsent_bytes: usize,
}

impl Progress {
    /// Makes that of a job that was ended and whose exit status is not known.
    #[must_use]
    pub fn killed() -> Self {
        Self {
            status: Status::Killed,
            exit_code: None,
            cwd: None,
            echo: None,
            restarted: None,
            is_probable: false,
            unsent_bytes: 0,
        }
    }
}

/// A shell that took the place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// What the new shell got back.
    pub restored: Vec<String>,
    /// What is gone.
    pub lost: Vec<String>,
    /// Age of the snapshot that was used, in milliseconds.
    pub snapshot_age_ms: Option<u64>,
}

pub(super) type Reply = oneshot::Sender<Result<Progress, ToolError>>;

/// The command in the foreground.
pub(super) struct Job {
    /// Number of its mark.
    pub(super) number: u64,
    /// Where the session was before, when the command runs elsewhere.
    pub(super) home: Option<PathBuf>,
    /// Lines the shell gets after the mark.
    pub(super) after: Vec<u8>,
    /// FIFOs of its secrets, kept open until it ends.
    pub(super) _secrets: Vec<Carrier>,
    /// Lines before those that run the script.
    before: Vec<u8>,
    /// The look whether its values came.
    delivery: Option<Delivery>,
    /// Length of all lines the shell got.
    length: usize,
    /// The line that prints the mark of a script that broke off the line before, not given yet.
    last_line: String,
    /// Whether it was given to a second shell.
    is_second: bool,
    /// How often a lost mark was asked for.
    pub(super) rescues: u32,
    /// Takes the output no call waits for; out while the session's thread uses it.
    pub(super) rest: Option<Sink>,
    /// Whether input was typed for it.
    pub(super) was_typed_to: bool,
    /// Bytes typed since the last line break.
    pub(super) open_line_bytes: usize,
    /// Whether the shell gets back what the command may have closed.
    pub(super) is_mended: bool,
    /// Whether it may hide what its mark is printed with.
    may_cover: bool,
    /// Whether nothing else has the terminal, or will when it has ended.
    is_alone: bool,
    /// Whether its exit status is 0 also when a signal has stopped its last program.
    pub(super) may_hide_stop: bool,
    /// Whether it may leave something in the background.
    pub(super) may_leave: bool,
    /// Whether it may have changed the directory.
    pub(super) may_move: bool,
    /// Whether it may have limited the shell's descriptors.
    pub(super) may_limit: bool,
    /// A mark that came while the shell seemed to be in the middle of the script.
    pub(super) claim: Option<Mark>,
    /// How it ended, when that is known before the shell is ready or gone.
    pub(super) verdict: Option<Verdict>,
}

impl Job {
    /// Takes note of input that was typed.
    pub(super) fn typed(&mut self, bytes: &[u8]) {
        self.was_typed_to = true;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        self.open_line_bytes = match end {
            Some(end) => bytes.len() - end - 1,
            None => self.open_line_bytes + bytes.len(),
        };
    }

    /// Writes its lines to a shell.
    fn give(&mut self, live: &Live, kind: Kind) -> io::Result<()> {
        let mut lines = self.before.clone();
        // What is mended after the mark may be that descriptor.
        let is_simple = self.is_alone && !self.is_mended && !self.may_cover;
        let kept = match is_simple && self.delivery.is_none() {
            true => live.kept.lines(kind, &live.places, self.number),
            false => None,
        };
        let (places, number, may_cover) = (&live.places, self.number, self.may_cover);
        let [run, last_line] = match (&self.delivery, kept) {
            (Some(delivery), _) => [
                kind.lines_after(delivery, places, number, may_cover),
                String::new(),
            ],
            (None, Some(kept)) => kept,
            (None, None) => [kind.command_lines(places, number, may_cover), String::new()],
        };
        self.last_line = last_line;
        lines.extend(run.into_bytes());
        if self.is_mended {
            lines.extend(kind.descriptor_lines(&live.places).into_bytes());
        }
        self.length = lines.len();
        live.write_lines(&lines)
    }

    /// Writes the line that most commands end without: to read it costs the shell a tenth of the time
    /// of `true`.
    pub(super) fn give_last_line(&mut self, live: &Live) {
        let line = std::mem::take(&mut self.last_line);
        // Without it a lost mark is asked for as soon as the shell is seen waiting.
        if !line.is_empty() && live.write_lines(line.as_bytes()).is_ok() {
            self.length += line.len();
        }
    }

    /// Whether the shell has read nothing of it; then another one may run it, once.
    pub(super) fn is_unread(&self, live: &Live) -> bool {
        let waiting = super::sys::bytes_waiting(&live.fifo).unwrap_or(0);
        !self.is_second && self.length > 0 && waiting >= self.length
    }
}

/// How a command has ended whose shell is not ready for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The mark has told; the shell is to get its input back by then.
    Exited(Mark, Instant),
    /// The shell could not tell, and was ended by us.
    Killed,
}

/// The call that waits for the job.
pub(super) struct Call {
    pub(super) number: u64,
    /// Out while the session's thread uses it.
    pub(super) sink: Option<Sink>,
    pub(super) reply: Reply,
    pub(super) deadline: Option<Instant>,
    /// Whether nothing but the end of the job answers it.
    pub(super) is_for_end: bool,
    /// Whether it is a key that stops the job, which is repeated once for a part that goes on.
    pub(super) is_stop: bool,
    /// Output from before the call that belongs to it.
    pub(super) earlier: Vec<u8>,
    pub(super) input: Option<Input>,
}

/// Bytes to be typed.
pub(super) struct Input {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    pub(super) written: usize,
    /// How many bytes may be written: as many as a job was seen waiting for.
    pub(super) allowed: usize,
    pub(super) is_secret: bool,
    /// The bytes of the secrets in it.
    pub(super) values: ByteSet,
}

impl Input {
    /// Returns what may be written now.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes
            .get(self.written..self.allowed)
            .unwrap_or_default()
    }

    /// Returns what was not written.
    pub(super) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// Whether it waits for a reader.
    pub(super) fn is_gated(&self) -> bool {
        self.rest().is_empty() && !self.unsent().is_empty()
    }

    /// Whether nothing of it was written.
    pub(super) fn is_untouched(&self) -> bool {
        self.allowed == 0
    }

    /// Allows the next line to be written, or everything.
    pub(super) fn allow(&mut self, is_by_line: bool) {
        let end = self.unsent().iter().position(|byte| *byte == b'\n');
        self.allowed = match end {
            Some(end) if is_by_line => self.written + end + 1,
            _ => self.bytes.len(),
        };
    }
}

/// What the owner of a session wants of its thread.
pub(super) enum Order {
    /// Start the shell if none runs.
    Start(oneshot::Sender<Result<(), ToolError>>),
    /// End everything in steps; the reply names the signal that ended the job.
    Close(oneshot::Sender<Option<&'static str>>),
    /// The owner is gone, and everything was killed.
    Abandon,
}

pub(super) struct State {
    pub(super) live: Option<Arc<Live>>,
    pub(super) job: Option<Job>,
    pub(super) call: Option<Call>,
    /// What is to be done, in this order.
    pub(super) orders: VecDeque<Order>,
    /// Number of the last mark or call given out.
    pub(super) numbers: u64,
    /// Output nobody waited for.
    pub(super) backlog: Vec<u8>,
    pub(super) cwd: PathBuf,
    pub(super) size: Size,
    pub(super) last_status: i32,
    /// A restart nobody was told of.
    pub(super) restart: Option<Restart>,
    pub(super) is_closed: bool,
    /// When the environment a restart would bring back was saved.
    pub(super) saved_at: Option<Instant>,
    /// The last snapshot.
    pub(super) snapshot: Option<Snapshot>,
    /// What commands left in the background, by the number of their job; the newest last.
    pub(super) background: VecDeque<(u64, Background)>,
    /// How much of what commands left in the background is not kept account of.
    pub(super) omitted_background: u64,
    /// The signal that ended the last process of the session.
    pub(super) last_signal: Option<&'static str>,
    /// Number of the job that was started last.
    pub(super) newest_job: u64,
    /// Whether a script since the last snapshot may have defined what only a snapshot can tell.
    pub(super) has_unsaved: bool,
    /// How many snapshots the shell that runs was asked for.
    pub(super) asked_snapshots: u64,
    /// Jobs that ended while no call waited for them, and their exit status; the newest last.
    pub(super) ended: VecDeque<(u64, i32)>,
    pub(super) script: ScriptFile,
    /// What the job was last seen doing.
    pub(super) sight: Sight,
    /// Whether the job shows a screen of its own.
    pub(super) shows_screen: bool,
    /// Whether the shell had children when the last command ended.
    pub(super) has_children: bool,
    /// Why the shell is without the user's start-up files, when it is.
    pub(super) without_rc: Option<String>,
    script_length: u64,
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// Takes what is printed while no command runs. Beside the state, which others need while it
    /// takes something; whoever holds both has taken this one first.
    stray: Mutex<Option<Sink>>,
    waker: UnixStream,
    /// Whether the session's thread waits for the engine.
    is_claimed: AtomicBool,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Why it is not the user's usual shell, when it is not.
    pub(super) fallback: Option<String>,
    /// The session's name among those of this program.
    pub(super) tag: String,
}

impl Shared {
    pub(super) fn new(
        state: State,
        waker: UnixStream,
        shell: &Shell,
        fallback: Option<String>,
        tag: String,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            stray: Mutex::default(),
            waker,
            is_claimed: AtomicBool::new(false),
            kind: shell.kind,
            name: shell.name.clone(),
            fallback,
            tag,
        }
    }

    /// Takes the state. A panic elsewhere left it whole: no step of ours stops halfway.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of the sink for what is printed while no command runs. A panic of the sink
    /// left it as whole as it was.
    pub(super) fn stray(&self) -> MutexGuard<'_, Option<Sink>> {
        self.stray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the engine for the session's thread: callers who always want it next get it no more.
    pub(super) fn claim<T>(&self, take: impl FnOnce() -> T) -> T {
        self.is_claimed.store(true, Ordering::Relaxed);
        let taken = take();
        self.is_claimed.store(false, Ordering::Relaxed);
        taken
    }

    /// Whether the session's thread waits for the engine.
    pub(super) fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Relaxed)
    }

    /// Whether the running command may leave something in the background.
    pub(super) fn may_leave(&self) -> bool {
        self.lock().job.as_ref().is_some_and(|job| job.may_leave)
    }

    /// Has the session's thread look at the state.
    pub(super) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = (&self.waker).write(&[1]);
    }
}

/// What a command is started with.
pub(super) struct Start<'a> {
    pub(super) kind: Kind,
    pub(super) script: &'a str,
    pub(super) cwd: Option<&'a Path>,
    pub(super) bindings: &'a [Binding],
}

impl State {
    pub(super) fn new(cwd: PathBuf, script: ScriptFile) -> Self {
        Self {
            live: None,
            job: None,
            call: None,
            orders: VecDeque::new(),
            numbers: 0,
            backlog: Vec::new(),
            cwd,
            size: Size {
                rows: limits::TERMINAL_ROWS,
                columns: limits::TERMINAL_COLUMNS,
            },
            last_status: 0,
            restart: None,
            is_closed: false,
            saved_at: None,
            snapshot: None,
            newest_job: 0,
            has_unsaved: false,
            asked_snapshots: 0,
            without_rc: None,
            background: VecDeque::new(),
            omitted_background: 0,
            last_signal: None,
            ended: VecDeque::new(),
            sight: Sight::default(),
            shows_screen: false,
            has_children: false,
            script,
            script_length: 0,
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns the place of the running job's sink for output no call waits for, while it is that
    /// job.
    pub(super) fn rest_of(&mut self, number: u64) -> Option<&mut Option<Sink>> {
        let job = self.job.as_mut().filter(|job| job.number == number);
        job.map(|job| &mut job.rest)
    }

    /// Keeps output nobody waits for; the oldest goes first.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let limit = limits::MAX_BACKLOG_BYTES;
        let kept = bytes
            .get(bytes.len().saturating_sub(limit)..)
            .unwrap_or(bytes);
        self.backlog.extend_from_slice(kept);
        // Dropped in large steps, so that each byte is moved once on average.
        if self.backlog.len() > 2 * limit {
            self.backlog.drain(..self.backlog.len() - limit);
        }
    }

    /// Gives the shell a command. The caller attaches its call first.
    ///
    /// # Errors
    /// When there is no shell, or its files cannot be written.
    pub(super) fn start_job(&mut self, start: &Start<'_>) -> Result<(), ToolError> {
        let live = self.live.clone().ok_or_else(no_shell)?;
        self.write_script(start.script)
            .map_err(|error| failure(&error))?;
        let number = self.next_number();
        let mut job = self
            .prepare_job(&live, start, number)
            .map_err(|error| failure(&error))?;
        job.give(&live, start.kind)
            .map_err(|error| failure(&error))?;
        // Only now: a job that was not given has saved nothing.
        self.has_unsaved = may_define(start.script);
        self.newest_job = number;
        self.job = Some(job);
        Ok(())
    }

    /// Gives a job to the shell that took the place of another one, which never read it; gives it back
    /// when that failed.
    pub(super) fn start_unread(&mut self, mut job: Job, kind: Kind) -> Result<(), Box<Job>> {
        job.is_second = true;
        match &self.live {
            Some(live) if job.give(live, kind).is_ok() => {
                self.job = Some(job);
                Ok(())
            }
            _ => Err(Box::new(job)),
        }
    }

    /// Makes the job of a command.
    fn prepare_job(&mut self, live: &Live, start: &Start<'_>, number: u64) -> io::Result<Job> {
        let (kind, places) = (start.kind, &live.places);
        let mut before = Vec::new();
        let mut after = Vec::new();
        if self.has_unsaved {
            self.asked_snapshots += 1;
            before.extend(kind.snapshot_line(places).into_bytes());
        }
        // Names of their own: what carried the last command's may be removed only later.
        let place = |index| places.file(&format!("secret{number}-{index}"));
        let secrets = carriers(start.bindings, place)?;
        let delivery = Delivery::of(start.bindings);
        let (taking, forgetting) = secret_lines(kind, start.bindings, &secrets, delivery.as_ref());
        before.extend(taking.into_bytes());
        after.extend(forgetting.into_bytes());
        if let Some(directory) = start.cwd {
            before.extend(kind.directory_line(directory));
            after.extend(kind.directory_line(&self.cwd));
        }
        if let Some(line) = kind.status_line(places, self.last_status) {
            before.extend(line.into_bytes());
        }
        if let Some((first, last)) = kind.farewell_lines(places)
            && Kind::may_exit(start.script)
        {
            before.extend(first.into_bytes());
            after.extend(last.bytes());
        }
        if kind == Kind::Bash && kind.may_cover(start.script) {
            after.extend(kind.forget_line("KARYI_LAST").into_bytes());
        }
        let may_leave = starts_background(start.script);
        let enabling = kind.enable_line_after(start.script);
        after.extend(enabling.unwrap_or_default().bytes());
        Ok(Job {
            number,
            home: start.cwd.map(|_| self.cwd.clone()),
            after,
            _secrets: secrets,
            before,
            delivery,
            length: 0,
            last_line: String::new(),
            is_second: false,
            rescues: 0,
            rest: None,
            was_typed_to: false,
            open_line_bytes: 0,
            is_mended: kind.needs_mending(start.script),
            is_alone: !self.has_children && !may_leave,
            may_leave,
            may_cover: kind.may_cover(start.script),
            may_move: Kind::may_move(start.script),
            may_limit: Kind::may_limit(start.script),
            may_hide_stop: kind.hides_stop(start.script),
            claim: None,
            verdict: None,
        })
    }

    fn write_script(&mut self, script: &str) -> io::Result<()> {
        let length = script.len() as u64;
        if length < self.script_length {
            self.script.file.set_len(0)?;
        }
        // Until all of it stands there, nothing is known about the file.
        self.script_length = u64::MAX;
        self.script.file.write_all_at(script.as_bytes(), 0)?;
        self.script_length = length;
        Ok(())
    }

    /// Takes another file for scripts, an empty one.
    pub(super) fn set_script(&mut self, script: ScriptFile) {
        self.script = script;
        self.script_length = 0;
    }

    /// Returns the numbers of the job and of the call that waits for it, 0 where there is none.
    pub(super) fn watched(&self) -> (u64, u64) {
        let job = self.job.as_ref().map_or(0, |job| job.number);
        (job, self.call.as_ref().map_or(0, |call| call.number))
    }

    /// Whether there is a shell, and what it needs for a command.
    pub(super) fn is_ready(&self) -> bool {
        self.live.is_some() && (self.job.is_some() || self.script.is_there())
    }

    /// Keeps what a job left in the background until it is asked for; the oldest goes first.
    pub(super) fn note_background(&mut self, job: u64, left: Vec<Background>, omitted: u64) {
        self.omitted_background += omitted;
        self.background
            .extend(left.into_iter().map(|left| (job, left)));
        let excess = self.background.len().saturating_sub(limits::MAX_ENDED_JOBS);
        self.omitted_background += excess as u64;
        self.background.drain(..excess);
    }

    /// Remembers how a job ended.
    pub(super) fn note_end(&mut self, job: u64, status: i32) {
        self.sight.dismiss();
        if self.ended.back() == Some(&(job, status)) {
            return;
        }
        if self.ended.len() >= limits::MAX_ENDED_JOBS {
            self.ended.pop_front();
        }
        self.ended.push_back((job, status));
    }

    /// Ends the call that waits for the job, or for one that was stopped and left the terminal to the
    /// shell; its answer is sent when the state is free again.
    pub(super) fn end_job(
        &mut self,
        job: u64,
        exit_code: i32,
        has_stopped: bool,
    ) -> Option<Answer> {
        self.last_status = exit_code;
        self.note_end(job, exit_code);
        let status = match exit_code {
            _ if has_stopped => Status::Stopped,
            0 => Status::Ok,
            _ => Status::Failed,
        };
        self.end_call(status, Some(exit_code))
    }

    /// Ends the call that waits for a job that was not run, since a value did not come.
    pub(super) fn end_unrun_job(&mut self, job: u64) -> Option<Answer> {
        self.note_end(job, 1);
        let call = self.call.take()?;
        Some(Answer {
            reply: call.reply,
            result: Err(delivery::lacking()),
        })
    }

    /// Ends the call that waits for a job that had to be ended without its status being known.
    pub(super) fn end_killed_job(&mut self, job: u64) -> Option<Answer> {
        self.note_end(job, KILLED_STATUS);
        self.end_call(Status::Killed, None)
    }

    fn end_call(&mut self, status: Status, exit_code: Option<i32>) -> Option<Answer> {
        let unsent_bytes = self.unsent_bytes();
        let call = self.call.take()?;
        let result = if call.input.as_ref().is_some_and(Input::is_untouched) {
            Err(too_late(exit_code))
        } else {
            Ok(Progress {
                status,
                exit_code,
                cwd: Some(self.cwd.clone()),
                echo: None,
                restarted: self.restart.take(),
                is_probable: false,
                unsent_bytes,
            })
        };
        Some(Answer {
            reply: call.reply,
            result,
        })
    }

    /// Ends the call whose input cannot be typed, or not any further.
    pub(super) fn refuse_input(&mut self, error: ToolError, is_shown: bool) {
        let input = self.call.as_ref().and_then(|call| call.input.as_ref());
        if input.is_none_or(Input::is_untouched) {
            self.reply(Err(error));
            return;
        }
        let unsent_bytes = self.unsent_bytes();
        let restarted = self.restart.take();
        self.reply(Ok(Progress {
            status: Status::AwaitingInput,
            exit_code: None,
            cwd: None,
            echo: Some(is_shown),
            restarted,
            is_probable: false,
            unsent_bytes,
        }));
    }

    /// Returns how much of the call's input was not typed.
    pub(super) fn unsent_bytes(&self) -> usize {
        let input = self.call.as_ref().and_then(|call| call.input.as_ref());
        input.map_or(0, |input| input.unsent().len())
    }

    /// Ends the call with a result, if one waits.
    pub(super) fn reply(&mut self, result: Result<Progress, ToolError>) {
        if let Some(call) = self.call.take() {
            // A receiver that is gone wants no result.
            let _ = call.reply.send(result);
        }
    }
}

/// The exit status a shell gives a command that was killed.
const KILLED_STATUS: i32 = 137;

/// Words of scripts that define functions, aliases, options or variables. The directory is known to the
/// kernel, and the environment to a job that was given it; for these the shell must be asked before it
/// is held up or gone, and asking after every command would cost too much.
const DEFINING: [&str; 12] = [
    "()", "function", "alias", "source", "eval", "set ", "shopt", "setopt", "\n. ", "export",
    "declare", "typeset",
];

/// Whether a script may define what a shell beside this one should have.
fn may_define(script: &str) -> bool {
    script.starts_with(". ") || DEFINING.iter().any(|word| script.contains(word))
}

/// What a call is told. Sent while the state is held, it would wake a caller who then waits for it.
#[must_use]
pub(super) struct Answer {
    reply: Reply,
    result: Result<Progress, ToolError>,
}

impl Answer {
    /// Tells it.
    pub(super) fn send(self) {
        // A receiver that is gone wants no result.
        let _ = self.reply.send(self.result);
    }
}

/// Returns the lines that take the secrets of a command, and those that forget them.
fn secret_lines(
    kind: Kind,
    bindings: &[Binding],
    carriers: &[Carrier],
    delivery: Option<&Delivery>,
) -> (String, String) {
    let names = bindings.iter().map(|binding| &binding.variable);
    let mut forgetting: String = names.map(|name| kind.forget_line(name)).collect();
    let mut taking = delivery.map(Delivery::first_line).unwrap_or_default();
    taking.extend(carriers.iter().map(|carrier| carrier.line(kind)));
    if let Some(delivery) = delivery {
        taking.push_str(&delivery.check_line());
        forgetting.push_str(&kind.forget_line(delivery.variable()));
    }
    (taking, forgetting)
}

/// The error of input for a command that has ended, or for none.
pub(super) fn too_late(status: Option<i32>) -> ToolError {
    let message = match status {
        Some(status) => {
            format!("the command has ended with exit status {status}; nothing was sent")
        }
        None => "no command is running; nothing was sent".to_owned(),
    };
    ToolError::new(ErrorCode::NoJob, message)
}

/// The error of a session without a shell.
pub(super) fn no_shell() -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, "the session has no shell")
}

/// The error of a session that the system failed.
pub(super) fn failure(error: &io::Error) -> ToolError {
    ToolError::new(
        ErrorCode::SessionFailed,
        format!("talking to the shell: {error}"),
    )
}
