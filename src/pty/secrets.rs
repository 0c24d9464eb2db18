//! The way of a secret into the shell: a FIFO for its value, a private file for its path.
//!
//! A FIFO is unlinked as soon as the shell has opened it and before anything is written into it, so
//! that nobody else finds it; its bytes reach no disk. A file lies in memory where the system has
//! such a place, and goes with the command.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use zeroize::Zeroizing;

use crate::secret::{Binding, Holds, SecretValue};

/// What brings one secret to the shell, as long as its command runs.
#[derive(Debug)]
pub(super) enum Carrier {
    /// The shell reads the value from here.
    Fifo(SecretFifo),
    /// The command finds the value here.
    File(SecretFile),
}

impl Carrier {
    /// Makes what a binding needs; `place` is a free name in the session's directory.
    pub(super) fn new(place: PathBuf, binding: &Binding) -> io::Result<Self> {
        match binding.holds {
            Holds::Value => SecretFifo::new(place, &binding.value).map(Self::Fifo),
            Holds::Path => SecretFile::new(&place, &binding.value).map(Self::File),
        }
    }
}

/// A FIFO that gives one secret to whoever opens it first, once.
#[derive(Debug)]
pub(super) struct SecretFifo {
    path: PathBuf,
    /// Finds the FIFO when its name is gone.
    handle: Option<OwnedFd>,
    is_over: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl SecretFifo {
    fn new(path: PathBuf, value: &SecretValue) -> io::Result<Self> {
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(value.expose().len() + 1));
        bytes.extend_from_slice(value.expose().as_bytes());
        bytes.push(0);
        let is_over = Arc::new(AtomicBool::new(false));
        let (target, stop) = (path.clone(), Arc::clone(&is_over));
        // Before the writer may unlink it.
        let handle = handle(&path);
        let writer = std::thread::Builder::new()
            .name("secret".into())
            .spawn(move || give(&target, &bytes, &stop))?;
        Ok(Self {
            handle,
            path,
            is_over,
            writer: Some(writer),
        })
    }

    /// Opens the reading end, by its name or without.
    fn reader(&self) -> Option<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let nameless = |handle: &OwnedFd| {
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            open(Path::new(&path), flags, Mode::empty()).ok()
        };
        let handle = self.handle.as_ref();
        (handle.and_then(nameless)).or_else(|| open(&self.path, flags, Mode::empty()).ok())
    }

    /// Returns where the shell reads.
    pub(super) fn path(&self) -> &Path {
        &self.path
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

/// Waits for a reader and gives it the bytes: a pipe holds all of them, so that waits for nothing.
fn give(path: &Path, bytes: &[u8], is_over: &AtomicBool) {
    let Ok(mut fifo) = OpenOptions::new().write(true).open(path) else {
        return;
    };
    let _ = std::fs::remove_file(path);
    if !is_over.load(Ordering::SeqCst) {
        // A reader that is gone needs nothing more.
        let _ = fifo.write_all(bytes);
    }
}

impl Drop for SecretFifo {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // A writer that still waits goes on when somebody reads. One that nobody can reach any more
        // waits for ever, and nobody for it.
        let reader = self.reader();
        if let Some(writer) = self.writer.take()
            && (reader.is_some() || writer.is_finished())
        {
            let _ = writer.join();
        }
        drop(reader);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A file with the value of one secret that only the user may read.
#[derive(Debug)]
pub(super) struct SecretFile {
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

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
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

/// Returns another place for a file whose own one is on a disk, when there is one in memory.
#[cfg(target_os = "linux")]
fn in_memory(place: &Path) -> Option<PathBuf> {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    let is_memory = |dir: &Path| statfs(dir).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC);
    let shared = Path::new("/dev/shm");
    if place.parent().is_some_and(is_memory) || !is_memory(shared) {
        return None;
    }
    // A name that nobody can have taken: the session's own is random.
    let own: Vec<&str> = place
        .iter()
        .rev()
        .take(2)
        .filter_map(|part| part.to_str())
        .collect();
    let path = shared.join(format!("karyi-{}", own.join("-")));
    (!path.exists()).then_some(path)
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    fn binding(holds: Holds) -> Binding {
        Binding {
            variable: "v".into(),
            value: SecretValue::new("value-1".into()),
            holds,
        }
    }

    #[test]
    fn a_fifo_is_gone_before_it_gives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        let carrier = Carrier::new(path.clone(), &binding(Holds::Value)).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut reader = File::open(&path).unwrap();
        let mut first = [0; 1];
        reader.read_exact(&mut first).unwrap();
        assert!(!path.exists());
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "alue-1\0");
        drop(carrier);
    }

    #[test]
    fn a_fifo_nobody_opened_ends_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        drop(Carrier::new(path.clone(), &binding(Holds::Value)).unwrap());
        assert!(!path.exists());
        let carrier = Carrier::new(path.clone(), &binding(Holds::Value)).unwrap();
        std::fs::remove_file(&path).unwrap();
        drop(carrier);
    }

    #[test]
    fn a_file_is_private_and_ends_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let carrier = Carrier::new(dir.path().join("file"), &binding(Holds::Path)).unwrap();
        let Carrier::File(file) = &carrier else {
            panic!("no file");
        };
        let path = file.path().to_owned();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "value-1");
        drop(carrier);
        assert!(!path.exists());
    }
}
