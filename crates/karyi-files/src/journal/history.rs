//! The files of a change as they are told: one that was renamed is told once.
//!
//! What a path held and what it holds is recorded for each path. A file that only went from one to
//! another would show as one that was removed and one that was made.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// What became of one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathChange<'a, T> {
    /// The path.
    pub path: &'a Path,
    /// What it held; none when nothing was there.
    pub old: Option<T>,
    /// What it holds; none when nothing is there.
    pub new: Option<T>,
    /// Where the file went that was there.
    pub renamed_to: Option<&'a Path>,
}

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileChange<'a, T> {
    /// What was done.
    pub kind: ChangeKind,
    /// Where it was, or is when it was not renamed.
    pub path: &'a Path,
    /// Where it is, when it was renamed.
    pub to: Option<&'a Path>,
    /// What it held; none when it was made.
    pub old: Option<T>,
    /// What it holds; none when it was removed.
    pub new: Option<T>,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was made.
    Created,
    /// It was removed.
    Deleted,
    /// It holds something else.
    Edited,
    /// It has another name, and may hold something else.
    Renamed,
}

impl ChangeKind {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Renamed => "renamed",
        }
    }
}

/// Says what became of each file, from what became of each path.
pub(crate) fn file_changes<'a, T: Copy>(paths: &[PathChange<'a, T>]) -> Vec<FileChange<'a, T>> {
    let news: HashMap<&Path, Option<T>> = paths.iter().map(|at| (at.path, at.new)).collect();
    let targets: HashSet<&Path> = paths.iter().filter_map(|at| at.renamed_to).collect();
    let mut files = Vec::with_capacity(paths.len());
    for at in paths {
        let is_target = targets.contains(at.path);
        // What a path holds that another file came to is told with that file.
        let new = at.new.filter(|_| !is_target);
        if let Some(to) = at.renamed_to {
            files.push(FileChange {
                kind: ChangeKind::Renamed,
                path: at.path,
                to: Some(to),
                old: at.old,
                new: news.get(to).copied().flatten(),
            });
        }
        let old = at.old.filter(|_| at.renamed_to.is_none());
        let kind = match (old.is_some(), new.is_some()) {
            (false, false) => continue,
            (false, true) => ChangeKind::Created,
            (true, false) => ChangeKind::Deleted,
            (true, true) => ChangeKind::Edited,
        };
        files.push(FileChange {
            kind,
            path: at.path,
            to: None,
            old,
            new,
        });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths as `path old new to`, with `-` for none; the files as `kind path to old new`.
    fn check(paths: &[&str], expected: &[&str]) {
        let word = |word: &'static str| (word != "-").then_some(word);
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let paths: Vec<PathChange<'_, &str>> = paths
            .iter()
            .map(|row| {
                let words: Vec<&'static str> = leak(row).split(' ').collect();
                PathChange {
                    path: Path::new(words[0]),
                    old: word(words[1]),
                    new: word(words[2]),
                    renamed_to: word(words[3]).map(Path::new),
                }
            })
            .collect();
        let shown: Vec<String> = file_changes(&paths)
            .iter()
            .map(|file| {
                let to = file.to.map_or("-".into(), |to| to.display().to_string());
                let (old, new) = (file.old.unwrap_or("-"), file.new.unwrap_or("-"));
                let kind = file.kind.as_str();
                format!("{kind} {} {to} {old} {new}", file.path.display())
            })
            .collect();
        assert_eq!(shown, expected, "{paths:?}");
    }

    #[test]
    fn a_renamed_file_is_told_once() {
        check(&["a A - b", "b - A -"], &["renamed a b A A"]);
        check(&["b - B -", "a A - b"], &["renamed a b A B"]);
        // Two change places.
        check(
            &["a A B b", "b B A a"],
            &["renamed a b A A", "renamed b a B B"],
        );
        // One takes the place of another that goes.
        check(
            &["a A B -", "b B - a"],
            &["deleted a - A -", "renamed b a B B"],
        );
        // A new one takes its place.
        check(
            &["a A N b", "b - A -"],
            &["renamed a b A A", "created a - - N"],
        );
        check(
            &["a A B -", "b - B -", "c C - -", "d - - -"],
            &["edited a - A B", "created b - - B", "deleted c - C -"],
        );
    }
}
