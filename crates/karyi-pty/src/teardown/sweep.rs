//! Ends what is left of sessions whose program was killed, and removes their files.
//!
//! A program that ends by itself leaves nothing. One that is killed leaves its session's directory,
//! and processes that neither the end of the terminal nor the signal to the shell has ended. The
//! next session that uses the same runtime directory looks at what it finds there. Only a process
//! that carries the stamp or the tag of such a session, or is in the session of its shell, is
//! ended; both are random, and a process id counts only together with its starting time.

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

/// How the names of directories of sessions begin.
pub(crate) const PREFIX: &str = "session-";

/// An abandoned session.
struct AbandonedSession {
    directory: PathBuf,
    /// None when its owner was killed before it could write one.
    record: Option<SessionRecord>,
    /// Keeps others away.
    _lock: File,
}

/// Ends what is left of abandoned sessions in a runtime directory. It costs a few system calls for
/// each session there when none is abandoned.
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
        .filter(|record| record.pid_domain == world && !is_around_us(record))
        .collect();
    let are_gone = end(&records);
    for found in &abandoned {
        secret_carriers::remove_files_of(&found.directory);
        // What runs on, and what cannot be removed, is tried again by the next start.
        if are_gone {
            let _ = fs::remove_dir_all(&found.directory);
        }
    }
}

/// Returns the session of a directory when its owner is gone.
fn find_abandoned(directory: PathBuf) -> Option<AbandonedSession> {
    let metadata = fs::symlink_metadata(&directory).ok()?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return None;
    }
    // Before it is locked: who makes it must be able to.
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
        // Somebody may be making it.
        None => directory.modified().is_ok_and(|at| {
            at.elapsed()
                .is_ok_and(|age| age > limits::UNFINISHED_SESSION_AGE)
        }),
    }
}

/// Returns true if the owner still runs; one whose end nobody takes note of does not.
fn is_alive(record: &SessionRecord) -> bool {
    let owner = record.owner;
    let is_ended = process::find(owner.pid).is_some_and(|process| process.is_zombie());
    !is_ended && session_record::identity_of(owner.pid) == Some(owner)
}

/// Returns true if this program runs inside the session: it would end itself.
fn is_around_us(record: &SessionRecord) -> bool {
    belongs(std::process::id().cast_signed(), record)
}

/// Ends what is left of sessions; returns whether nothing was seen of it in the end.
fn end(records: &[&SessionRecord]) -> bool {
    let until = Instant::now() + limits::SWEEP_TIMEOUT;
    // A process that was being started while it was looked for is there the second time.
    let (mut quiet, mut wanted) = (0, limits::QUIET_ENDING_LOOKS);
    while !records.is_empty() && quiet < wanted {
        if Instant::now() >= until {
            return false;
        }
        let left = left_of(records);
        for seen in &left {
            process::signal(seen, Signal::SIGKILL);
        }
        if kill_newest(records) || !left.is_empty() {
            (quiet, wanted) = (0, limits::QUIET_SWEEP_LOOKS);
            sleep(limits::WAIT_SCAN_MIN);
        } else {
            quiet += 1;
        }
    }
    true
}

/// Kills those of the sessions that were started just now; returns whether there were any. A process
/// that forks and ends without pause is somewhere else whenever a look at everything is over, but
/// always among the newest.
fn kill_newest(records: &[&SessionRecord]) -> bool {
    let mut is_any = false;
    for _ in 0..limits::QUICK_ENDING_LOOKS {
        let Some(newest) = process::newest() else {
            break;
        };
        // The last first: by the time the others have been looked at it is somewhere else.
        for pid in (newest - limits::NEWEST_PROCESSES..=newest + 2).rev() {
            // Before it is looked at: another may get its number meanwhile.
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

/// Returns the processes of the sessions.
fn left_of(records: &[&SessionRecord]) -> Vec<Process> {
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
