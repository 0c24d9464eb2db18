//! Handle of an open directory and operations on its files by name.
//!
//! Every change of a file goes through here. The path is walked component by component from the root and no
//! symlink is followed: it was resolved before, so a symlink on it was swapped in since, perhaps by an
//! attacker.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};

/// Flags to open a directory for lookups; it need not be readable.
#[cfg(target_os = "linux")]
pub(super) const LOOKUP: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const LOOKUP: OFlags = OFlags::RDONLY;

/// Magic numbers of pseudo file systems: those of `/proc` and `/sys` and those mounted below.
#[cfg(target_os = "linux")]
const PSEUDO_FILE_SYSTEMS: [u32; 11] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xf97c_ff8c, // selinuxfs
];

/// Magic number of overlayfs.
#[cfg(target_os = "linux")]
const OVERLAYFS: u32 = 0x794c_7630;

/// Open directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    opened: OwnedFd,
}

/// Identity and change markers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Device.
    pub(super) device: u64,
    /// Inode number.
    pub(super) inode: u64,
    /// Size in bytes.
    pub(super) size: u64,
    /// Modification time in seconds and nanoseconds.
    pub(super) changed: (i64, i64),
    /// File type and permissions.
    pub(super) mode: u32,
    /// Owner: user and group.
    pub(super) owner: (u32, u32),
    /// Number of hard links.
    pub(super) links: u64,
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            changed: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            mode: stat.st_mode as u32,
            owner: (stat.st_uid, stat.st_gid),
            links: stat.st_nlink as u64,
        }
    }

    /// Reads the stamp of an open file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    /// Returns the stamp with another mode.
    pub(super) fn with_mode(self, mode: u32) -> Self {
        let mode = (self.mode & !0o7777) | (mode & 0o7777);
        Self { mode, ..self }
    }

    fn kind(self) -> u32 {
        self.mode & 0o170_000
    }

    /// Tells whether it is a regular file.
    pub(super) fn is_file(self) -> bool {
        self.kind() == 0o100_000
    }

    /// Tells whether it is a directory.
    pub(super) fn is_directory(self) -> bool {
        self.kind() == 0o040_000
    }

    /// Tells whether it is a symlink.
    pub(super) fn is_link(self) -> bool {
        self.kind() == 0o120_000
    }

    /// Tells whether this is the same file as `earlier` with the same content, owner, mode and links, given
    /// that karyi itself added `added` links.
    pub(super) fn is_unchanged(self, earlier: Self, added: i64) -> bool {
        let links = earlier.links.checked_add_signed(added);
        links == Some(self.links)
            && Self {
                links: self.links,
                ..earlier
            } == self
    }

    /// Tells whether this can be a copy of the file of `earlier`, separated from its other links, given that
    /// karyi itself added `added` links to it.
    pub(super) fn is_copy_of(self, earlier: Self, added: i64) -> bool {
        let names = self.links.checked_add_signed(-added);
        names.is_some_and(|names| names == 1 || names == earlier.links)
            && Self {
                device: self.device,
                inode: self.inode,
                links: self.links,
                ..earlier
            } == self
    }

    /// Returns device and inode number.
    pub(super) fn identity(self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

impl Directory {
    /// Opens an absolute path in which every symlink is resolved.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::walk(path, None)
    }

    /// Opens a path and creates missing directories, which are added to `made`.
    pub(super) fn make(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<Self> {
        Self::walk(path, Some(made))
    }

    fn walk(path: &Path, mut made: Option<&mut Vec<PathBuf>>) -> io::Result<Self> {
        let flags = LOOKUP | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        let mut at = PathBuf::from("/");
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::RootDir => continue,
                Component::CurDir | Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
            };
            at.push(name);
            if let Some(made) = made.as_deref_mut() {
                match rustix::fs::mkdirat(&opened, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => made.push(at.clone()),
                    // Opening it reports why it could not be created.
                    Err(_) if !is_missing(&opened, name) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            opened = rustix::fs::openat(&opened, name, flags, Mode::empty()).map_err(plain)?;
        }
        Ok(Self { path: at, opened })
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether the directory is on a pseudo file system such as `/proc`, where no file can be replaced.
    #[cfg(target_os = "linux")]
    pub(super) fn is_pseudo_file_system(&self) -> bool {
        let found = rustix::fs::fstatfs(&self.opened);
        found.is_ok_and(|found| PSEUDO_FILE_SYSTEMS.contains(&(found.f_type as u32)))
    }

    /// Always false: this system has no such files.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_pseudo_file_system(&self) -> bool {
        false
    }

    /// Tells whether the directory is on overlayfs, where a file becomes another one (its copy in the upper
    /// layer) when it is opened for writing or linked.
    #[cfg(target_os = "linux")]
    pub(super) fn is_layered(&self) -> bool {
        let found = rustix::fs::fstatfs(&self.opened);
        found.is_ok_and(|found| found.f_type as u32 == OVERLAYFS)
    }

    /// Always false: this system has no overlayfs.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_layered(&self) -> bool {
        false
    }

    /// Tells whether the path still leads to this directory.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        let identity = |directory: &Self| -> io::Result<_> {
            let stat = rustix::fs::fstat(&directory.opened)?;
            Ok((stat.st_dev, stat.st_ino))
        };
        match Self::open(&self.path) {
            Ok(now) => Ok(identity(&now)? == identity(self)?),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tells whether the sticky bit of the directory, as in `/tmp`, keeps this user from renaming or removing
    /// the file of another owner.
    pub(super) fn is_sticky_for(&self, file: Stamp) -> io::Result<bool> {
        let own = Stamp::new(&rustix::fs::fstat(&self.opened)?);
        let user = nix::unistd::Uid::effective();
        let owners = [own.owner.0, file.owner.0];
        Ok(own.mode & 0o1000 != 0 && !user.is_root() && !owners.contains(&user.as_raw()))
    }

    /// Reads the stamp of a file without following a symlink; `None` when it does not exist.
    pub(super) fn stamp(&self, name: &OsStr) -> io::Result<Option<Stamp>> {
        match rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stamp::new(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file to read it. Does not block on a pipe.
    pub(super) fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY, 0)
    }

    /// Opens a file for writing without changing it.
    pub(super) fn write(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR, 0)
            .or_else(|_| self.open_file(name, OFlags::WRONLY, 0))
    }

    /// Opens a path below the directory; no symlink is followed, not even the last component.
    pub(super) fn below(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            use rustix::io::Errno;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let name = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            };
            // With `O_PATH` the kernel rejects flags that concern reading.
            let flags = if flags.contains(OFlags::PATH) {
                flags | OFlags::NOFOLLOW | OFlags::CLOEXEC
            } else {
                flags | always
            };
            match rustix::fs::openat2(&self.opened, name, flags, Mode::empty(), resolve) {
                Ok(opened) => return Ok(File::from(opened)),
                // An older kernel, or a sandbox without `openat2`.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.below_by_parts(path, flags | always)
    }

    fn below_by_parts(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let (way, name) = match split(path) {
            Some((way, name)) => (way, name),
            None => (Path::new(""), OsStr::new(".")),
        };
        let look = LOOKUP | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = rustix::fs::openat(&self.opened, ".", look, Mode::empty())?;
        for part in way.components() {
            let Component::Normal(part) = part else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            at = rustix::fs::openat(&at, part, look, Mode::empty())?;
        }
        Ok(File::from(rustix::fs::openat(
            &at,
            name,
            flags,
            Mode::empty(),
        )?))
    }

    /// Creates a file that must not exist yet.
    pub(super) fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn open_file(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as _);
        let opened = rustix::fs::openat(&self.opened, name, flags | always, mode);
        Ok(File::from(opened.map_err(plain)?))
    }

    /// Renames a file over an existing one.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.opened, from, &self.opened, to)?)
    }

    /// Renames a file to a name that must not exist yet.
    pub(super) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let at = &self.opened;
        match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
            // The file system does not support this kind of rename.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match self.stamp(to)? {
                Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                None => self.rename(from, to),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a hard link in this directory to a file of another one.
    pub(super) fn link(&self, other: &Self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let flags = AtFlags::empty();
        Ok(rustix::fs::linkat(
            &other.opened,
            from,
            &self.opened,
            to,
            flags,
        )?)
    }

    /// Removes a file; a missing one is not an error.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.opened, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Syncs the directory entries. A file system that cannot do so offers nothing better.
    pub(super) fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(readable) = rustix::fs::openat(&self.opened, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(readable);
        }
    }
}

/// Removes created directories, innermost first; those in use stay.
pub(super) fn remove_made(made: &[PathBuf]) {
    for path in made.iter().rev() {
        if let Some((parent, name)) = split(path)
            && let Ok(parent) = Directory::open(parent)
        {
            let _ = rustix::fs::unlinkat(&parent.opened, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Splits a path into its directory and its file name.
pub(super) fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

fn is_missing(directory: &OwnedFd, name: &OsStr) -> bool {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!(found, Err(rustix::io::Errno::NOENT))
}

/// Tells whether an error means that the file is gone or was replaced by another kind.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Maps a symlink on a resolved path to "not a directory".
fn plain(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => rustix::io::Errno::NOTDIR.into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_openat2_the_path_is_walked_by_component() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink("a", top.join("link")).unwrap();
        std::os::unix::fs::symlink("file", top.join("a/b/end")).unwrap();
        let directory = Directory::open(&top).unwrap();
        for (path, expected) in [
            ("", true),
            ("a/b", true),
            ("a/b/file", true),
            ("link/b/file", false),
            ("a/b/end", false),
            ("../x", false),
            ("none", false),
        ] {
            let path = Path::new(path);
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let walked = directory.below_by_parts(path, flags).is_ok();
            let opened = directory.below(path, OFlags::RDONLY).is_ok();
            assert_eq!((walked, opened), (expected, expected), "{path:?}");
        }
    }
}
