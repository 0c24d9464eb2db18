//! Opens files and directories to read them.
//!
//! Under a root everything is opened relative to a handle of the root and no symlink is followed: the path
//! was resolved before, so a symlink on it was swapped in since and could lead anywhere.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::fs::OFlags;

use super::directory::{Directory, LOOKUP};
use super::root::Root;

/// Way to open resolved paths.
pub(super) enum Opener {
    /// By path.
    Path,
    /// Relative to an open directory with this path, and only below it.
    Beneath(PathBuf, Directory),
}

impl Opener {
    /// Returns the opener for a root.
    ///
    /// # Errors
    /// The directory of the root can no longer be opened.
    pub(super) fn new(root: &Root) -> io::Result<Self> {
        Ok(match root.directory() {
            None => Self::Path,
            Some(path) => Self::Beneath(path.to_owned(), Directory::open(path)?),
        })
    }

    /// Reads the metadata of a resolved path without opening its target.
    pub(super) fn metadata(&self, real: &Path) -> io::Result<Metadata> {
        match self {
            Self::Path => std::fs::metadata(real),
            Self::Beneath(top, directory) => {
                let found = directory.below(beneath(top, real)?, LOOKUP)?.metadata()?;
                if found.is_symlink() {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                Ok(found)
            }
        }
    }

    /// Opens a regular file. Does not block if it has become a pipe.
    pub(super) fn file(&self, real: &Path) -> io::Result<File> {
        match self {
            Self::Path => {
                let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
                OpenOptions::new().read(true).custom_flags(flags).open(real)
            }
            Self::Beneath(top, directory) => directory.below(beneath(top, real)?, OFlags::RDONLY),
        }
    }

    /// Opens a directory to list it.
    pub(super) fn directory(&self, real: &Path) -> io::Result<File> {
        match self {
            Self::Path => {
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(libc::O_DIRECTORY);
                options.open(real)
            }
            Self::Beneath(top, directory) => {
                directory.below(beneath(top, real)?, OFlags::RDONLY | OFlags::DIRECTORY)
            }
        }
    }
}

fn beneath<'a>(top: &Path, real: &'a Path) -> io::Result<&'a Path> {
    let outside = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    real.strip_prefix(top).map_err(outside)
}

/// Lists the names in an open directory.
pub(super) fn names(directory: &File) -> io::Result<impl Iterator<Item = std::ffi::OsString>> {
    use std::os::unix::ffi::OsStringExt;
    let entries = rustix::fs::Dir::read_from(directory)?;
    let names = entries.map_while(Result::ok);
    Ok(names
        .map(|entry| std::ffi::OsString::from_vec(entry.file_name().to_bytes().to_vec()))
        .filter(|name| name != "." && name != ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Scope;
    use crate::search::{Case, SearchCaps, SearchOptions, Syntax, search};
    use crate::view::{ViewOptions, view};
    use std::os::unix::fs::symlink;
    use std::sync::atomic::AtomicBool;

    /// A root `w` whose directory `real` was swapped for a symlink to `out` after it was resolved.
    fn swapped() -> (tempfile::TempDir, PathBuf, Root) {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        for directory in ["w/real/sub", "out/sub"] {
            std::fs::create_dir_all(top.join(directory)).unwrap();
        }
        std::fs::write(top.join("out/s"), "outside").unwrap();
        std::fs::write(top.join("out/sub/s"), "outside").unwrap();
        let root = Root::confined(&top.join("w")).unwrap();
        std::fs::rename(top.join("w/real"), top.join("moved")).unwrap();
        symlink("../out", top.join("w/real")).unwrap();
        (temp, top.join("w"), root)
    }

    #[test]
    fn swapped_directories_do_not_lead_out_of_the_root() {
        let (_temp, top, root) = swapped();
        let flag = AtomicBool::new(false);
        for path in ["real", "real/s", "real/sub", "real/sub/s"] {
            let real = top.join(path);
            let shown = Path::new(path);
            let found = view(&root, shown, &real, &ViewOptions::default(), &flag);
            assert!(found.is_err(), "{path}: {found:?}");
            let options = SearchOptions {
                caps: SearchCaps::default(),
                pattern: "outside",
                syntax: Syntax::Literal,
                case: Case::Exact,
                glob: None,
                context: 0,
                max: 10,
                scope: Scope::All,
                cancelled: None,
            };
            let found = search(&root, shown, &real, &options);
            assert!(found.is_err(), "{path}: {found:?}");
            let opener = Opener::new(&root).unwrap();
            assert!(opener.file(&real).is_err(), "{path}");
            assert!(opener.directory(&real).is_err(), "{path}");
        }
        let real = top.join("real/sbu");
        let error = view(&root, &real, &real, &ViewOptions::default(), &flag).unwrap_err();
        assert!(!error.hint.contains("sub"), "{}", error.hint);
    }

    #[test]
    fn paths_below_the_root_are_opened() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/b/file"), "x").unwrap();
        let opener = Opener::new(&Root::confined(&top).unwrap()).unwrap();
        assert_eq!(opener.metadata(&top.join("a/b/file")).unwrap().len(), 1);
        assert!(
            opener
                .file(&top.join("a/b/file"))
                .unwrap()
                .metadata()
                .is_ok()
        );
        for path in ["", "a", "a/b"] {
            assert!(opener.directory(&top.join(path)).is_ok(), "{path}");
            assert!(opener.metadata(&top.join(path)).unwrap().is_dir(), "{path}");
        }
        assert!(opener.metadata(top.parent().unwrap()).is_err());
    }
}
