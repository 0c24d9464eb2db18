//! Turns changes of paths into changes of files: a rename is one change.
//!
//! The journal records the old and new content of each path. A renamed file would otherwise show as one
//! removed and one created file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Change of one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathChange<'a, T> {
    /// The path.
    pub path: &'a Path,
    /// Old content; `None` when nothing existed.
    pub old: Option<T>,
    /// New content; `None` when nothing exists.
    pub new: Option<T>,
    /// New path of the file that was here.
    pub renamed_to: Option<&'a Path>,
}

/// Change of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileChange<'a, T> {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Path before the change.
    pub path: &'a Path,
    /// New path of a renamed file.
    pub to: Option<&'a Path>,
    /// Old content; `None` for a created file.
    pub old: Option<T>,
    /// New content; `None` for a removed file.
    pub new: Option<T>,
}

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The file was created.
    Created,
    /// The file was removed.
    Deleted,
    /// The content changed.
    Edited,
    /// The path changed, perhaps with the content.
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

/// Derives the changes of files from the changes of paths.
pub(crate) fn file_changes<'a, T: Copy>(paths: &[PathChange<'a, T>]) -> Vec<FileChange<'a, T>> {
    let news: HashMap<&Path, Option<T>> = paths.iter().map(|at| (at.path, at.new)).collect();
    let targets: HashSet<&Path> = paths.iter().filter_map(|at| at.renamed_to).collect();
    let mut files = Vec::with_capacity(paths.len());
    for at in paths {
        let is_target = targets.contains(at.path);
        // Content that moved here is listed with the file it came from.
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

    /// Parses paths as `path old new to`, with `-` for none; expects files as `kind path to old new`.
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
    fn a_rename_is_one_change() {
        check(&["a A - b", "b - A -"], &["renamed a b A A"]);
        check(&["b - B -", "a A - b"], &["renamed a b A B"]);
        // Two files swap their names.
        check(
            &["a A B b", "b B A a"],
            &["renamed a b A A", "renamed b a B B"],
        );
        // A file replaces a removed one.
        check(
            &["a A B -", "b B - a"],
            &["deleted a - A -", "renamed b a B B"],
        );
        // A new file replaces a renamed one.
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
