//! Decides whether two paths could name the same file, however they are spelled.
//!
//! Calls on the same file must not overlap, so this errs on the side of "same": letters are compared without
//! case even on case-sensitive file systems, since nothing reveals the case rules for a file that does not
//! exist yet. Existing files are compared by device and inode, which covers hard links, bind mounts and
//! normalised names.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::root::canonical_for_plan;

/// Device and inode number.
type FileId = (u64, u64);

/// Identity of the target of a path, as known at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathIdentity {
    /// Canonical path, case-folded.
    path: PathBuf,
    /// Existing components, from the root down.
    known: Vec<FileId>,
    /// Number of trailing components that do not exist.
    missing: usize,
    /// True for a directory.
    is_directory: bool,
    /// True for a file with several hard links.
    is_linked: bool,
}

impl PathIdentity {
    /// Returns what a call with an absolute path may touch: the target of the path, and the symlink itself if
    /// it is one.
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

    /// Resolves an absolute path; nothing of it need exist.
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

    /// Returns the directory that is searched for similar names when the path does not exist: the nearest
    /// existing one.
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

    /// Returns the identity that overlaps every other one.
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

    /// Tells whether one path could equal or contain the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.path.starts_with(&other.path)
            || other.path.starts_with(&self.path)
            || self.is_within(other)
            || other.is_within(self)
            || self.is_missing_with(other)
    }

    /// Tells whether the other path equals or contains this one, or is a directory that may hold another link
    /// to this file.
    fn is_within(&self, other: &Self) -> bool {
        let above = other.known.last().filter(|_| other.missing == 0);
        above.is_some_and(|above| self.known.contains(above))
            || self.is_linked && other.is_directory
    }

    /// Tells whether both are missing in the same directory and one could equal or contain the other.
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

/// Case-folds a name. Upper case first: `ß` and `SS` are equal where case does not count.
fn fold(part: std::path::Component<'_>) -> PathBuf {
    let name = part.as_os_str().to_string_lossy();
    PathBuf::from(name.to_uppercase().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates `a`, `d/b`, `d/e/`, a hard link `d/hard` to `a`, and symlinks to a file, a directory and
    /// nothing.
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
    fn a_symlink_itself_is_touched() {
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
    fn names_of_one_file_overlap() {
        let temp = tree();
        let real = PathIdentity::find(&temp.path().join("d/b"));
        // As a case-insensitive file system or a second mount shows it.
        let other_name = PathIdentity {
            path: PathBuf::from("/mnt/elsewhere"),
            ..real.clone()
        };
        assert!(real.overlaps(&other_name));
        let directory = PathIdentity::find(&temp.path().join("d"));
        assert!(directory.overlaps(&other_name));
    }
}
