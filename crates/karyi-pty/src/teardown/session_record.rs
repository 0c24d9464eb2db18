//! The record that a session leaves in its directory, so that a later start of the program can end its processes if
//! this program is killed.
//!
//! The directory is locked while its owner lives; the kernel releases the lock however the owner ends. Where locks do
//! not work the owner is identified by pid and start time, because pids are reused.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use karyi_core::limits;

use crate::process;
use crate::teardown::stamp::Stamp;

/// Name of the file in the session's directory.
const NAME: &str = "owner";
/// Name of the file while it is written.
const DRAFT_NAME: &str = "owner.new";

/// A process, identified for ever by pid and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: i32,
    /// Start time, in clock ticks since boot.
    pub(crate) started: u64,
}

/// Record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    /// The process that owns the session.
    pub(crate) owner: ProcessIdentity,
    /// Scope of pids: the boot of the system and the pid namespace.
    pub(crate) pid_domain: String,
    pub(crate) tag: String,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) shells: Vec<ProcessIdentity>,
}

/// A locked directory of a session, and its record.
#[derive(Debug)]
pub(crate) struct DirectoryClaim {
    directory: PathBuf,
    /// The lines before those of the shells.
    head: String,
    record: File,
    _lock: Option<File>,
}

impl DirectoryClaim {
    /// Locks a new directory and writes the record of its session.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn new(directory: &Path, tag: &str, stamp: Option<Stamp>) -> io::Result<Self> {
        let lock = lock_own(directory);
        let owner = identity_of(std::process::id().cast_signed());
        let mut head = format!("world {}\ntag {tag}\n", pid_domain());
        if let Some(owner) = owner {
            let _ = writeln!(head, "owner {} {}", owner.pid, owner.started);
        }
        if let Some(stamp) = stamp {
            let _ = writeln!(head, "stamp {stamp}");
        }
        Ok(Self {
            record: write(directory, &head)?,
            directory: directory.to_owned(),
            head,
            _lock: lock,
        })
    }

    /// Rewrites the record with these shells: earlier ones are gone.
    pub(crate) fn set_shells(&mut self, shells: &[i32]) {
        let identities = shells.iter().filter_map(|pid| identity_of(*pid));
        let lines: String = identities.map(shell_line).collect();
        // If that fails the old record stays valid.
        if let Ok(record) = write(&self.directory, &format!("{}{lines}", self.head)) {
            self.record = record;
        }
    }

    /// Adds a shell to the record.
    pub(crate) fn add_shell(&mut self, pid: i32) {
        if let Some(shell) = identity_of(pid) {
            // A shell that is not on record is still identified by its stamp.
            let _ = self.record.write_all(shell_line(shell).as_bytes());
        }
    }
}

fn shell_line(shell: ProcessIdentity) -> String {
    format!("shell {} {}\n", shell.pid, shell.started)
}

/// Writes a record atomically, and leaves it open for more lines.
fn write(directory: &Path, text: &str) -> io::Result<File> {
    let draft = directory.join(DRAFT_NAME);
    let mut options = File::options();
    options.append(true).create(true).mode(0o600);
    let mut record = options.open(&draft)?;
    record.set_len(0)?;
    record.write_all(text.as_bytes())?;
    fs::rename(draft, directory.join(NAME))?;
    Ok(record)
}

/// Locks our own directory. A sweep may hold the lock for a moment.
fn lock_own(directory: &Path) -> Option<File> {
    let until = Instant::now() + limits::CLAIM_TIMEOUT;
    let directory = File::open(directory).ok()?;
    loop {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(limits::WAIT_SCAN_MIN),
            Err(_) => return None,
        }
    }
}

/// Locks a directory while the result lives; returns `None` when another process holds the lock.
pub(crate) fn lock(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    directory.try_lock().ok()?;
    Some(directory)
}

/// Reads the record of a session.
pub(crate) fn read(directory: &Path) -> Option<SessionRecord> {
    use std::io::Read as _;
    let file = File::open(directory.join(NAME)).ok()?;
    let mut text = String::new();
    file.take(limits::MAX_RECORD_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    parse(&text)
}

fn parse(text: &str) -> Option<SessionRecord> {
    let mut owner = None;
    let (mut world, mut tag, mut stamp, mut shells) = (None, None, None, Vec::new());
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("owner", value)) => owner = parse_identity(value),
            Some(("world", value)) => world = Some(value.to_owned()),
            Some(("tag", value)) => tag = Some(value.to_owned()),
            Some(("stamp", value)) => stamp = Stamp::parse(value),
            Some(("shell", value)) => shells.extend(parse_identity(value)),
            _ => {}
        }
    }
    Some(SessionRecord {
        owner: owner?,
        pid_domain: world?,
        tag: tag.filter(|tag| !tag.is_empty())?,
        stamp,
        shells,
    })
}

fn parse_identity(text: &str) -> Option<ProcessIdentity> {
    let (pid, started) = text.split_once(' ')?;
    Some(ProcessIdentity {
        pid: pid.parse().ok()?,
        started: started.parse().ok()?,
    })
}

/// Returns the identity of a running process.
pub(crate) fn identity_of(pid: i32) -> Option<ProcessIdentity> {
    let started = process::find(pid)?.started;
    Some(ProcessIdentity { pid, started })
}

/// Returns the scope of pids: the boot of the system and the pid namespace.
pub(crate) fn pid_domain() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let stamp = Stamp::parse("3:9");
        let mut claim = DirectoryClaim::new(directory.path(), "t1", stamp).unwrap();
        let own = std::process::id().cast_signed();
        claim.add_shell(own);
        claim.add_shell(-1);
        let expected = SessionRecord {
            owner: identity_of(own).unwrap(),
            pid_domain: pid_domain(),
            tag: "t1".into(),
            stamp,
            shells: vec![identity_of(own).unwrap()],
        };
        assert_eq!(read(directory.path()), Some(expected));
    }

    #[test]
    fn a_directory_is_locked_as_long_as_its_claim_lives() {
        let directory = tempfile::tempdir().unwrap();
        let claim = DirectoryClaim::new(directory.path(), "t1", None).unwrap();
        assert!(lock(directory.path()).is_none());
        drop(claim);
        assert!(lock(directory.path()).is_some());
    }

    #[test]
    fn a_claim_waits_for_a_sweep() {
        let directory = tempfile::tempdir().unwrap();
        let other = lock(directory.path()).unwrap();
        let path = directory.path().to_owned();
        let (begins, begun) = std::sync::mpsc::channel();
        let claiming = std::thread::spawn(move || {
            begins.send(()).unwrap();
            DirectoryClaim::new(&path, "t1", None).unwrap()
        });
        begun.recv().unwrap();
        drop(other);
        let claim = claiming.join().unwrap();
        assert!(lock(directory.path()).is_none());
        drop(claim);
    }

    #[test]
    fn ended_shells_are_removed_from_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let mut claim = DirectoryClaim::new(directory.path(), "t1", None).unwrap();
        let own = std::process::id().cast_signed();
        (0..3).for_each(|_| claim.add_shell(own));
        let shells = || read(directory.path()).unwrap().shells.len();
        assert_eq!(shells(), 3);
        claim.set_shells(&[own, -1]);
        assert_eq!(shells(), 1);
        claim.add_shell(own);
        assert_eq!(shells(), 2);
    }

    #[test]
    fn an_incomplete_record_is_rejected() {
        let whole = "world w\ntag t\nowner 1 2\n";
        assert!(parse(whole).is_some());
        for (place, _) in whole.match_indices('\n').skip(1) {
            assert!(parse(&whole[..place - 4]).is_none(), "{place}");
        }
        for text in [
            "",
            "world w\ntag t\nowner x 2\n",
            "world w\ntag \nowner 1 2\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
