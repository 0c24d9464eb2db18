//! Lists a directory, one level deep.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::kind::Special;
use crate::error::ToolError;
use crate::limits;

/// The entries of a directory, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The first entries.
    pub entries: Vec<Entry>,
    /// Entries left out because there are too many.
    pub omitted_entries: u64,
    /// Entries left out because `.gitignore` names them.
    pub ignored_entries: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A file of this many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symlink and what it says.
    Symlink(String),
    /// A pipe, socket or device.
    Special(Special),
    /// The system does not tell, or it went away meanwhile.
    Unknown,
}

impl Entry {
    /// Returns the entry as one line: `src/`, `a.txt`, `link -> target`, `pipe (fifo)`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = &self.name;
        match &self.kind {
            EntryKind::File(_) | EntryKind::Unknown => name.clone(),
            EntryKind::Directory => format!("{name}/"),
            EntryKind::Symlink(target) => format!("{name} -> {target}"),
            EntryKind::Special(special) => format!("{name} ({})", special.as_str()),
        }
    }

    /// Returns the size of a file.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self.kind {
            EntryKind::File(size) => Some(size),
            EntryKind::Directory
            | EntryKind::Symlink(_)
            | EntryKind::Special(_)
            | EntryKind::Unknown => None,
        }
    }
}

/// Which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that `.gitignore` does not name, and not `.git`.
    NotIgnored,
    /// All.
    All,
}

/// Lists the entries of the directory `real`, which messages call `shown`.
///
/// # Errors
/// The directory cannot be read.
pub fn list(shown: &Path, real: &Path, scope: Scope) -> Result<Listing, ToolError> {
    let everything = std::fs::read_dir(real).map_err(|error| ToolError::from_io(shown, &error))?;
    let total = everything.filter(Result::is_ok).count() as u64;
    let mut kept: BinaryHeap<ByName> = BinaryHeap::new();
    let mut seen = 0_u64;
    for path in walk(real, scope) {
        seen += 1;
        kept.push(ByName(path));
        if kept.len() > limits::MAX_LISTING_ENTRIES {
            // The last name of all so far.
            kept.pop();
        }
    }
    let paths = kept.into_sorted_vec();
    Ok(Listing {
        omitted_entries: seen - paths.len() as u64,
        ignored_entries: total.saturating_sub(seen),
        entries: paths.iter().map(|path| entry(&path.0)).collect(),
    })
}

/// Starts a walk that reads no settings of the user, only `.gitignore` files.
pub(super) fn walk_builder(directory: &Path, scope: Scope) -> WalkBuilder {
    let respects = scope == Scope::NotIgnored;
    let mut builder = WalkBuilder::new(directory);
    builder
        .standard_filters(false)
        .parents(respects)
        .ignore(respects)
        .git_ignore(respects)
        .git_exclude(respects);
    builder.require_git(false).follow_links(false);
    if respects {
        builder.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    }
    builder
}

fn walk(directory: &Path, scope: Scope) -> impl Iterator<Item = PathBuf> {
    let walk = walk_builder(directory, scope).max_depth(Some(1)).build();
    walk.filter_map(Result::ok)
        .filter(|entry| entry.depth() == 1)
        .map(ignore::DirEntry::into_path)
}

#[derive(PartialEq, Eq)]
struct ByName(PathBuf);

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.file_name().cmp(&other.0.file_name())
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn entry(path: &Path) -> Entry {
    let kind = match std::fs::symlink_metadata(path) {
        Ok(found) => kind(path, &found),
        Err(_) => EntryKind::Unknown,
    };
    let name = path.file_name().unwrap_or_default();
    Entry {
        name: name.to_string_lossy().into_owned(),
        kind,
    }
}

fn kind(path: &Path, found: &Metadata) -> EntryKind {
    let file_type = found.file_type();
    if file_type.is_dir() {
        return EntryKind::Directory;
    }
    if file_type.is_file() {
        return EntryKind::File(found.len());
    }
    if file_type.is_symlink() {
        let target = std::fs::read_link(path).unwrap_or_default();
        return EntryKind::Symlink(target.to_string_lossy().into_owned());
    }
    Special::of(file_type).map_or(EntryKind::Unknown, EntryKind::Special)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &Path, scope: Scope, expected: &[&str], counts: (u64, u64)) {
        let listing = list(path, path, scope).unwrap();
        let seen: Vec<String> = listing
            .entries
            .iter()
            .map(|entry| match entry.size() {
                Some(size) => format!("{} {size}", entry.label()),
                None => entry.label(),
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!((listing.omitted_entries, listing.ignored_entries), counts);
    }

    #[test]
    fn entries_are_sorted_and_named_by_kind() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        std::fs::create_dir_all(top.join("src/deep")).unwrap();
        std::fs::create_dir(top.join(".git")).unwrap();
        std::fs::write(top.join("b.txt"), "12345").unwrap();
        std::fs::write(top.join("a.log"), "1").unwrap();
        std::fs::write(top.join(".gitignore"), "*.log\n").unwrap();
        std::os::unix::fs::symlink("b.txt", top.join("link")).unwrap();
        nix::unistd::mkfifo(&top.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let shown = [
            ".gitignore 6",
            "b.txt 5",
            "link -> b.txt",
            "pipe (fifo)",
            "src/",
        ];
        check(top, Scope::NotIgnored, &shown, (0, 2));
        let all = [
            ".git/",
            ".gitignore 6",
            "a.log 1",
            "b.txt 5",
            "link -> b.txt",
            "pipe (fifo)",
            "src/",
        ];
        check(top, Scope::All, &all, (0, 0));
    }

    #[test]
    fn large_directories_are_capped() {
        let temp = tempfile::tempdir().unwrap();
        for index in 0..limits::MAX_LISTING_ENTRIES + 5 {
            std::fs::write(temp.path().join(format!("{index:05}")), "").unwrap();
        }
        let listing = list(temp.path(), temp.path(), Scope::NotIgnored).unwrap();
        assert_eq!(
            (listing.entries.len(), listing.omitted_entries),
            (limits::MAX_LISTING_ENTRIES, 5)
        );
        assert_eq!(
            listing.entries.first().map(Entry::label),
            Some("00000".into())
        );
    }
}
