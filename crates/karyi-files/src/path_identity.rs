//! Tells whether two paths could mean the same file, however they are spelled.
//!
//! Calls that touch one file must not overlap, so this errs on the side of "the same": letters are
//! compared without case even where the file system tells them apart, since no look at it says so
//! for a file that does not exist yet. What exists is known by device and inode, which sees through
//! hard links, bind mounts and names that the file system normalises.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::root::canonical_for_plan;

/// What the system calls one file or directory.
type FileId = (u64, u64);

/// Where a path leads, as known at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathIdentity {
    /// The canonical path, in folded letters.
    path: PathBuf,
    /// What exists of it, from the top down.
    known: Vec<FileId>,
    /// How many of its last names do not exist.
    missing: usize,
    /// Whether it is a directory.
    is_directory: bool,
    /// Whether it is a file with further names.
    is_linked: bool,
}

impl PathIdentity {
    /// Looks up what a call that names an absolute path may touch: where the path leads, and the
    /// link itself when it is one.
    #[must_use]
    pub fn touched(path: &Path) -> Vec<Self> {
        let mut places = vec![Self::find(path)];
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
        {
            places.push(Self::of(&canonical_for_plan(parent).join(name)));
        }
        places
    }

    /// Looks up where an absolute path leads; nothing of it need exist.
    #[must_use]
    pub fn find(path: &Path) -> Self {
        Self::of(&canonical_for_plan(path))
    }

    fn of(real: &Path) -> Self {
        let mut known = Vec::new();
        let mut last: Option<Metadata> = None;
        let mut names = 0;
        let mut at = PathBuf::new();
        for part in real.components() {
            at.push(part);
            names += 1;
            if known.len() + 1 == names
                && let Ok(found) = std::fs::symlink_metadata(&at)
            {
                known.push((found.dev(), found.ino()));
                last = Some(found);
            }
        }
        let missing = names - known.len();
        let last = last.filter(|_| missing == 0);
        Self {
            path: real.components().map(fold).collect(),
            known,
            missing,
            is_directory: last.as_ref().is_some_and(Metadata::is_dir),
            is_linked: last.is_some_and(|found| found.is_file() && found.nlink() > 1),
        }
    }

    /// Returns the directory whose names are looked at for near ones when this is not there: the
    /// nearest one that exists.
    #[must_use]
    pub fn searched_for(&self) -> Option<Self> {
        let there = self.path.components().take(self.known.len());
        (self.missing > 0).then(|| Self {
            path: there.collect(),
            known: self.known.clone(),
            missing: 0,
            is_directory: true,
            is_linked: false,
        })
    }

    /// Returns the place that holds every other one.
    #[must_use]
    pub fn everywhere() -> Self {
        Self {
            path: PathBuf::from("/"),
            known: Vec::new(),
            missing: 0,
            is_directory: true,
            is_linked: false,
        }
    }

    /// Whether one of the two is the other one or could lie below it.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.path.starts_with(&other.path)
            || other.path.starts_with(&self.path)
            || self.is_within(other)
            || other.is_within(self)
            || self.is_missing_with(other)
    }

    /// Whether the other one is the same or above, or a directory that may hold another name of
    /// this file.
    fn is_within(&self, other: &Self) -> bool {
        let above = other.known.last().filter(|_| other.missing == 0);
        above.is_some_and(|above| self.known.contains(above))
            || self.is_linked && other.is_directory
    }

    /// Whether both are missing in one directory and one could be the other or lie below it.
    fn is_missing_with(&self, other: &Self) -> bool {
        let both = self.missing > 0 && other.missing > 0;
        both && self.known.last() == other.known.last() && {
            let mut pairs = self.missing_names().zip(other.missing_names());
            pairs.all(|(own, others)| own == others)
        }
    }

    fn missing_names(&self) -> impl Iterator<Item = std::path::Component<'_>> {
        self.path.components().skip(self.known.len())
    }
}

/// Brings a name into the spelling under which names are compared. Upper case first: `ß` and `SS`
/// are one name where case does not count.
fn fold(part: std::path::Component<'_>) -> PathBuf {
    let name = part.as_os_str().to_string_lossy();
    PathBuf::from(name.to_uppercase().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// `a`, `d/b`, `d/e/`, a hard link `d/hard` of `a`, and links to a file, a directory and nothing.
    fn tree() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        std::fs::create_dir_all(top.join("d/e")).unwrap();
        std::fs::create_dir(top.join("other")).unwrap();
        std::fs::write(top.join("a"), "x").unwrap();
        std::fs::write(top.join("d/b"), "x").unwrap();
        std::fs::hard_link(top.join("a"), top.join("d/hard")).unwrap();
        symlink("d/b", top.join("to_b")).unwrap();
        symlink("d", top.join("to_d")).unwrap();
        symlink("d/new", top.join("to_new")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        temp
    }

    #[test]
    fn every_spelling_of_a_file_overlaps() {
        let temp = tree();
        let find = |path: &str| PathIdentity::find(&temp.path().join(path));
        let check = |left: &str, right: &str, expected: bool| {
            let (left_place, right_place) = (find(left), find(right));
            assert_eq!(
                left_place.overlaps(&right_place),
                expected,
                "{left} {right}"
            );
            assert_eq!(
                right_place.overlaps(&left_place),
                expected,
                "{right} {left}"
            );
        };
        check("a", "a", true);
        check("d/b", "d/../to_d/./b", true);
        check("to_b", "d/b", true);
        check("d", "to_d/e/deep/er", true);
        check("to_new", "d/new", true);
        check("to_new/x", "d/new", true);
        check("d/new", "d/NEW", true);
        check("d/straße", "d/STRASSE/x", true);
        check("a", "d/hard", true);
        check("a", "other", true);
        check("loop", "loop", true);
        check("d/b", "other", false);
        check("d/b", "d/e", false);
        check("d/new", "d/new2", false);
        check("d/new", "other/new", false);
        check("d/b", "bb", false);
        assert!(find("d/b").overlaps(&PathIdentity::everywhere()));
        assert!(PathIdentity::everywhere().overlaps(&find("d/new/x")));
    }

    #[test]
    fn a_link_is_touched_itself() {
        let temp = tree();
        let touched = PathIdentity::touched(&temp.path().join("other/../to_b"));
        let link = temp.path().canonicalize().unwrap().join("to_b");
        assert_eq!(
            touched,
            [PathIdentity::find(&link), PathIdentity::of(&link)]
        );
        assert_eq!(touched[0], PathIdentity::find(&temp.path().join("d/b")));
        assert_eq!(PathIdentity::touched(&temp.path().join("d/b")).len(), 1);
    }

    #[test]
    fn what_is_one_file_for_the_system_overlaps() {
        let temp = tree();
        let real = PathIdentity::find(&temp.path().join("d/b"));
        // As a file system that ignores case, or a second mount, shows it.
        let other_name = PathIdentity {
            path: PathBuf::from("/mnt/elsewhere"),
            ..real.clone()
        };
        assert!(real.overlaps(&other_name));
        let directory = PathIdentity::find(&temp.path().join("d"));
        assert!(directory.overlaps(&other_name));
    }
}
