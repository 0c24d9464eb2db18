//! Ends the processes of sessions whose program was killed, and removes their files.
//!
//! A program that exits by itself leaves nothing. A killed one leaves its session's directory, and processes that
//! survive both the end of the terminal and the signal to the shell. The next session in the same runtime directory
//! sweeps them. Only a process that carries the stamp or the tag of such a session, or is in the session of its shell,
//! is ended; both are random, and a pid counts only together with its start time.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use karyi_core::limits;

use crate::process::{self, Process};
use crate::shell::secret_carriers;
use crate::teardown::registry::find_tag;
use crate::teardown::session_record::{self, ProcessIdentity, SessionRecord};
use crate::teardown::stamp;

/// Prefix of the names of session directories.
pub(crate) const PREFIX: &str = "session-";

/// An abandoned session.
struct AbandonedSession {
    directory: PathBuf,
    /// `None` when its owner was killed before it wrote one.
    record: Option<SessionRecord>,
    /// Keeps other sweeps away.
    _lock: File,
}

/// Ends abandoned sessions in a runtime directory. Without any it costs a few system calls for each session there.
pub(crate) fn sweep(runtime_dir: &Path) {
    let entries = fs::read_dir(runtime_dir).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let abandoned: Vec<AbandonedSession> = names
        .take(limits::MAX_SWEPT_SESSIONS)
        .filter_map(|entry| find_abandoned(entry.path()))
        .collect();
    if abandoned.is_empty() {
        return;
    }
    let world = session_record::pid_domain();
    let records = abandoned.iter().filter_map(|found| found.record.as_ref());
    let records: Vec<&SessionRecord> = records
        .filter(|record| record.pid_domain == world && !contains_this_process(record))
        .collect();
    let are_gone = end_sessions(&records);
    for found in &abandoned {
        secret_carriers::remove_files_of(&found.directory);
        // Processes that run on, and files that cannot be removed, are left to the next start.
        if are_gone {
            let _ = fs::remove_dir_all(&found.directory);
        }
    }
}

/// Returns the session of a directory if its owner is gone.
fn find_abandoned(directory: PathBuf) -> Option<AbandonedSession> {
    let metadata = fs::symlink_metadata(&directory).ok()?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return None;
    }
    // Checked before locking, because a new owner must get the lock.
    if !is_gone(session_record::read(&directory).as_ref(), &metadata) {
        return None;
    }
    let lock = session_record::lock(&directory)?;
    let record = session_record::read(&directory);
    is_gone(record.as_ref(), &metadata).then_some(AbandonedSession {
        directory,
        record,
        _lock: lock,
    })
}

/// Returns true if the owner of a directory with this record is gone.
fn is_gone(record: Option<&SessionRecord>, directory: &Metadata) -> bool {
    match record {
        Some(record) => record.pid_domain != session_record::pid_domain() || !is_alive(record),
        // A session may be starting.
        None => directory.modified().is_ok_and(|at| {
            at.elapsed()
                .is_ok_and(|age| age > limits::UNFINISHED_SESSION_AGE)
        }),
    }
}

/// Returns true if the owner runs; a zombie does not.
fn is_alive(record: &SessionRecord) -> bool {
    let owner = record.owner;
    let is_ended = process::find(owner.pid).is_some_and(|process| process.is_zombie());
    !is_ended && session_record::identity_of(owner.pid) == Some(owner)
}

/// Returns true if this program runs inside the session, and would end itself.
fn contains_this_process(record: &SessionRecord) -> bool {
    belongs(std::process::id().cast_signed(), record)
}

/// Ends the processes of sessions; returns true if none was left in the end.
fn end_sessions(records: &[&SessionRecord]) -> bool {
    let until = Instant::now() + limits::SWEEP_TIMEOUT;
    // A process that was just being started shows in the second scan.
    let (mut quiet, mut wanted) = (0, limits::QUIET_ENDING_SCANS);
    while !records.is_empty() && quiet < wanted {
        if Instant::now() >= until {
            return false;
        }
        let left = remaining_processes(records);
        for seen in &left {
            process::signal(seen, Signal::SIGKILL);
        }
        if kill_newest(records) || !left.is_empty() {
            (quiet, wanted) = (0, limits::QUIET_SWEEP_SCANS);
            sleep(limits::WAIT_SCAN_MIN);
        } else {
            quiet += 1;
        }
    }
    true
}

/// Kills the newest processes of the sessions; returns true if there were any. A process that forks and exits without
/// pause escapes every full scan, but is always among the newest.
fn kill_newest(records: &[&SessionRecord]) -> bool {
    let mut is_any = false;
    for _ in 0..limits::QUICK_ENDING_SCANS {
        let Some(newest) = process::newest() else {
            break;
        };
        // The last first: by the time the others are checked it has moved on.
        for pid in (newest - limits::NEWEST_PROCESSES..=newest + 2).rev() {
            // Opened before it is checked: the pid may be reused.
            let Some(descriptor) = process::open(pid) else {
                continue;
            };
            let runs = || process::find(pid).is_some_and(|seen| !seen.is_zombie());
            if records.iter().any(|record| is_stamped(pid, record)) && runs() {
                is_any = true;
                let _ = process::send(&descriptor, Signal::SIGKILL);
            }
        }
    }
    is_any
}

/// Returns the running processes of the sessions.
fn remaining_processes(records: &[&SessionRecord]) -> Vec<Process> {
    let shells = records.iter().flat_map(|record| &record.shells);
    let sessions: Vec<i32> = shells
        .filter(|shell| session_record::identity_of(shell.pid) == Some(**shell))
        .map(|shell: &ProcessIdentity| shell.pid)
        .collect();
    let is_left = |process: &Process| {
        !process.is_zombie()
            && (sessions.contains(&process.session)
                || records.iter().any(|record| belongs(process.pid, record)))
    };
    process::all().into_iter().filter(is_left).collect()
}

fn belongs(pid: i32, record: &SessionRecord) -> bool {
    is_stamped(pid, record) || find_tag(pid).is_some_and(|tag| tag == record.tag)
}

fn is_stamped(pid: i32, record: &SessionRecord) -> bool {
    let stamp = record.stamp.zip(stamp::limits_of(pid));
    stamp.is_some_and(|(stamp, limits)| stamp.is_on(limits))
}
