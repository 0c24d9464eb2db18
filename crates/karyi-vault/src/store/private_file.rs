//! Private files: replaced atomically, readable by their owner only, one writer at a time.
//!
//! Windows has no modes: there the files are as private as the user's directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::temporary_files::remove_old_temporary_files;

/// Lock of the files of a directory, released with the last clone.
#[derive(Debug, Clone)]
pub struct Guard {
    _file: Arc<File>,
}

/// Locks the files beside `path`, and makes their directory.
///
/// # Errors
/// `vault_busy` when another process holds the lock, or an error of the file system.
pub fn lock(path: &Path) -> Result<Guard, ToolError> {
    make_directory_of_lock(path)?;
    lock_to_read(path)
}

/// Locks the files without making the directory, for readers.
///
/// # Errors
/// As [`lock`].
pub fn lock_to_read(path: &Path) -> Result<Guard, ToolError> {
    let deadline = Instant::now() + limits::VAULT_LOCK_TIMEOUT;
    loop {
        if let Some(guard) = try_lock(path)? {
            return Ok(guard);
        }
        if Instant::now() >= deadline {
            let path = path.with_extension("lock");
            let message = format!("another process keeps {} locked", path.display());
            return Err(ToolError::new(ErrorCode::VaultBusy, message));
        }
        std::thread::sleep(limits::VAULT_LOCK_PAUSE);
    }
}

/// Locks the files unless another process holds the lock. Does not wait.
///
/// # Errors
/// Errors of the file system.
pub fn lock_if_free(path: &Path) -> Result<Option<Guard>, ToolError> {
    make_directory_of_lock(path)?;
    try_lock(path)
}

fn make_directory_of_lock(path: &Path) -> Result<(), ToolError> {
    let path = path.with_extension("lock");
    let made = make_directory(&path).map_err(|error| ToolError::from_io(&path, &error));
    made.map(drop)
}

fn try_lock(path: &Path) -> Result<Option<Guard>, ToolError> {
    let path = path.with_extension("lock");
    let file = private_options()
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| refusal(&path, &error))?;
    #[cfg(windows)]
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        // Windows opens the link itself, where Unix opens nothing.
        return Err(no_file(&path));
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(Guard {
            _file: Arc::new(file),
        })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(ToolError::from_io(&path, &error)),
    }
}

/// Reads a file of at most `max_bytes`; `None` when it is missing.
///
/// # Errors
/// `bad_vault` when it is larger or no regular file, or an error of the file system.
pub fn read(path: &Path, max_bytes: u64) -> Result<Option<Zeroizing<Vec<u8>>>, ToolError> {
    let file = match reading_options(Links::AreRefused).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refusal(path, &error)),
    };
    whole(&file, path, max_bytes, no_file).map(Some)
}

/// Reads a file named by the user, which may be a link; `None` when it is missing.
///
/// # Errors
/// As [`read`].
pub fn read_named(path: &Path, max_bytes: u64) -> Result<Option<Zeroizing<Vec<u8>>>, ToolError> {
    let file = match reading_options(Links::AreFollowed).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A socket cannot be opened at all.
        Err(_) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            return Err(no_named_file(path));
        }
        Err(error) => return Err(ToolError::from_io(path, &error)),
    };
    whole(&file, path, max_bytes, no_named_file).map(Some)
}

/// Reads an open file whole.
fn whole(
    file: &File,
    path: &Path,
    max_bytes: u64,
    no_file: fn(&Path) -> ToolError,
) -> Result<Zeroizing<Vec<u8>>, ToolError> {
    let failed = |error: io::Error| ToolError::from_io(path, &error);
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(no_file(path));
    }
    let size = found.len();
    if size > max_bytes {
        let message = format!("{} is larger than {max_bytes} bytes", path.display());
        return Err(ToolError::new(ErrorCode::BadVault, message));
    }
    let size = usize::try_from(size).unwrap_or(0);
    let mut bytes = Zeroizing::new(Vec::with_capacity(size + 1));
    file.take(max_bytes)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}

/// Handling of symbolic links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    AreFollowed,
    AreRefused,
}

/// Returns options for reading a file that a command may have replaced: a pipe must not block, and a link must not
/// lead to another file.
fn reading_options(links: Links) -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let own = match links {
            Links::AreFollowed => 0,
            Links::AreRefused => nix::libc::O_NOFOLLOW,
        };
        let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY | own;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    #[cfg(windows)]
    if links == Links::AreRefused {
        // The link itself is no regular file.
        std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, THE_LINK_ITSELF);
    }
    options
}

/// Opens a link and not its target (`FILE_FLAG_OPEN_REPARSE_POINT`).
#[cfg(windows)]
const THE_LINK_ITSELF: u32 = 0x0020_0000;

/// Returns the error of opening a private file, which something else may have replaced.
fn refusal(path: &Path, error: &io::Error) -> ToolError {
    match fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        true => no_file(path),
        false => ToolError::from_io(path, error),
    }
}

fn no_named_file(path: &Path) -> ToolError {
    let message = format!(
        "expected a regular file or a link to one at {}; found something else",
        path.display()
    );
    ToolError::new(ErrorCode::BadVault, message)
        .with_hint("check it with `ls -lLd`, and restore the file or name another one")
}

fn no_file(path: &Path) -> ToolError {
    let message = format!(
        "expected a regular file at {}; found something else",
        path.display()
    );
    ToolError::new(ErrorCode::BadVault, message)
        .with_hint("check it with `ls -ld` and move it away; karyi did not create it")
}

/// Replaces a file atomically. The caller holds the lock.
///
/// # Errors
/// Errors of the file system.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    let write = || -> io::Result<()> {
        let directory = make_directory(path)?;
        remove_old_temporary_files(&directory);
        // The temporary file is beside its target and private from the start. Its name is fixed, so that the next
        // writer replaces the file of one that was killed.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".tmp");
        let _ = fs::remove_file(directory.join(&name));
        let mut file = tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempfile_in(&directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        // Not `persist`: on Windows it cannot replace a file that is open.
        let (_file, beside) = file.keep()?;
        fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
        sync_directory(&directory)
    };
    write().map_err(|error| ToolError::from_io(path, &error))
}

/// Makes the directory of a file, private to the owner.
fn make_directory(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&directory)?;
    #[cfg(unix)]
    close_to_others(&directory)?;
    Ok(directory)
}

#[cfg(unix)]
fn close_to_others(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(directory)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // The target of a link must not be created.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        options.mode(0o600).custom_flags(flags);
    }
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, THE_LINK_ITSELF);
    options
}

/// Syncs a directory after a rename. Windows has no such call.
fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(directory)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_their_directory_are_private() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let path = directory.join("x.json");
        let guard = lock(&path).unwrap();
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        drop(guard);
        assert_eq!(read(&path, 3).unwrap().unwrap().as_slice(), b"two");
        assert_eq!((mode(&directory), mode(&path)), (0o700, 0o600));
        assert_eq!(mode(&directory.join("x.lock")), 0o600);
        let mut names: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["x.json", "x.lock"]);
    }

    #[test]
    fn leftovers_of_a_killed_writer_go_with_the_next_write() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x.json");
        fs::write(root.path().join("x.json.tmp"), "half of a").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path, 3).unwrap().unwrap().as_slice(), b"two");
        let left = fs::read_dir(root.path()).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["x.json"]);
    }

    #[test]
    fn a_temporary_file_that_cannot_be_renamed_goes_at_once() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("x.json")).unwrap();
        assert!(write(&root.path().join("x.json"), b"two").is_err());
        let left = fs::read_dir(root.path()).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["x.json"]);
    }

    #[test]
    fn old_leftovers_of_earlier_writers_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - limits::LEFTOVER_AGE * 2;
        let make = |name: &str, is_old: bool| {
            fs::write(root.path().join(name), "half of a").unwrap();
            let file = File::options().write(true).open(root.path().join(name));
            if is_old {
                file.unwrap().set_modified(old).unwrap();
            }
        };
        for name in [
            ".tmpAb12xY",
            ".tmp-b12xY",
            ".tmpAb12xYz",
            "tmpAb12xY",
            "y.json",
        ] {
            make(name, true);
        }
        make(".tmpnew123", false);
        fs::create_dir(root.path().join(".tmpdirect")).unwrap();
        std::os::unix::fs::symlink("y.json", root.path().join(".tmplinked")).unwrap();
        write(&root.path().join("x.json"), b"two").unwrap();
        let left = fs::read_dir(root.path()).unwrap();
        let mut names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let expected = [
            ".tmp-b12xY",
            ".tmpAb12xYz",
            ".tmpdirect",
            ".tmplinked",
            ".tmpnew123",
            "tmpAb12xY",
            "x.json",
            "y.json",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn missing_and_too_large_files_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        assert_eq!(read(&path, 3).unwrap(), None);
        fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 3).unwrap_err().code, ErrorCode::BadVault);
    }

    #[test]
    fn irregular_files_are_refused_at_once() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("target"), "one").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("dangling")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["link", "dangling", "directory", "pipe", "socket"] {
            let error = read(&at(name), 3).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadVault, "{name}");
        }
    }

    #[test]
    fn a_file_that_its_user_named_may_be_a_link_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("target"), "one").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("dangling")).unwrap();
        std::os::unix::fs::symlink(at("pipe"), at("link-to-pipe")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["target", "link"] {
            let read = read_named(&at(name), 3).unwrap().unwrap();
            assert_eq!(read.as_slice(), b"one", "{name}");
        }
        assert_eq!(read_named(&at("dangling"), 3).unwrap(), None);
        for name in ["directory", "pipe", "link-to-pipe", "socket"] {
            let error = read_named(&at(name), 3).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadVault, "{name}");
            assert!(error.message.contains("or a link to one"), "{error:?}");
        }
    }

    #[test]
    fn a_lock_is_no_link() {
        let root = tempfile::tempdir().unwrap();
        let (target, path) = (root.path().join("target"), root.path().join("x"));
        std::os::unix::fs::symlink(&target, path.with_extension("lock")).unwrap();
        assert_eq!(lock(&path).unwrap_err().code, ErrorCode::BadVault);
        assert!(!target.exists());
        fs::write(&target, "").unwrap();
        assert_eq!(lock(&path).unwrap_err().code, ErrorCode::BadVault);
        fs::remove_file(path.with_extension("lock")).unwrap();
        fs::create_dir(path.with_extension("lock")).unwrap();
        assert_eq!(lock(&path).unwrap_err().code, ErrorCode::BadVault);
    }

    #[test]
    fn one_writer_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("count");
        write(&path, b"0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _guard = lock(&path).unwrap();
                    let text = read(&path, 10).unwrap().unwrap();
                    let count: u32 = std::str::from_utf8(&text).unwrap().parse().unwrap();
                    write(&path, (count + 1).to_string().as_bytes()).unwrap();
                });
            }
        });
        assert_eq!(read(&path, 10).unwrap().unwrap().as_slice(), b"8");
    }
}
