//! Conflict of an undo: a file that is not what karyi wrote.

use std::path::{Path, PathBuf};

use super::super::journal::{Journal, Version};

/// File that is not what karyi wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: PathBuf,
    /// Content that karyi wrote.
    pub wrote: ConflictContent,
    /// Content now.
    pub now: ConflictContent,
    /// Content that would be restored.
    pub restored: ConflictContent,
    /// First and last lines of the present content that changed on both sides, where it could be compared.
    pub lines: Vec<(usize, usize)>,
}

/// Content in a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictContent {
    /// No file.
    Missing,
    /// Content that is not stored or cannot be read.
    Unknown,
    /// Known content.
    Bytes(Vec<u8>),
    /// Anything but a file, in words: `a link to X`, `a directory`.
    Other(String),
}

impl Conflict {
    /// Collects the three contents.
    pub(super) fn new(
        journal: &Journal,
        path: &Path,
        wrote: Option<&Version>,
        now: ConflictContent,
        restored: Option<(&Version, Vec<u8>)>,
    ) -> Self {
        let wrote = match wrote {
            None => ConflictContent::Missing,
            Some(version) => journal
                .content(version)
                .map_or(ConflictContent::Unknown, ConflictContent::Bytes),
        };
        Self {
            path: path.to_owned(),
            wrote,
            now,
            restored: restored.map_or(ConflictContent::Missing, |(_, bytes)| {
                ConflictContent::Bytes(bytes)
            }),
            lines: Vec::new(),
        }
    }
}

/// Describes what is in the place of a file or of one of its directories; `None` when each is of the right
/// kind.
pub(super) fn obstacle(path: &Path) -> Option<String> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let is_no_directory =
        |path: &&&Path| !std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    if let Some(parent) = above.iter().find(is_no_directory) {
        let found = what_is(parent)?;
        return Some(format!(
            "nothing: its directory {} is {found}",
            parent.display()
        ));
    }
    what_is(path).filter(|found| found != "a file")
}

fn what_is(path: &Path) -> Option<String> {
    let kind = std::fs::symlink_metadata(path).ok()?.file_type();
    Some(match std::fs::read_link(path) {
        Ok(target) => format!("a link to {}", target.display()),
        Err(_) if kind.is_dir() => "a directory".to_owned(),
        Err(_) if kind.is_file() => "a file".to_owned(),
        Err(_) => "a pipe, socket or device".to_owned(),
    })
}
