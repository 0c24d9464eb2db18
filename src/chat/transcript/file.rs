//! One transcript on the disk: written record by record, read back, and repaired.
//!
//! Each record is written at once and by one call, so a program that is killed loses no record that was complete. A
//! last line without its end is a record that was not complete: it is left out, and cut off before the next is written.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::Timestamp;

use crate::chat::transcript::record::{ChatStart, Record, TimedRecord, VERSION};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_vault::redact::Redactor;

/// Transcript that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// Its start.
    pub start: ChatStart,
    /// Time of the start.
    pub at: Timestamp,
    /// The records after the start.
    pub records: Vec<TimedRecord>,
    /// Damage that was found.
    pub damage: Damage,
    /// Bytes up to the end of the last complete record.
    whole_bytes: u64,
}

/// Damage of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Bytes of a last record that was not complete.
    pub torn_bytes: u64,
    /// Lines that are no records.
    pub bad_lines: u64,
}

impl Damage {
    /// Returns a sentence about it; nothing when there is none.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let torn = self.torn_bytes;
        let torn = (torn > 0)
            .then(|| format!("the last record was not complete, and {torn} bytes are left out"));
        let bad = match self.bad_lines {
            0 => None,
            1 => Some("a line is no record and is left out".to_owned()),
            count => Some(format!("{count} lines are no records and are left out")),
        };
        let parts: Vec<String> = torn.into_iter().chain(bad).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Transcript {
    /// Reads a transcript.
    ///
    /// # Errors
    /// The file cannot be read, is too large, does not begin as a transcript, or is of a later version.
    pub fn read(path: &Path, redactor: &Redactor) -> Result<Self, ToolError> {
        let file = open(path, File::options().read(true))?;
        Self::read_from(path, file, redactor)
    }

    /// Reads the start of a transcript alone.
    ///
    /// # Errors
    /// As those of [`Transcript::read`].
    pub(super) fn read_start(path: &Path, redactor: &Redactor) -> Result<ChatStart, ToolError> {
        let file = open(path, File::options().read(true))?;
        let mut line = Vec::new();
        let most = limits::MAX_TRANSCRIPT_BYTES;
        let read = BufReader::new(file.take(most)).read_until(b'\n', &mut line);
        read.map_err(|error| ToolError::from_io(path, &error))?;
        let parsed = Self::parse(&line, redactor);
        Ok(parsed.map_err(|reason| no_transcript(path, &reason))?.start)
    }

    fn read_from(path: &Path, file: File, redactor: &Redactor) -> Result<Self, ToolError> {
        let mut bytes = Vec::new();
        let most = limits::MAX_TRANSCRIPT_BYTES;
        let read = file.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| ToolError::from_io(path, &error))?;
        if bytes.len() as u64 > most {
            let message = format!("{} is larger than {most} bytes", path.display());
            return Err(ToolError::new(ErrorCode::FileTooLarge, message)
                .with_hint("start a new chat; the old one stays readable as a file"));
        }
        Self::parse(&bytes, redactor).map_err(|reason| no_transcript(path, &reason))
    }

    /// Parses the bytes of a transcript.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn parse(bytes: &[u8], redactor: &Redactor) -> Result<Self, String> {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let (whole, torn) = bytes.split_at(end);
        let mut lines = whole.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().ok_or("it has no complete record")?;
        let Some(TimedRecord {
            at,
            record: Record::Start(start),
        }) = Record::parse(first, redactor)?
        else {
            return Err("its first record is no start".to_owned());
        };
        if start.version > VERSION {
            let found = start.version;
            return Err(format!(
                "its version is {found}, and this karyi reads up to {VERSION}"
            ));
        }
        let mut transcript = Self {
            start,
            at,
            records: Vec::new(),
            damage: Damage {
                torn_bytes: torn.len() as u64,
                bad_lines: 0,
            },
            whole_bytes: whole.len() as u64,
        };
        for line in lines {
            match Record::parse(line, redactor) {
                Ok(record) => transcript.records.extend(record),
                Err(_) => transcript.damage.bad_lines += 1,
            }
        }
        Ok(transcript)
    }
}

fn no_transcript(path: &Path, reason: &str) -> ToolError {
    let message = format!("{} is no transcript: {reason}", path.display());
    ToolError::new(ErrorCode::Io, message)
        .with_hint("`karyi chats list --all` shows the transcripts that can be read")
}

/// Opens a file that is none but a regular one.
fn open(path: &Path, options: &mut std::fs::OpenOptions) -> Result<File, ToolError> {
    let of_io = |error: io::Error| ToolError::from_io(path, &error);
    // Opening does not wait for the writer of a pipe.
    let file = options.custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = file.map_err(of_io)?;
    match file.metadata().map_err(of_io)?.is_file() {
        true => Ok(file),
        false => {
            let message = format!("{} is no file", path.display());
            Err(ToolError::new(ErrorCode::NotAFile, message))
        }
    }
}

/// Opens the file of a chat, locked.
pub(super) fn lock(
    path: &Path,
    id: &str,
    options: &mut std::fs::OpenOptions,
) -> Result<File, ToolError> {
    let file = open(path, options)?;
    if is_locked(&file) {
        let message = format!("the chat {id} is open in another karyi");
        return Err(ToolError::new(ErrorCode::Unavailable, message)
            .with_hint("go on there, or end it first"));
    }
    Ok(file)
}

/// Locks a file; returns true when another one has it locked for longer than a moment. A process that was just forked has
/// the lock of its parent until it starts its program. Where the file system has no locks, nothing is known of others.
fn is_locked(file: &File) -> bool {
    let start = Instant::now();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if start.elapsed() >= limits::CHAT_LOCK_TIMEOUT {
            return true;
        }
        std::thread::sleep(limits::WAIT_SCAN_MIN);
    }
    false
}

/// Writes the records of one chat. The file is made with the first record, so a chat without one leaves none.
#[derive(Debug)]
pub struct TranscriptWriter {
    path: PathBuf,
    id: String,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Start of a chat without records.
    New(ChatStart),
    /// File with the length of its complete records; it is locked as long as it is open.
    Open(File, u64),
}

impl TranscriptWriter {
    /// Makes the writer of a new chat.
    #[must_use]
    pub(super) fn new(directory: &Path, id: String, start: ChatStart) -> Self {
        Self {
            path: path_of(directory, &id),
            id,
            target: Target::New(start),
        }
    }

    /// Opens the transcript of a chat to go on with, and cuts off a record that is not complete.
    ///
    /// # Errors
    /// The file cannot be read or written, or another karyi has the chat open.
    pub(super) fn resume(
        directory: &Path,
        id: String,
        redactor: &Redactor,
    ) -> Result<(Transcript, Self), ToolError> {
        let path = path_of(directory, &id);
        let file = lock(&path, &id, File::options().read(true).append(true))?;
        let of_io = |error: io::Error| ToolError::from_io(&path, &error);
        let reader = file.try_clone().map_err(of_io)?;
        let transcript = Transcript::read_from(&path, reader, redactor)?;
        if transcript.damage.torn_bytes > 0 {
            file.set_len(transcript.whole_bytes).map_err(of_io)?;
        }
        let target = Target::Open(file, transcript.whole_bytes);
        Ok((transcript, Self { path, id, target }))
    }

    /// Returns the id of the chat.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the path of the file, which may not exist yet.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a record.
    ///
    /// # Errors
    /// The file cannot be made or written. What is written of the record is taken back.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        let now = Timestamp::now();
        if let Target::New(start) = &self.target {
            let file = create(&self.path)?;
            let line = Record::Start(start.clone()).to_line(now);
            self.target = Target::Open(file, 0);
            self.append(&line)?;
        }
        self.append(&record.to_line(now))
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let Target::Open(file, whole_bytes) = &mut self.target else {
            return Ok(());
        };
        match file.write_all(line.as_bytes()) {
            Ok(()) => {
                *whole_bytes += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A half record would damage the next one.
                let _ = file.set_len(*whole_bytes);
                Err(error)
            }
        }
    }
}

/// Makes the file of a new chat, locked.
fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
    }
    let mut options = File::options();
    options.append(true).create_new(true).mode(0o600);
    let file = options.open(path)?;
    // Without locks on the file system two programs may go on with one chat.
    let _ = file.try_lock();
    Ok(file)
}

/// Returns the path of a chat's file.
pub(super) fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}{SUFFIX}"))
}

/// End of the name of a transcript.
pub(super) const SUFFIX: &str = ".jsonl";
