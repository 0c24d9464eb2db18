//! How a command becomes the job in the foreground.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use karyi_core::error::ToolError;
use karyi_core::secret::VariableContent;

use crate::engine::job::Job;
use crate::engine::state::{State, failure, no_shell};
use crate::shell::Kind;
use crate::shell::delivery::{self, Delivery};
use crate::shell::secret_carriers::{Carrier, carriers};
use crate::shell::secrets::VariableChanges;
use crate::shell::shell_repair::{starts_background, starts_job};
use crate::terminal::directory::may_enter;
use crate::terminal::live_shell::Live;

/// What a command is started with.
pub(crate) struct Start<'a> {
    pub(crate) kind: Kind,
    pub(crate) script: &'a str,
    pub(crate) cwd: Option<&'a Path>,
    pub(crate) secrets: VariableChanges,
}

/// Lines around those that run a script.
struct Around {
    before: Vec<u8>,
    /// Those of `before` that the script cannot do without.
    needed: Range<usize>,
    /// The directory it needs, and what stands before the command that runs it, in one line with it.
    prelude: Option<(PathBuf, Vec<u8>)>,
    after: Vec<u8>,
}

/// What has become of a job whose script the shell has not begun.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It has got its lines again.
    Given,
    /// It has got them often enough.
    InVain,
    /// It must not get them again, or another shell would be no better.
    Refused,
}

impl State {
    /// Gives the shell a command. The caller attaches its call first.
    ///
    /// # Errors
    /// When there is no shell, or its files cannot be written.
    pub(crate) fn start_job(&mut self, start: &Start<'_>) -> Result<(), ToolError> {
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

    /// Gives the shell a job again whose script it has not begun.
    pub(crate) fn give_again(&mut self, live: &Live, kind: Kind) -> Again {
        let mark = self.next_number();
        let job = self.job.as_mut().filter(|job| job.may_be_given_again());
        let Some(job) = job else {
            return Again::Refused;
        };
        match job.give_again(live, kind, mark) {
            true => Again::Given,
            // It may be the directory that keeps it from its script; the way back is shorter for the next
            // shell.
            false if job.home.is_some() => Again::Refused,
            false => Again::InVain,
        }
    }

    /// Returns where the shell has to go before it runs a script: where the call wants it, or back from
    /// where the last one was, in case something has taken the line that says so.
    fn way<'a>(&'a self, live: &Live, wanted: Option<&'a Path>) -> Option<&'a Path> {
        let back = || {
            let is_needed = self.was_elsewhere && !live.is_in(&self.cwd);
            (is_needed && may_enter(&self.cwd).is_ok()).then_some(self.cwd.as_path())
        };
        wanted.or_else(back)
    }

    /// Gives a job to the shell that took the place of another one, which never read it; gives it back
    /// when that failed.
    pub(crate) fn start_unread(&mut self, mut job: Job, kind: Kind) -> Result<(), Box<Job>> {
        job.is_second = true;
        job.leave_out();
        // What the last shell was asked is no part of it.
        (job.verdict, job.claim, job.rescues) = (None, None, 0);
        match &self.live {
            // The file may have been made again, without the script.
            Some(live) if self.has_script() && job.give(live, kind).is_ok() => {
                self.job = Some(job);
                Ok(())
            }
            _ => Err(Box::new(job)),
        }
    }

    /// Returns the lines around those that run a script; `own` are those of its secrets.
    fn lines_around(&mut self, live: &Live, start: &Start<'_>, own: (String, String)) -> Around {
        let (kind, places) = (start.kind, &live.places);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if self.has_unsaved {
            self.asked_snapshots += 1;
            before.extend(kind.snapshot_line(places).into_bytes());
        }
        let saving = before.len();
        let (taking, forgetting) = own;
        before.extend(taking.into_bytes());
        after.extend(forgetting.into_bytes());
        let status = kind.status_line(places, self.last_status);
        if start.cwd.is_some() {
            after.extend(kind.directory_line(&self.cwd));
        }
        let way = self.way(live, start.cwd);
        let prelude = way.map(|directory| {
            let line = kind.prelude(directory, status.as_deref());
            (directory.to_owned(), line)
        });
        if let Some(line) = status.filter(|_| prelude.is_none()) {
            before.extend(line.into_bytes());
        }
        let needed = saving..before.len();
        let farewell = kind.farewell_lines(places);
        if let Some((first, last)) = farewell.filter(|_| Kind::may_exit(start.script)) {
            before.extend(first.into_bytes());
            after.extend(last.bytes());
        }
        Around {
            before,
            needed,
            prelude,
            after,
        }
    }

    /// Makes the job of a command.
    fn prepare_job(&mut self, live: &Live, start: &Start<'_>, number: u64) -> io::Result<Job> {
        let (kind, places) = (start.kind, &live.places);
        // Names of their own: what carried the last command's may be removed only later.
        let place = |index| places.file(&format!("secret{number}-{index}"));
        let secrets = carriers(&start.secrets.sent, place)?;
        let own = secret_lines(kind, &start.secrets, &secrets);
        let Around {
            before,
            needed,
            prelude,
            mut after,
        } = self.lines_around(live, start, own);
        if kind == Kind::Bash && kind.may_cover(start.script) {
            after.extend(kind.forget_line("KARYI_LAST").into_bytes());
        }
        let may_leave = starts_background(start.script);
        let enabling = kind.enable_line_after(start.script);
        after.extend(enabling.unwrap_or_default().bytes());
        Ok(Job {
            number,
            mark: number,
            home: start.cwd.map(|_| self.cwd.clone()),
            after,
            secrets,
            before,
            needed,
            prelude,
            repeats: 0,
            length: 0,
            last_line: String::new(),
            is_second: false,
            rescues: 0,
            rest: None,
            was_typed_to: false,
            was_interrupted: false,
            open_line_bytes: 0,
            is_mended: kind.needs_mending(start.script),
            is_alone: !self.has_children && !may_leave,
            may_leave,
            may_part: starts_job(start.script),
            may_close: kind.may_close(start.script),
            may_cover: kind.may_cover(start.script),
            may_move: Kind::may_move(start.script),
            may_limit: Kind::may_limit(start.script),
            may_hide_stop: kind.hides_stop(start.script),
            claim: None,
            verdict: None,
        })
    }
}

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

/// Returns the lines that bring the variables of secrets up to date, and those that forget after the command what is
/// its own: the paths of files, which go with it.
fn secret_lines(kind: Kind, changes: &VariableChanges, carriers: &[Carrier]) -> (String, String) {
    let (mut taking, mut forgetting) = (String::new(), String::new());
    for name in &changes.removed {
        taking.push_str(&kind.forget_line(&name.variable(VariableContent::Value)));
    }
    if let Some(delivery) = Delivery::of(&changes.sent) {
        // What a script has made of the variables, an integer or capital letters, must not change the values.
        let values = changes
            .sent
            .iter()
            .filter(|b| b.holds == VariableContent::Value);
        taking.extend(values.map(|value| kind.forget_line(&value.variable())));
        taking.push_str(&delivery.first_line());
        taking.extend(carriers.iter().map(|carrier| carrier.line(kind)));
        taking.push_str(&delivery.check_line());
        forgetting.push_str(&kind.forget_line(delivery::CAME));
    }
    let paths = changes
        .sent
        .iter()
        .filter(|b| b.holds == VariableContent::Path);
    forgetting.extend(paths.map(|path| kind.forget_line(&path.variable())));
    (taking, forgetting)
}
