//! What a session leaves in its directory about itself, so that a later start of the program can
//! end what is left of it when this program was killed.
//!
//! The directory is locked as long as its owner lives; the kernel takes the lock away however the
//! owner ends. Where locks do not work the owner is known by its process id and the time it was
//! started at, as a process id is used again.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::limits;

use super::stamp::Stamp;

/// The file's name in the session's directory.
const NAME: &str = "owner";

/// A process that a process id alone would not name for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Birth {
    pub(super) pid: i32,
    /// When it was started, in ticks since the system was.
    pub(super) started: u64,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The process whose session it is.
    pub(super) owner: Birth,
    /// Where process ids mean the same: the boot of the system and the namespace.
    pub(super) world: String,
    pub(super) tag: String,
    pub(super) stamp: Option<Stamp>,
    pub(super) shells: Vec<Birth>,
}

/// A session's directory that no other process takes for abandoned.
#[derive(Debug)]
pub(super) struct Claim {
    record: File,
    _lock: Option<File>,
}

impl Claim {
    /// Locks a new directory and writes the record of its session.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) fn new(directory: &Path, tag: &str, stamp: Option<Stamp>) -> io::Result<Self> {
        let lock = lock(directory);
        let owner = birth(std::process::id().cast_signed());
        let mut text = format!("world {}\ntag {tag}\n", world());
        if let Some(owner) = owner {
            let _ = writeln!(text, "owner {} {}", owner.pid, owner.started);
        }
        if let Some(stamp) = stamp {
            let _ = writeln!(text, "stamp {stamp}");
        }
        let mut options = File::options();
        options.append(true).create_new(true).mode(0o600);
        let mut record = options.open(directory.join(NAME))?;
        record.write_all(text.as_bytes())?;
        Ok(Self {
            record,
            _lock: lock,
        })
    }

    /// Adds a shell that was started.
    pub(super) fn add_shell(&mut self, pid: i32) {
        if let Some(shell) = birth(pid) {
            let line = format!("shell {} {}\n", shell.pid, shell.started);
            // What is not on the record is still known by its stamp.
            let _ = self.record.write_all(line.as_bytes());
        }
    }
}

/// Locks a directory as long as the result lives; none when somebody else has done so.
pub(super) fn lock(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    directory.try_lock().ok()?;
    Some(directory)
}

/// Reads the record of a session.
pub(super) fn read(directory: &Path) -> Option<Record> {
    use std::io::Read as _;
    let file = File::open(directory.join(NAME)).ok()?;
    let mut text = String::new();
    file.take(limits::MAX_RECORD_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    parse(&text)
}

fn parse(text: &str) -> Option<Record> {
    let mut owner = None;
    let (mut world, mut tag, mut stamp, mut shells) = (None, None, None, Vec::new());
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("owner", value)) => owner = parse_birth(value),
            Some(("world", value)) => world = Some(value.to_owned()),
            Some(("tag", value)) => tag = Some(value.to_owned()),
            Some(("stamp", value)) => stamp = Stamp::parse(value),
            Some(("shell", value)) => shells.extend(parse_birth(value)),
            _ => {}
        }
    }
    Some(Record {
        owner: owner?,
        world: world?,
        tag: tag.filter(|tag| !tag.is_empty())?,
        stamp,
        shells,
    })
}

fn parse_birth(text: &str) -> Option<Birth> {
    let (pid, started) = text.split_once(' ')?;
    Some(Birth {
        pid: pid.parse().ok()?,
        started: started.parse().ok()?,
    })
}

/// Returns a process that runs.
pub(super) fn birth(pid: i32) -> Option<Birth> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    // The 22nd field; the name is the second.
    let started = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(Birth { pid, started })
}

/// Returns a name for where process ids mean the same.
pub(super) fn world() -> String {
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
        let mut claim = Claim::new(directory.path(), "t1", stamp).unwrap();
        let own = std::process::id().cast_signed();
        claim.add_shell(own);
        claim.add_shell(-1);
        let expected = Record {
            owner: birth(own).unwrap(),
            world: world(),
            tag: "t1".into(),
            stamp,
            shells: vec![birth(own).unwrap()],
        };
        assert_eq!(read(directory.path()), Some(expected));
    }

    #[test]
    fn a_directory_is_locked_as_long_as_its_claim_lives() {
        let directory = tempfile::tempdir().unwrap();
        let claim = Claim::new(directory.path(), "t1", None).unwrap();
        assert!(lock(directory.path()).is_none());
        drop(claim);
        assert!(lock(directory.path()).is_some());
    }

    #[test]
    fn half_a_record_is_none() {
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
