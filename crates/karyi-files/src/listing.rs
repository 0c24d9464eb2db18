//! Lists a directory as a tree.
//!
//! Levels are filled breadth-first up to the limit, so that a large directory deep down never hides the top
//! levels. Omitted entries are counted beside their directory.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};
use rustix::fs::{AtFlags, FileType};

use super::kind::SpecialFile;
use super::opener::{Opener, names};
use super::root::PrivatePaths;
use karyi_core::error::ToolError;
use karyi_core::limits;

/// Entries of a directory and of those below it, in display order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Entries; the children of a directory follow it.
    pub entries: Vec<ListingEntry>,
    /// Entries omitted because there are too many or they are too deep.
    pub omitted_entries: u64,
    /// Entries omitted because of `.gitignore`.
    pub ignored_entries: u64,
}

/// Entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// Depth below the listed directory.
    pub depth: usize,
    /// Name, with invalid UTF-8 and control characters replaced.
    pub name: String,
    /// Kind of the entry.
    pub kind: EntryKind,
}

/// Kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A file of this many bytes.
    File(u64),
    /// Directory with its number of omitted entries; `None` when it cannot be read.
    Directory(Option<u64>),
    /// Symlink with its target.
    Symlink(String),
    /// A pipe, socket or device.
    Special(SpecialFile),
    /// Unknown to the system, or removed meanwhile.
    Unknown,
}

impl ListingEntry {
    /// Formats the entry as one line: `src/`, `src/  12 entries not shown`, `a.txt  5 bytes`, `link ->
    /// target`, `pipe (fifo)`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = format!("{}{}", "  ".repeat(self.depth), self.name);
        match &self.kind {
            EntryKind::File(bytes) => format!("{name}  {bytes} bytes"),
            EntryKind::Unknown => name,
            EntryKind::Directory(Some(0)) => format!("{name}/"),
            EntryKind::Directory(Some(1)) => format!("{name}/  1 entry not shown"),
            EntryKind::Directory(Some(count)) => format!("{name}/  {count} entries not shown"),
            EntryKind::Directory(None) => format!("{name}/  cannot be read"),
            EntryKind::Symlink(target) => format!("{name} -> {target}"),
            EntryKind::Special(special) => format!("{name} ({})", special.as_str()),
        }
    }
}

/// Selection of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All except `.git` and those that `.gitignore` names.
    NotIgnored,
    /// All.
    All,
}

/// Filter of entries in all walks.
#[derive(Debug, Clone)]
pub(super) struct EntryFilter {
    /// Decides whether `.gitignore` counts.
    pub(super) scope: Scope,
    /// Paths that are never shown.
    pub(super) private_paths: Arc<PrivatePaths>,
}

impl EntryFilter {
    /// Returns the filter for a walk below a resolved directory.
    pub(super) fn below(&self, top: &Path) -> WalkFilter {
        let private_paths = self
            .private_paths
            .may_be_below(top)
            .then(|| Arc::clone(&self.private_paths));
        let scope = self.scope;
        WalkFilter {
            scope,
            private_paths,
        }
    }
}

/// Filter of entries in one walk.
#[derive(Debug, Clone)]
pub(super) struct WalkFilter {
    scope: Scope,
    /// Paths that are never shown, if the walk can reach them.
    private_paths: Option<Arc<PrivatePaths>>,
}

impl WalkFilter {
    /// Tells whether a walk includes an entry that no ignore file excludes.
    pub(super) fn is_shown(&self, entry: &DirEntry) -> bool {
        let is_git = self.scope == Scope::NotIgnored && entry.file_name() == ".git";
        let is_own = |private_paths: &Arc<PrivatePaths>| private_paths.hides(entry.path());
        !(is_git || self.private_paths.as_ref().is_some_and(is_own))
    }
}

/// Lists `depth` levels of the directory `real`, which messages call `shown`.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn list(
    opener: &Opener,
    shown: &Path,
    real: &Path,
    filter: &EntryFilter,
    depth: usize,
) -> Result<Listing, ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let top = open(opener, real, filter, limits::MAX_LISTING_ENTRIES).map_err(io)?;
    let mut tree = Tree {
        opener,
        rows: Vec::new(),
        closed: VecDeque::new(),
        omitted_entries: top.omitted,
        ignored_entries: top.ignored,
    };
    let roots = tree.add(0, top.found);
    while let Some(row) = tree.closed.pop_front() {
        tree.open(row, filter, depth.clamp(1, limits::MAX_LISTING_DEPTH));
    }
    let mut listing = Listing {
        entries: Vec::with_capacity(tree.rows.len()),
        omitted_entries: tree.omitted_entries,
        ignored_entries: tree.ignored_entries,
    };
    tree.flatten(roots, &mut listing.entries);
    Ok(listing)
}

/// Tree that is filled level by level.
struct Tree<'a> {
    opener: &'a Opener,
    rows: Vec<Row>,
    /// Directories that are not opened yet.
    closed: VecDeque<usize>,
    omitted_entries: u64,
    ignored_entries: u64,
}

struct Row {
    path: PathBuf,
    entry: ListingEntry,
    children: std::ops::Range<usize>,
}

impl Tree<'_> {
    /// Adds the entries of one directory; returns their rows.
    fn add(&mut self, depth: usize, found: Vec<(PathBuf, EntryKind)>) -> std::ops::Range<usize> {
        let start = self.rows.len();
        for (path, kind) in found {
            let entry = entry(&path, depth, kind);
            if matches!(entry.kind, EntryKind::Directory(_)) {
                self.closed.push_back(self.rows.len());
            }
            let children = 0..0;
            self.rows.push(Row {
                path,
                entry,
                children,
            });
        }
        start..self.rows.len()
    }

    fn open(&mut self, at: usize, filter: &EntryFilter, levels: usize) {
        let Some(row) = self.rows.get(at) else {
            return;
        };
        let below = row.entry.depth + 1;
        let room = limits::MAX_LISTING_ENTRIES.saturating_sub(self.rows.len());
        let room = if below < levels { room } else { 0 };
        let opened = open(self.opener, &row.path, filter, room);
        let left = opened.as_ref().map(|opened| opened.omitted).ok();
        let children = match opened {
            Ok(opened) => {
                self.omitted_entries += opened.omitted;
                self.ignored_entries += opened.ignored;
                self.add(below, opened.found)
            }
            Err(_) => 0..0,
        };
        if let Some(row) = self.rows.get_mut(at) {
            row.entry.kind = EntryKind::Directory(left);
            row.children = children;
        }
    }

    /// Flattens rows depth-first.
    fn flatten(&mut self, rows: std::ops::Range<usize>, entries: &mut Vec<ListingEntry>) {
        let mut left = vec![rows];
        while let Some(mut rows) = left.pop() {
            let Some(at) = rows.next() else {
                continue;
            };
            left.push(rows);
            if let Some(row) = self.rows.get(at) {
                entries.push(row.entry.clone());
                left.push(row.children.clone());
            }
        }
    }
}

/// First entries of one directory by name.
struct DirectoryPage {
    found: Vec<(PathBuf, EntryKind)>,
    omitted: u64,
    ignored: u64,
}

fn open(
    opener: &Opener,
    directory: &Path,
    filter: &EntryFilter,
    room: usize,
) -> std::io::Result<DirectoryPage> {
    let opened = opener.directory(directory)?;
    let total = names(&opened)?.count() as u64;
    let mut first_names: BinaryHeap<ByName> = BinaryHeap::new();
    let mut seen = 0_u64;
    for path in walk(directory, filter) {
        seen += 1;
        first_names.push(ByName(path));
        if first_names.len() > room {
            // Drops the last name so far.
            first_names.pop();
        }
    }
    // The walk went by path, which may have been changed since; the open directory decides.
    let paths = first_names.into_sorted_vec().into_iter().map(|path| path.0);
    let found: Vec<(PathBuf, EntryKind)> = paths
        .filter_map(|path| kind(&opened, path.file_name()?).map(|kind| (path, kind)))
        .collect();
    Ok(DirectoryPage {
        omitted: seen.min(total).saturating_sub(found.len() as u64),
        ignored: total.saturating_sub(seen),
        found,
    })
}

/// Starts a walk that honours `.gitignore` files but no user settings, and skips karyi's own files.
pub(super) fn walk_builder(directory: &Path, filter: &WalkFilter) -> WalkBuilder {
    let respects = filter.scope == Scope::NotIgnored;
    let mut builder = WalkBuilder::new(directory);
    builder
        .standard_filters(false)
        .parents(respects)
        .ignore(respects)
        .git_ignore(respects)
        .git_exclude(respects);
    // Nested repositories start with their own rules, which the walk only respects when it requires git.
    builder
        .require_git(is_in_repository(directory))
        .follow_links(false);
    let filter = filter.clone();
    builder.filter_entry(move |entry| entry.depth() == 0 || filter.is_shown(entry));
    builder
}

/// Tells whether a directory is the top of a repository.
pub(super) fn is_repository(directory: &Path) -> bool {
    directory.join(".git").exists()
}

/// Tells whether a directory is inside a repository, or its top.
pub(super) fn is_in_repository(directory: &Path) -> bool {
    directory.ancestors().any(is_repository)
}

fn walk(directory: &Path, filter: &EntryFilter) -> impl Iterator<Item = PathBuf> {
    let mut walk = walk_builder(directory, &filter.below(directory));
    let walk = walk.max_depth(Some(1)).build();
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

fn entry(path: &Path, depth: usize, kind: EntryKind) -> ListingEntry {
    let name = path.file_name().unwrap_or_default();
    ListingEntry {
        depth,
        name: one_line(&name.to_string_lossy()),
        kind,
    }
}

/// Returns the kind of an entry in an open directory; `None` when it does not exist.
fn kind(directory: &File, name: &OsStr) -> Option<EntryKind> {
    let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT) => return None,
        Err(_) => return Some(EntryKind::Unknown),
    };
    Some(match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => EntryKind::Directory(Some(0)),
        FileType::RegularFile => EntryKind::File(u64::try_from(found.st_size).unwrap_or(0)),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name, Vec::new()).unwrap_or_default();
            EntryKind::Symlink(one_line(&target.to_string_lossy()))
        }
        FileType::Fifo => EntryKind::Special(SpecialFile::Fifo),
        FileType::Socket => EntryKind::Special(SpecialFile::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => {
            EntryKind::Special(SpecialFile::Device)
        }
        FileType::Unknown => EntryKind::Unknown,
    })
}

/// Replaces control characters in a name, so that it stays on one line.
#[must_use]
pub fn one_line(name: &str) -> String {
    name.replace(char::is_control, "\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(scope: Scope) -> EntryFilter {
        let private_paths = Arc::default();
        EntryFilter {
            scope,
            private_paths,
        }
    }

    fn check(path: &Path, scope: Scope, expected: &[&str], counts: (u64, u64)) {
        let listing = list(&Opener::Path, path, path, &filter(scope), 2).unwrap();
        let seen: Vec<String> = listing.entries.iter().map(ListingEntry::label).collect();
        assert_eq!(seen, expected);
        assert_eq!((listing.omitted_entries, listing.ignored_entries), counts);
    }

    #[test]
    fn entries_are_sorted_and_named_by_kind() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        std::fs::create_dir_all(top.join("src/deep")).unwrap();
        std::fs::create_dir(top.join(".git")).unwrap();
        std::fs::write(top.join("src/new\nline"), "").unwrap();
        std::fs::write(top.join("src/deep/x"), "").unwrap();
        std::fs::write(top.join("src/deep/x.log"), "").unwrap();
        std::fs::write(top.join("b.txt"), "12345").unwrap();
        std::fs::write(top.join("a.log"), "1").unwrap();
        std::fs::write(top.join(".gitignore"), "*.log\n").unwrap();
        std::os::unix::fs::symlink("b.txt", top.join("link")).unwrap();
        nix::unistd::mkfifo(&top.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let shown = [
            ".gitignore  6 bytes",
            "b.txt  5 bytes",
            "link -> b.txt",
            "pipe (fifo)",
            "src/",
            "  deep/  1 entry not shown",
            "  new\u{FFFD}line  0 bytes",
        ];
        check(top, Scope::NotIgnored, &shown, (1, 3));
        let all = [
            ".git/",
            ".gitignore  6 bytes",
            "a.log  1 bytes",
            "b.txt  5 bytes",
            "link -> b.txt",
            "pipe (fifo)",
            "src/",
            "  deep/  2 entries not shown",
            "  new\u{FFFD}line  0 bytes",
        ];
        check(top, Scope::All, &all, (2, 0));
    }

    #[test]
    fn large_directories_are_capped() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        let most = limits::MAX_LISTING_ENTRIES;
        for directory in ["a", "b", "c"] {
            std::fs::create_dir(top.join(directory)).unwrap();
            for index in 0..most / 2 {
                std::fs::write(top.join(directory).join(format!("{index:05}")), "").unwrap();
            }
        }
        let listing = list(&Opener::Path, top, top, &filter(Scope::NotIgnored), 9).unwrap();
        let left = 3 + 3 * (most / 2) - most;
        assert_eq!(
            (listing.entries.len(), listing.omitted_entries),
            (most, left as u64)
        );
        let directories = listing.entries.iter().filter(|entry| entry.depth == 0);
        let labels: Vec<String> = directories.map(ListingEntry::label).collect();
        assert_eq!(
            labels,
            ["a/", "b/  3 entries not shown", "c/  500 entries not shown"]
        );
        let flat = list(&Opener::Path, top, top, &filter(Scope::NotIgnored), 1).unwrap();
        assert_eq!(
            (flat.entries.len(), flat.omitted_entries),
            (3, 3 * (most as u64 / 2))
        );
    }
}
