//! One directory of a state directory: its files by name, through a handle, without following symlinks.
//!
//! A file is written beside its place, synced and renamed, so each one is whole at every instant. Moves refuse to
//! replace a file: of two processes that move the same one, one succeeds.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::{ids, limits};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// Beginning of the name of a file that is being written.
const TEMPORARY: &str = ".tmp";

/// Flags to open a directory.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Open directory.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

/// Lock of the whole state directory for one change, held until this is dropped.
#[derive(Debug)]
pub(crate) struct ChangeLock {
    _handle: OwnedFd,
}

/// Outcome of moving a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// It was moved, by this call.
    Done,
    /// It is not there, or not any more.
    Missing,
    /// Another file has its name in the target.
    Occupied,
}

/// Refusal to read a file as one of karyi's own.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// There is no such file.
    Missing,
    /// It is no file of karyi, with the reason.
    Foreign(String),
    /// The system failed.
    System(io::Error),
}

impl StateFolder {
    /// Opens a directory by its path and creates it if needed.
    pub(crate) fn open(path: &Path) -> Result<Self, ToolError> {
        let failed = |error: io::Error| ToolError::from_io(path, &error);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let handle = rustix::fs::open(&path, DIRECTORY, Mode::empty());
        let handle = handle.map_err(|error| failed(error.into()))?;
        Ok(Self { path, handle })
    }

    /// Opens a directory inside this one and creates it if needed.
    pub(crate) fn child(&self, name: &str) -> Result<Self, ToolError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(ToolError::from_io(&path, &error.into())),
        }
        let handle = rustix::fs::openat(&self.handle, name, DIRECTORY, Mode::empty());
        let handle = handle.map_err(|error| ToolError::from_io(&path, &error.into()))?;
        Ok(Self { path, handle })
    }

    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the error of a failed operation on a file of this directory.
    pub(crate) fn error(&self, name: &str, error: &io::Error) -> ToolError {
        ToolError::from_io(&self.path.join(name), error)
    }

    /// Passes name and inode number of each file that is not being written to `found`, in no order. A changed file has
    /// another number.
    pub(crate) fn each_entry(
        &self,
        found: &mut dyn FnMut(&str, u64) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let failed = |error: Errno| self.error("", &error.into());
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if !name.starts_with('.') {
                found(&name, entry.ino())?;
            }
        }
        Ok(())
    }

    /// Returns the time of the last change of the list of files.
    pub(crate) fn modified(&self) -> Result<SystemTime, ToolError> {
        let stat = rustix::fs::fstat(&self.handle);
        let stat = stat.map_err(|error| self.error("", &error.into()))?;
        Ok(modified(&stat))
    }

    /// Tells whether its path still leads to it.
    pub(crate) fn is_there(&self) -> bool {
        is_same(
            rustix::fs::fstat(&self.handle),
            rustix::fs::stat(&self.path),
        )
    }

    /// Tells whether an open file still has this name.
    pub(crate) fn leads_to(&self, name: &str, file: &File) -> bool {
        let found = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        is_same(rustix::fs::fstat(file), found)
    }

    /// Opens a regular file that belongs to this user.
    fn open_file(&self, name: &str) -> Result<(File, Stat), ReadFailure> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::openat(&self.handle, name, flags | OFlags::CLOEXEC, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::NOENT => ReadFailure::Missing,
            Errno::LOOP => ReadFailure::Foreign("expected a file, found a symlink".into()),
            Errno::NXIO => ReadFailure::Foreign("expected a file, found a pipe or socket".into()),
            Errno::ACCESS => ReadFailure::Foreign("this user may not read it".into()),
            error => ReadFailure::System(error.into()),
        })?);
        let stat = rustix::fs::fstat(&file).map_err(|error| ReadFailure::System(error.into()))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(ReadFailure::Foreign(format!(
                "expected a file, found a {kind:?}"
            )));
        }
        if stat.st_uid != nix::unistd::geteuid().as_raw() {
            return Err(ReadFailure::Foreign("it belongs to another user".into()));
        }
        Ok((file, stat))
    }

    /// Reads a whole file of at most `most` bytes, with the time of its last change.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<(Vec<u8>, FileTime), ReadFailure> {
        let (file, stat) = self.open_file(name)?;
        let mut bytes = Vec::new();
        let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(ReadFailure::System)?;
        if bytes.len() as u64 > most {
            return Err(ReadFailure::Foreign(format!(
                "it is larger than {most} bytes"
            )));
        }
        Ok((bytes, FileTime::of(&stat)))
    }

    /// Returns size and time of a file, or `None` where no regular file of this user is.
    pub(crate) fn time_of(&self, name: &str) -> Option<FileTime> {
        let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| FileTime::of(&stat))
    }

    /// Tells whether something has this name.
    pub(crate) fn has(&self, name: &str) -> Result<bool, ToolError> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    /// Writes a file, in the place of an older one if there is one.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ToolError> {
        self.with_temporary(bytes, |temporary| {
            rustix::fs::renameat(&self.handle, temporary, &self.handle, name)
        })
        .map_err(|error| self.error(name, &error.into()))
    }

    /// Writes a file that must not exist yet; returns false when it does.
    pub(crate) fn write_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ToolError> {
        let written = self.with_temporary(bytes, |temporary| {
            rename_new(&self.handle, temporary, &self.handle, name)
        });
        match written {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    fn with_temporary(
        &self,
        bytes: &[u8],
        place: impl Fn(&str) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let chance = ids::random::<3>().map_err(|_| Errno::IO)?;
        let temporary = format!("{TEMPORARY}{}", ids::hex(&chance));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let handle = match rustix::fs::openat(&self.handle, &*temporary, flags, mode) {
            Ok(handle) => handle,
            // Another write has the same name by chance.
            Err(Errno::EXIST) => return self.with_temporary(bytes, place),
            Err(error) => return Err(error),
        };
        let mut file = File::from(handle);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let written = written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let placed = written.and_then(|()| place(&temporary));
        if placed.is_err() {
            let _ = rustix::fs::unlinkat(&self.handle, &*temporary, AtFlags::empty());
        }
        placed.map(|()| self.sync())
    }

    /// Moves a file of any kind into another directory.
    pub(crate) fn move_to(
        &self,
        name: &str,
        other: &Self,
        target: &str,
    ) -> Result<Move, ToolError> {
        let moved = self.move_unsynced(name, other, target)?;
        if moved == Move::Done {
            other.sync();
        }
        Ok(moved)
    }

    /// Moves a file into another directory to which the caller writes next.
    pub(crate) fn move_unsynced(
        &self,
        name: &str,
        other: &Self,
        target: &str,
    ) -> Result<Move, ToolError> {
        match rename_new(&self.handle, name, &other.handle, target) {
            Ok(()) => Ok(Move::Done),
            Err(Errno::NOENT) => Ok(Move::Missing),
            Err(Errno::EXIST) => Ok(Move::Occupied),
            Err(error) => Err(other.error(target, &error.into())),
        }
    }

    /// Removes a file; returns false when there is none.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, ToolError> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    /// Adds bytes to the end of a file; the caller holds the [`ChangeLock`]. An unfinished last line, which a killed
    /// process left, is cut off first.
    pub(crate) fn append_lines(
        &self,
        name: &str,
        lines: &[u8],
        sync: bool,
    ) -> Result<(), ToolError> {
        let failed = |error: io::Error| self.error(name, &error);
        let mut file = self.open_or_create(name)?;
        let found = file.metadata().map_err(failed)?;
        let end = whole_lines(&mut file, found.len()).map_err(failed)?;
        if end < found.len() {
            file.set_len(end).map_err(failed)?;
        }
        io::Seek::seek(&mut file, io::SeekFrom::Start(end)).map_err(failed)?;
        file.write_all(lines).map_err(failed)?;
        if sync {
            file.sync_data().map_err(failed)?;
        }
        Ok(())
    }

    /// Opens a file to read and write it in place, and creates it if needed.
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, ToolError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::RUSR | Mode::WUSR;
        let opened = rustix::fs::openat(&self.handle, name, flags | OFlags::CLOEXEC, mode);
        let file = File::from(opened.map_err(|error| self.error(name, &error.into()))?);
        let found = file.metadata().map_err(|error| self.error(name, &error))?;
        match found.is_file() {
            true => Ok(file),
            false => Err(self.error(name, &io::Error::other(karyi_core::error::NoFile))),
        }
    }

    /// Opens a file as [`Self::open_file`], with its length; `None` when there is none.
    pub(crate) fn open_existing(&self, name: &str) -> Result<Option<(File, u64)>, ToolError> {
        match self.open_file(name) {
            Ok((file, stat)) => Ok(Some((file, FileTime::of(&stat).size))),
            Err(ReadFailure::Missing) => Ok(None),
            Err(failure) => Err(self.failure(name, failure)),
        }
    }

    /// Reads the last bytes of a file, from the start of a line on; nothing when there is no file.
    pub(crate) fn read_tail(&self, name: &str, most: u64) -> Result<Vec<u8>, ToolError> {
        let end = self.time_of(name).map_or(0, |time| time.size);
        self.read_before(name, end, most)
    }

    /// Reads the bytes before a place in a file, as [`Self::read_tail`].
    pub(crate) fn read_before(
        &self,
        name: &str,
        end: u64,
        most: u64,
    ) -> Result<Vec<u8>, ToolError> {
        let start = end.saturating_sub(most);
        let mut bytes = self.read_range(name, start, end)?;
        if start > 0 {
            let first = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1);
            bytes.drain(..first);
        }
        Ok(bytes)
    }

    /// Reads a part of a file, as far as there is one.
    pub(crate) fn read_range(
        &self,
        name: &str,
        start: u64,
        end: u64,
    ) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        if let Some((mut file, _)) = self.open_existing(name)? {
            let read = io::Seek::seek(&mut file, io::SeekFrom::Start(start));
            read.and_then(|_| file.take(end.saturating_sub(start)).read_to_end(&mut bytes))
                .map_err(|error| self.error(name, &error))?;
        }
        Ok(bytes)
    }

    /// Returns the length of a file up to the end of its last whole line; 0 when there is no file.
    pub(crate) fn end_of_lines(&self, name: &str) -> Result<u64, ToolError> {
        match self.open_existing(name)? {
            Some((mut file, length)) => {
                whole_lines(&mut file, length).map_err(|error| self.error(name, &error))
            }
            None => Ok(0),
        }
    }

    /// Makes the error of a file that cannot be read.
    pub(crate) fn failure(&self, name: &str, failure: ReadFailure) -> ToolError {
        match failure {
            ReadFailure::Missing => self.error(name, &io::ErrorKind::NotFound.into()),
            ReadFailure::System(error) => self.error(name, &error),
            ReadFailure::Foreign(reason) => {
                let message = format!("{}: {reason}", self.path.join(name).display());
                ToolError::new(ErrorCode::NotAFile, message).with_hint(
                    "karyi keeps a file of its own there: move away what is in its place",
                )
            }
        }
    }

    /// Waits for other changes of the state directory and locks it.
    ///
    /// # Errors
    /// `edit_busy` when another process holds the lock too long.
    pub(crate) fn lock(&self) -> Result<ChangeLock, ToolError> {
        let handle = rustix::fs::openat(&self.handle, ".", DIRECTORY, Mode::empty());
        let handle = handle.map_err(|error| self.error("", &error.into()))?;
        let end = Instant::now() + limits::STATE_LOCK_WAIT;
        loop {
            match rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(ChangeLock { _handle: handle }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => {
                    std::thread::sleep(limits::STATE_LOCK_STEP);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let message = format!("{}: another process changes it", self.path.display());
                    return Err(ToolError::new(ErrorCode::EditBusy, message));
                }
                Err(error) => return Err(self.error("", &error.into())),
            }
        }
    }

    /// Removes files that a killed process was writing.
    pub(crate) fn sweep(&self) -> Result<(), ToolError> {
        let failed = |error: Errno| self.error("", &error.into());
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            let age = self.time_of(&name).and_then(FileTime::age);
            if name.starts_with(TEMPORARY) && age.is_some_and(|age| age > limits::LEFTOVER_AGE) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Syncs the list of files. A file system that cannot do so offers nothing better.
    fn sync(&self) {
        let _ = rustix::fs::fsync(&self.handle);
    }
}

/// Size, time of the last change and inode number of a file: equal means unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileTime {
    pub(crate) size: u64,
    modified: SystemTime,
    inode: u64,
}

impl FileTime {
    fn of(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: modified(stat),
            inode: stat.st_ino,
        }
    }

    fn age(self) -> Option<Duration> {
        self.modified.elapsed().ok()
    }
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// Tells whether both are known, and of one file.
fn is_same(one: Result<Stat, Errno>, other: Result<Stat, Errno>) -> bool {
    let place = |stat: Stat| (stat.st_dev, stat.st_ino);
    one.map(place).is_ok_and(|one| other.map(place) == Ok(one))
}

/// Renames a file to a name that must not exist yet.
fn rename_new(from: &OwnedFd, name: &str, to: &OwnedFd, target: &str) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, target, RenameFlags::NOREPLACE) {
        // The file system does not support this kind of rename; a link never replaces a file either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(from, name, to, target, AtFlags::empty())?;
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        }
        renamed => renamed,
    }
}

/// Returns the length of a file up to the end of its last whole line.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = vec![0; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let size = usize::try_from(end - start).unwrap_or(block.len());
        let part = block.get_mut(..size).unwrap_or_default();
        io::Seek::seek(file, io::SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
