//! Carries secrets into the shell: a FIFO for their values, a private file for each path.
//!
//! All values of a command come through one FIFO. It is unlinked as soon as the shell has opened it and before
//! anything is written, so that no other process can open it; its bytes reach no disk. A file is in memory where the
//! system has a memory file system, and is removed with the command.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use zeroize::Zeroizing;

use karyi_core::limits;
use karyi_core::secret::{Binding, SecretValue, VariableContent};

use crate::shell::Dialect;

/// Carrier of secrets to the shell, for as long as their command runs.
#[derive(Debug)]
pub(crate) enum SecretCarrier {
    /// The shell reads values from the FIFO into these variables.
    Fifo(SecretFifo, Vec<String>),
    /// The command reads a value from the file; the variable holds its path.
    File(SecretFile, String),
}

/// Creates the carriers for bindings: one FIFO for all values, since each FIFO costs the shell a wait, and a file for
/// each path. `place` returns unused names in the session's directory.
pub(crate) fn carriers(
    bindings: &[Binding],
    place: impl Fn(usize) -> PathBuf,
) -> io::Result<Vec<SecretCarrier>> {
    let (values, paths): (Vec<&Binding>, Vec<&Binding>) = bindings
        .iter()
        .partition(|binding| binding.holds == VariableContent::Value);
    let mut carriers = Vec::new();
    if !values.is_empty() {
        let fifo = SecretFifo::new(place(0), values.iter().map(|binding| &binding.value))?;
        let variables = values.iter().map(|binding| binding.variable());
        carriers.push(SecretCarrier::Fifo(fifo, variables.collect()));
    }
    for (index, binding) in paths.into_iter().enumerate() {
        let file = SecretFile::new(&place(index + 1), &binding.value)?;
        carriers.push(SecretCarrier::File(file, binding.variable()));
    }
    Ok(carriers)
}

impl SecretCarrier {
    /// Returns the line that sets the variables.
    pub(crate) fn line(&self, dialect: &dyn Dialect) -> String {
        match self {
            Self::Fifo(fifo, variables) => {
                let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
                dialect.secrets_line(&variables, &fifo.path)
            }
            Self::File(file, variable) => dialect.path_line(variable, &file.path),
        }
    }
}

/// A FIFO that hands secrets to the first process that opens it, once.
#[derive(Debug)]
pub(crate) struct SecretFifo {
    path: PathBuf,
    /// Opens the FIFO again after it was unlinked.
    handle: Option<OwnedFd>,
    is_cancelled: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl SecretFifo {
    fn new<'a>(
        path: PathBuf,
        values: impl Iterator<Item = &'a SecretValue> + Clone,
    ) -> io::Result<Self> {
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let length = values.clone().map(|value| value.expose().len() + 1).sum();
        // Allocated in its whole size: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        for value in values {
            bytes.extend_from_slice(value.expose().as_bytes());
            bytes.push(0);
        }
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let (target, stop) = (path.clone(), Arc::clone(&is_cancelled));
        // Before the writer can unlink it.
        let handle = handle(&path);
        let writer = std::thread::Builder::new()
            .name("secret".into())
            .spawn(move || serve(&target, &bytes, &stop))?;
        Ok(Self {
            handle,
            path,
            is_cancelled,
            writer: Some(writer),
        })
    }

    /// Opens the reading end, by its path or by its handle.
    fn reader(&self) -> Option<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let nameless = |handle: &OwnedFd| {
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            open(Path::new(&path), flags, Mode::empty()).ok()
        };
        let handle = self.handle.as_ref();
        (handle.and_then(nameless)).or_else(|| open(&self.path, flags, Mode::empty()).ok())
    }
}

#[cfg(target_os = "linux")]
fn handle(path: &Path) -> Option<OwnedFd> {
    open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn handle(_: &Path) -> Option<OwnedFd> {
    None
}

/// Waits for a reader and writes the bytes; blocks while the pipe is full.
fn serve(path: &Path, bytes: &[u8], is_cancelled: &AtomicBool) {
    let Ok(mut fifo) = OpenOptions::new().write(true).open(path) else {
        return;
    };
    let _ = std::fs::remove_file(path);
    for part in bytes.chunks(limits::SECRET_PART_BYTES) {
        // The reader is gone, or the command has ended.
        if is_cancelled.load(Ordering::SeqCst) || fifo.write_all(part).is_err() {
            return;
        }
    }
}

/// Reads until the writer has ended: it may wait for a reader, or for space in the pipe.
fn drain(reader: &OwnedFd, writer: &JoinHandle<()>) {
    let mut part = Zeroizing::new([0; 4 << 10]);
    while !writer.is_finished() {
        let mut waited = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut waited, PollTimeout::from(limits::SECRET_DRAIN_MS));
        while let Ok(1..) = nix::unistd::read(reader, &mut *part) {}
    }
}

impl Drop for SecretFifo {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        // A writer that cannot be reached any more is not joined: it waits forever.
        if let Some(writer) = self.writer.take() {
            let reader = (!writer.is_finished()).then(|| self.reader()).flatten();
            if let Some(reader) = &reader {
                drain(reader, &writer);
            }
            if writer.is_finished() {
                let _ = writer.join();
            }
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A file with the value of one secret, readable by the user only.
#[derive(Debug)]
pub(crate) struct SecretFile {
    path: PathBuf,
}

impl SecretFile {
    fn new(place: &Path, value: &SecretValue) -> io::Result<Self> {
        let path = in_memory(place).unwrap_or_else(|| place.to_owned());
        let file = Self { path };
        let mut opened = create(&file.path)?;
        opened.write_all(value.expose().as_bytes())?;
        Ok(file)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Returns a path in memory for a file whose own path is on a disk, if the system has a memory file system.
#[cfg(target_os = "linux")]
fn in_memory(place: &Path) -> Option<PathBuf> {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    let is_memory = |dir: &Path| statfs(dir).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC);
    let shared = Path::new("/dev/shm");
    if place.parent().is_some_and(is_memory) || !is_memory(shared) {
        return None;
    }
    // The name is unused: that of the session is random.
    let name = place.file_name()?.to_str()?;
    let session = place.parent()?.file_name()?.to_str()?;
    let path = shared.join(format!("{IN_MEMORY}{name}-{session}"));
    (!path.exists()).then_some(path)
}

/// Prefix of the names of files in memory.
const IN_MEMORY: &str = "karyi-";

/// Removes the files in memory of a session whose program was killed; `directory` is the session's.
pub(crate) fn remove_files_of(directory: &Path) {
    let Some(session) = directory.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    let end = format!("-{session}");
    let entries = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    let own = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_str();
        name.is_some_and(|name| name.starts_with(IN_MEMORY) && name.ends_with(&end))
    });
    for entry in own {
        // A file of another user stays: the directory lets only its owner remove it.
        let _ = std::fs::remove_file(entry.path());
    }
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::secret::SecretName;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    fn binding(holds: VariableContent, value: &str) -> Binding {
        Binding {
            name: SecretName::parse("v").unwrap(),
            value: SecretValue::new(value.into()),
            holds,
        }
    }

    fn made(dir: &Path, bindings: &[Binding]) -> Vec<SecretCarrier> {
        carriers(bindings, |index| dir.join(format!("place{index}"))).unwrap()
    }

    #[test]
    fn a_fifo_is_unlinked_before_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let values = ["value-1", "value 2\n"].map(|value| binding(VariableContent::Value, value));
        let carriers = made(dir.path(), &values);
        let path = dir.path().join("place0");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut reader = File::open(&path).unwrap();
        let mut first = [0; 1];
        reader.read_exact(&mut first).unwrap();
        assert!(!path.exists());
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), carriers.len()), ("alue-1\0value 2\n\0", 1));
    }

    #[test]
    fn an_unopened_fifo_ends_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("place0");
        let values = [binding(VariableContent::Value, "value-1")];
        drop(made(dir.path(), &values));
        assert!(!path.exists());
        let carriers = made(dir.path(), &values);
        std::fs::remove_file(&path).unwrap();
        drop(carriers);
    }

    /// The values are larger than a pipe.
    #[test]
    fn a_half_read_fifo_ends_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let large = "x".repeat(limits::MAX_SECRET_BYTES);
        let values = [0; 9].map(|_| binding(VariableContent::Value, &large));
        let carriers = made(dir.path(), &values);
        let mut reader = File::open(dir.path().join("place0")).unwrap();
        reader.read_exact(&mut [0; 1]).unwrap();
        drop(carriers);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.len() < 9 * large.len(), "{} bytes", rest.len());
        // A reader that is gone does not block either.
        let carriers = made(dir.path(), &values);
        drop(File::open(dir.path().join("place0")).unwrap());
        drop(carriers);
    }

    #[test]
    fn a_file_of_a_killed_program_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut carriers = made(dir.path(), &[binding(VariableContent::Path, "value-1")]);
        let Some(SecretCarrier::File(file, _)) = carriers.pop() else {
            panic!("no file");
        };
        let path = file.path.clone();
        std::mem::forget(file);
        remove_files_of(&dir.path().join("other"));
        assert!(path.exists());
        remove_files_of(dir.path());
        // Without a memory file system the file is in the directory itself.
        assert_eq!(path.exists(), path.starts_with(dir.path()));
    }

    #[test]
    fn a_file_is_private_and_ends_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let carriers = made(dir.path(), &[binding(VariableContent::Path, "value-1")]);
        let [SecretCarrier::File(file, _)] = carriers.as_slice() else {
            panic!("no file");
        };
        let path = file.path.clone();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "value-1");
        drop(carriers);
        assert!(!path.exists());
    }
}
