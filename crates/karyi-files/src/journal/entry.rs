//! Entry of the journal: one change.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::history::{ChangeKind, FileChange, PathChange, file_changes};
use crate::risk::is_in_git;

/// One recorded change of one or more files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Number, from 1.
    #[serde(default)]
    pub number: u64,
    /// Transaction that made it.
    pub id: String,
    /// Time in milliseconds since 1970.
    pub time_ms: u64,
    /// Session that made it.
    pub session: String,
    /// Call that made it; empty when there was none.
    pub call: String,
    /// Tool that made it, or `undo`.
    pub tool: String,
    /// Name of the key that encrypts its contents; `None` when they are plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Entries that it took back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
    /// Changes of the paths.
    pub files: Vec<FileRecord>,
    /// Directories it created, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<StoredPath>,
}

/// Recorded change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Path with every symlink resolved.
    pub path: StoredPath,
    /// Version before; `None` when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Version>,
    /// Version after; `None` when it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Version>,
    /// New path of its content after a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<StoredPath>,
}

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Name of its content in the blob store.
    pub content: String,
    /// Size in bytes.
    pub size: u64,
    /// Permissions.
    pub mode: u32,
    /// User and group; `None` in entries from before they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Name of its attributes in the blob store; `None` when it had none, empty when they could not be
    /// stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
    /// True if its content is stored. Content with a secret is not when it could not be encrypted.
    pub is_kept: bool,
}

impl FileRecord {
    /// Returns the reason why this can never be undone; `None` when it can.
    #[must_use]
    pub fn obstacle(&self) -> Option<&'static str> {
        // Without the name of the new content nothing can verify that it is still there.
        let is_known = self.new.as_ref().is_none_or(|new| !new.content.is_empty());
        let has_old = self.old.as_ref().is_none_or(|old| old.is_kept);
        match (has_old, is_known) {
            _ if is_in_git(self.path.as_path()) => Some("belongs to git, which undo never touches"),
            (true, true) => None,
            (false, _) => Some("its content before that change was not stored"),
            (true, false) => Some(
                "its new content was not recorded, so later changes of the file could not be detected",
            ),
        }
    }
}

impl Entry {
    /// Returns the changes of the files, renames combined.
    #[must_use]
    pub fn file_changes(&self) -> Vec<FileChange<'_, &Version>> {
        let paths = self.files.iter().map(|file| PathChange {
            path: file.path.as_path(),
            old: file.old.as_ref(),
            new: file.new.as_ref(),
            renamed_to: file.renamed_to.as_ref().map(StoredPath::as_path),
        });
        file_changes(&paths.collect::<Vec<_>>())
    }

    /// Returns the directories it created, outermost first.
    pub(crate) fn made_paths(&self) -> Vec<PathBuf> {
        self.made.iter().map(|path| path.0.clone()).collect()
    }

    /// Tells whether undo is allowed and has the contents it needs.
    #[must_use]
    pub fn can_be_undone(&self) -> bool {
        self.obstacle().is_none()
    }

    /// Returns the reason why this can never be undone; `None` when it can.
    #[must_use]
    pub fn obstacle(&self) -> Option<&'static str> {
        self.files.iter().find_map(FileRecord::obstacle)
    }
}

impl FileChange<'_, &Version> {
    /// Tells whether a renamed file was edited, too. Contents without a name, which must not be stored, only
    /// differ by size.
    #[must_use]
    pub fn is_renamed_and_edited(&self) -> bool {
        let is_other =
            |(old, new): (&Version, &Version)| old.content != new.content || old.size != new.size;
        self.kind == ChangeKind::Renamed && self.old.zip(self.new).is_some_and(is_other)
    }
}

/// Path in JSON: text, or NUL and hexadecimal digits when it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredPath(pub PathBuf);

impl StoredPath {
    /// Returns the path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<&Path> for StoredPath {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => {
                let bytes = self.0.as_os_str().as_bytes().iter();
                let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
                serializer.serialize_str(&format!("\0{hex}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some(hex) = text.strip_prefix('\0') else {
            return Ok(Self(text.into()));
        };
        let digits: Vec<u8> = hex
            .chars()
            .filter_map(|c| c.to_digit(16)?.try_into().ok())
            .collect();
        let bytes = digits.chunks_exact(2).map(|pair| match pair {
            [high, low] => high * 16 + low,
            _ => 0,
        });
        Ok(Self(OsString::from_vec(bytes.collect()).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_round_trips() {
        for bytes in [&b"/plain"[..], b"/caf\xC3\xA9", b"/caf\xE9/\x01", b""] {
            let path = StoredPath(OsString::from_vec(bytes.to_vec()).into());
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<StoredPath>(&text).unwrap(), path);
        }
    }
}
