//! Checks of the program's environment: variables, terminal, directories, limits.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::cli::runtime_dir::runtime_dir;
use crate::cli::vault::{self, VaultFlags, VaultLocation};
use crate::cli::{model, state_dir, undo_journal, var};
use karyi_core::shell_word::quote;
use karyi_files::recover::pending_files;
use karyi_pty::health::{Check, Health, SystemCheck};
use karyi_pty::inherited::is_inside_session;
use karyi_pty::runtime;
use karyi_tasks::question;
use karyi_tasks::state_directory::StateDirectory;

/// The checks, with their names.
pub(super) const CHECKS: &[(&str, SystemCheck)] = &[
    ("runtime directory", runtime_directory),
    ("state directory", state_directory),
    ("keyring", keyring),
    ("secrets", secrets),
    ("locale", locale),
    ("terminal", terminal),
    ("open files", open_files),
    ("processes", processes),
    ("clock", clock),
    ("supervisor", supervisor),
];

/// Free space that scripts of a session need, in bytes.
const MIN_FREE_BYTES: u64 = 16 << 20;
/// Fewest open files for several sessions at once.
const MIN_OPEN_FILES: u64 = 256;
/// Fewest processes for builds.
#[cfg(not(target_os = "macos"))]
const MIN_PROCESSES: u64 = 128;
/// Fewest watches of directories for a state directory, its conditions and an editor.
const MIN_WATCHES: u64 = 1024;
/// 2024-01-01 in seconds since 1970: a correct clock is later.
const EARLIEST_S: u64 = 1_704_067_200;

fn runtime_directory() -> Check {
    let name = "runtime directory";
    let meaning = "holds the private files of sessions";
    let path = runtime_dir();
    if let Err(error) = runtime::prepare(&path) {
        return Check::missing(
            name,
            error.message,
            "no session can be started",
            &error.hint,
        );
    }
    if let Err(error) = tempfile::tempfile_in(&path) {
        let error = runtime::unusable(&path, &error);
        return Check::missing(
            name,
            error.message,
            "no session can be started",
            &error.hint,
        );
    }
    let (found, free, _) = describe(&path);
    if free < MIN_FREE_BYTES {
        return Check::limited(name, found, "long scripts may not fit", "make room there");
    }
    Check::ok(name, found, meaning)
}

/// Directory, models and wakes of `karyi supervise`.
fn supervisor() -> Check {
    let name = "supervisor";
    let meaning = "`karyi supervise` keeps its work there, and notices changed files at once";
    let directory = match state_dir::supervise_dir() {
        Ok(directory) => directory,
        Err(error) => return Check::limited(name, error.message, meaning, &error.hint),
    };
    let model = model::choose(None).map_or_else(|_| "none".to_owned(), |chosen| chosen.name);
    let watches = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let watches = watches
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let shown = watches.map_or("no".to_owned(), |count| count.to_string());
    let found = format!(
        "{}, model {model}, {shown} inotify watches",
        directory.display()
    );
    if let Some(defect) = defect_of_question(&directory) {
        let found = format!("{found}; pending_question.json cannot be used: {defect}");
        let meaning = "the open question is lost, and the Teller may ask it again";
        return Check::limited(name, found, meaning, "`karyi tasks` sets the file aside");
    }
    if watches.is_none_or(|count| count < MIN_WATCHES) {
        let meaning = "`karyi supervise` notices changed files only once a second";
        return Check::limited(name, found, meaning, "raise fs.inotify.max_user_watches");
    }
    Check::ok(name, found, meaning)
}

/// Returns why the open question of a supervisor cannot be read. A directory that is not there is not made.
fn defect_of_question(directory: &Path) -> Option<String> {
    if !directory.join("pending_question.json").exists() {
        return None;
    }
    let state = StateDirectory::open(&directory.canonicalize().ok()?).ok()?;
    question::defect(&state)
}

/// Describes a directory, and returns its free bytes and its permissions.
fn describe(path: &Path) -> (String, u64, u32) {
    let free = nix::sys::statvfs::statvfs(path).map_or(0, |disk| {
        #[allow(clippy::useless_conversion, reason = "macOS counts in 32 bits")]
        let blocks = u64::from(disk.blocks_available());
        blocks.saturating_mul(disk.fragment_size())
    });
    let (mode, owner) = std::fs::metadata(path).map_or((0, 0), |m| (m.mode() & 0o777, m.uid()));
    let (shown, room) = (path.display(), free >> 20);
    let found = format!("{shown}, mode {mode:o}, owner {owner}, {room} MiB free");
    (found, free, mode)
}

const STATE: &str = "state directory";
const STATE_MEANING: &str = "holds the journal of changes and long outputs";
const NO_STATE: &str = "changes cannot be undone, and long outputs have no file";
const OTHER_STATE: &str = "make it usable for your user, or name another directory with KARYI_HOME";

fn state_directory() -> Check {
    let path = match state_dir::state_dir() {
        Ok(path) => path,
        Err(error) => return Check::limited(STATE, error.message, NO_STATE, &error.hint),
    };
    let shown = path.display();
    // The first change makes what is not there yet.
    let mut parts = path.ancestors();
    let existing = parts.find(|part| part.symlink_metadata().is_ok());
    let existing = existing.unwrap_or(&path);
    if let Err(error) = tempfile::tempfile_in(existing) {
        let place = existing.display();
        let found = format!("{shown}: nothing can be written to {place}: {error}");
        return Check::limited(STATE, found, NO_STATE, OTHER_STATE);
    }
    if existing != path {
        let found = format!("{shown}, which the first change of a file makes");
        return Check::ok(STATE, found, STATE_MEANING);
    }
    let (found, free, mode) = describe(&path);
    if mode & 0o022 != 0 {
        let advice = format!("chmod go-w {}", quote(path.as_os_str()));
        let meaning = "other users can change what an undo restores";
        return Check::limited(STATE, found, meaning, &advice);
    }
    if free < MIN_FREE_BYTES {
        return Check::limited(STATE, found, NO_STATE, "make room there");
    }
    state_of_runs(&path, found)
}

/// Tells what killed runs left in the state directory.
fn state_of_runs(path: &Path, found: String) -> Check {
    let broken = match undo_journal::open(None) {
        Ok(journal) => pending_files(&journal).len(),
        Err(error) => {
            let found = format!("{found}; {error:#}");
            return Check::limited(STATE, found, NO_STATE, OTHER_STATE);
        }
    };
    if broken > 0 {
        let found = format!("{found}; {broken} files are half changed by a killed karyi");
        let meaning = "the change is neither done nor undone";
        let advice = "`karyi undo --dry-run` shows them; the next edit or undo mends them";
        return Check::limited(STATE, found, meaning, advice);
    }
    let found = match state_dir::leftovers(&path.join("output")).count() {
        0 => found,
        dead => format!("{found}; the next run removes the files of {dead} killed runs"),
    };
    Check::ok(STATE, found, STATE_MEANING)
}

fn keyring() -> Check {
    match vault::keyring().probe() {
        Ok(()) => Check::ok("keyring", "answers and is unlocked", "can store secrets"),
        Err(error) => {
            let found = format!("{}: {}", error.code.as_str(), error.message);
            let meaning = "cannot store secrets; --vault age stores them in a file";
            Check::limited("keyring", found, meaning, &error.hint)
        }
    }
}

fn secrets() -> Check {
    let place = match VaultLocation::find(&VaultFlags::default(), None) {
        Ok(place) => place,
        Err(error) => {
            return Check::limited("secrets", error.message, "none can be stored", &error.hint);
        }
    };
    if is_inside_session() {
        let found = "inside a session, where the store is not opened";
        return Check::limited("secrets", found, "none is used here", "nothing");
    }
    let checks = var::checks(&place, false);
    let words: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
    let found = words.join("; ");
    match checks.iter().find(|check| check.health != Health::Ok) {
        None => Check::ok("secrets", found, "see `karyi var list`"),
        Some(bad) => Check::limited("secrets", found, &bad.meaning, &bad.advice),
    }
}

fn locale() -> Check {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names.into_iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some((name, value))
    });
    let Some((name, value)) = set else {
        return no_utf8("none set".to_owned());
    };
    let lower = value.to_lowercase();
    if lower.contains("utf-8") || lower.contains("utf8") {
        return Check::ok("locale", format!("{name}={value}"), "text is UTF-8");
    }
    no_utf8(format!("{name}={value} is not UTF-8"))
}

fn no_utf8(found: String) -> Check {
    let meaning = "sessions get LC_CTYPE=C.UTF-8";
    Check::limited("locale", found, meaning, "set LANG to a locale with UTF-8")
}

fn terminal() -> Check {
    let name = "terminal";
    let term = std::env::var("TERM").unwrap_or_default();
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = if is_plain { ", NO_COLOR is set" } else { "" };
    if !std::io::stdin().is_terminal() && !std::io::stdout().is_terminal() {
        let found = format!("standard input and output are none{colours}");
        let has_one = std::fs::File::open("/dev/tty").is_ok();
        let meaning = if has_one {
            "reports are XML; questions use /dev/tty"
        } else {
            "reports are XML; values cannot be asked for"
        };
        return Check::limited(
            name,
            found,
            meaning,
            "nothing, unless a user should be asked",
        );
    }
    let (columns, rows) = crossterm::terminal::size().unwrap_or_default();
    let found = format!("{columns} columns, {rows} rows, TERM={term}{colours}");
    if term.is_empty() || term == "dumb" {
        let meaning = "no colours and no spinner";
        return Check::limited(name, found, meaning, "set TERM to the type of the terminal");
    }
    Check::ok(name, found, "reports are text; values can be asked for")
}

fn open_files() -> Check {
    limit(
        ("open files", Resource::RLIMIT_NOFILE, MIN_OPEN_FILES),
        "a session needs about 20",
        "raise it with ulimit -n",
    )
}

#[cfg(not(target_os = "macos"))]
fn processes() -> Check {
    limit(
        ("processes", Resource::RLIMIT_NPROC, MIN_PROCESSES),
        "threads and processes of the user count",
        "raise it with ulimit -u",
    )
}

/// Reports nothing: the system has no interface for it.
#[cfg(target_os = "macos")]
fn processes() -> Check {
    Check::ok(
        "processes",
        "not known",
        "threads and processes of the user count",
    )
}

fn limit((name, resource, enough): (&str, Resource, u64), meaning: &str, advice: &str) -> Check {
    match getrlimit(resource) {
        Ok((RLIM_INFINITY, _)) => Check::ok(name, "no limit", meaning),
        Ok((soft, hard)) => {
            let most = if hard == RLIM_INFINITY {
                "no limit".to_owned()
            } else {
                hard.to_string()
            };
            let found = format!("{soft}, at most {most}");
            if soft < enough {
                return Check::limited(name, found, meaning, advice);
            }
            Check::ok(name, found, meaning)
        }
        Err(error) => Check::limited(name, error.to_string(), meaning, advice),
    }
}

fn clock() -> Check {
    let meaning = "used for dates in reports, not for time limits";
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let found = format!("{now} s since 1970");
    if now < EARLIEST_S {
        return Check::limited("clock", found, meaning, "set the clock");
    }
    Check::ok("clock", found, meaning)
}
