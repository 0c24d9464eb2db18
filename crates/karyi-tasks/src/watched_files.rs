//! Files that a condition watches: one path, or a pattern with `*`, `**` and `?`.
//!
//! `*` and `?` do not cross a `/`, and `**` follows no symlink. Paths are relative to the work directory; a symlink in a
//! path, or in the part of a pattern before its first sign, counts only when it leads to a place in that directory.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use globset::{GlobBuilder, GlobMatcher};
use karyi_core::error::ToolError;
use karyi_core::{ids, limits};

use crate::argument::{check_text, misfit};

/// Characters of a pattern.
const SIGNS: [char; 2] = ['*', '?'];

/// Checks a path or pattern and returns it.
pub(crate) fn check_pattern(at: &str, pattern: &str) -> Result<String, ToolError> {
    let at = format!("{at}.path");
    check_text(&at, pattern)?;
    if pattern.contains('\0') {
        return Err(misfit(&at, "a path", "a NUL character"));
    }
    if pattern.contains(SIGNS) {
        matcher(pattern).map_err(|reason| misfit(&at, "a pattern", reason))?;
    }
    Ok(pattern.to_owned())
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let mut plain = String::new();
    for sign in pattern.chars() {
        // The other signs of globs stand for themselves.
        plain.extend(['\\'].iter().filter(|_| r"[]{}\".contains(sign)));
        plain.push(sign);
    }
    let mut glob = GlobBuilder::new(&plain);
    let glob = glob.literal_separator(true).backslash_escape(true);
    let glob = glob.build().map_err(|error| error.to_string())?;
    Ok(glob.compile_matcher())
}

/// Tells whether a path or pattern has a regular file.
pub(crate) fn exist(work: &Path, pattern: &str) -> bool {
    found(work, pattern).values().any(Metadata::is_file)
}

/// Returns what a path or pattern has, sorted.
fn found(work: &Path, pattern: &str) -> BTreeMap<PathBuf, Metadata> {
    match pattern.contains(SIGNS) {
        false => one(work, pattern).into_iter().collect(),
        true => matching(work, pattern),
    }
}

/// Returns what is at a path without signs, if anything is.
fn one(work: &Path, path: &str) -> Option<(PathBuf, Metadata)> {
    let place = place(work, path.as_ref())?;
    let found = place.metadata().ok()?;
    Some((place, found))
}

/// Returns where a path leads; a symlink on the way leads nowhere outside of the work directory.
fn place(work: &Path, path: &Path) -> Option<PathBuf> {
    let work = work.canonicalize().ok()?;
    let mut named = PathBuf::new();
    for part in work.join(path).components() {
        match part {
            Component::ParentDir => _ = named.pop(),
            part => named.push(part),
        }
    }
    let place = named.canonicalize().ok()?;
    (place == named || place.starts_with(&work)).then_some(place)
}

/// Returns a text that differs when names, times or sizes of the files differ.
pub(crate) fn fingerprint(work: &Path, pattern: &str) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for (path, found) in found(work, pattern) {
        let modified = found
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = modified.map_or(0, |time| time.as_nanos());
        context.update(path.as_os_str().as_encoded_bytes());
        context.update(format!("\0{nanos}\0{}\0", found.len()).as_bytes());
    }
    ids::hex(context.finish().as_ref().get(..16).unwrap_or_default())
}

/// Returns the directory whose changes may be changes of a path or pattern: the deepest one above it that exists.
pub(crate) fn directory(work: &Path, pattern: &str) -> PathBuf {
    let plain = pattern.split(SIGNS).next().unwrap_or_default();
    let (directory, _) = plain.rsplit_once('/').unwrap_or_default();
    let directory = match directory {
        "" if plain.starts_with('/') => "/",
        directory => directory,
    };
    let path = work.join(directory);
    let above = path.ancestors().find(|path| path.is_dir());
    above.map_or_else(|| work.to_owned(), Path::to_owned)
}

/// Returns the files and directories of a pattern, sorted.
fn matching(work: &Path, pattern: &str) -> BTreeMap<PathBuf, Metadata> {
    let (base, pattern) = match pattern.strip_prefix('/') {
        Some(rest) => (Path::new("/"), rest),
        None => (work, pattern),
    };
    let named = Path::new(pattern).components();
    let named: PathBuf = named.filter(|part| *part != Component::CurDir).collect();
    let pattern = named.to_str().unwrap_or(pattern);
    // The part without signs is where to look.
    let mut parts = Path::new(pattern).components();
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(SIGNS);
    let top = parts
        .by_ref()
        .take_while(is_plain)
        .fold(base.to_owned(), |top, part| top.join(part));
    let depth = match pattern.contains("**") {
        true => usize::MAX,
        // The first part with a sign is taken already.
        false => parts.count() + 1,
    };
    let mut found = BTreeMap::new();
    let (Ok(matcher), Some(_)) = (matcher(pattern), place(work, &top)) else {
        return found;
    };
    let mut left = vec![(top, 1)];
    let mut count = 0;
    while let Some((directory, level)) = left.pop() {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let mut entries: Vec<DirEntry> = entries.flatten().collect();
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            count += 1;
            if count > limits::MAX_WATCHED_FILES {
                return found;
            }
            let path = entry.path();
            // Does not follow a symlink.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() && level < depth {
                left.push((path.clone(), level + 1));
            }
            let below = path.strip_prefix(base);
            let is_match = below.is_ok_and(|path| matcher.is_match(path));
            if is_match && !metadata.is_symlink() {
                found.insert(path, metadata);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_inside_one_directory_or_below() {
        let temp = tempfile::tempdir().unwrap();
        let work = temp.path();
        std::fs::create_dir_all(work.join("a/b")).unwrap();
        for name in ["x.rs", "y.txt", "a/z.rs", "a/b/w.rs", "[1].rs"] {
            std::fs::write(work.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("x.rs", work.join("link.rs")).unwrap();
        let check = |pattern: &str, expected: &[&str]| {
            assert_eq!(check_pattern("p", pattern).unwrap(), pattern);
            let found = matching(work, pattern);
            let expected: Vec<PathBuf> = expected.iter().map(|name| work.join(name)).collect();
            assert_eq!(found.into_keys().collect::<Vec<_>>(), expected, "{pattern}");
        };
        check("./a/*.rs", &["a/z.rs"]);
        check("a//*.rs", &["a/z.rs"]);
        check("*.rs", &["[1].rs", "x.rs"]);
        check("?.rs", &["x.rs"]);
        check("[1]*", &["[1].rs"]);
        check("a/*.rs", &["a/z.rs"]);
        check("**/*.rs", &["[1].rs", "a/b/w.rs", "a/z.rs", "x.rs"]);
        check("a/**", &["a/b", "a/b/w.rs", "a/z.rs"]);
        check("none/*", &[]);
    }

    #[test]
    fn older_and_smaller_files_are_changes_too() {
        let temp = tempfile::tempdir().unwrap();
        let work = temp.path();
        let mut seen = vec![fingerprint(work, "f")];
        let mut change = |change: &dyn Fn()| {
            change();
            let now = fingerprint(work, "f");
            assert_eq!(now, fingerprint(work, "f"));
            assert_ne!(&now, seen.last().unwrap());
            seen.push(now);
        };
        let file = work.join("f");
        change(&|| std::fs::write(&file, "ab").unwrap());
        change(&|| {
            let opened = std::fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(UNIX_EPOCH).unwrap();
        });
        change(&|| std::fs::write(&file, "a").unwrap());
        change(&|| std::fs::remove_file(&file).unwrap());
    }
}
