//! A file that is not what karyi wrote: what it wrote, what is there, what would be restored.

use std::path::{Path, PathBuf};

use super::super::journal::{Journal, Version};

/// A file that is not what karyi wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: PathBuf,
    /// What karyi wrote; none when it removed the file.
    pub wrote: ConflictContent,
    /// What is there now; none when there is no file.
    pub now: ConflictContent,
    /// What would be restored; none when the file would be removed.
    pub restored: ConflictContent,
}

/// One of the contents of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictContent {
    /// There is no file.
    Missing,
    /// The content is not kept, or cannot be read.
    Unknown,
    /// The content.
    Bytes(Vec<u8>),
    /// Something else than a file, in words: `a link to X`, `a directory`.
    Other(String),
}

impl Conflict {
    /// Puts the three contents together.
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
        }
    }
}

/// Says what is where a file or one of its directories was; nothing when each is what it should be.
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
