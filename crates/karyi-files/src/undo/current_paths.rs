//! Follows files through the changes that are taken back: where each one is now.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::journal::{Entry, StoredPath};

/// Returns for the path of each file before the changes where the same file is after them. Files that were
/// removed or made by them have none. The latest change comes first.
pub(super) fn current_paths<'a>(chosen: &[&'a Entry]) -> HashMap<&'a Path, &'a Path> {
    // The first path of the file that is at a path by now.
    let mut first: HashMap<&Path, &Path> = HashMap::new();
    let mut seen: HashSet<&Path> = HashSet::new();
    for entry in chosen.iter().rev() {
        let mut moved = Vec::new();
        for file in &entry.files {
            let path = file.path.as_path();
            if seen.insert(path) && file.old.is_some() {
                first.insert(path, path);
            }
            let target = file.renamed_to.as_ref().map(StoredPath::as_path);
            if target.is_none() && file.new.is_some() {
                continue;
            }
            let origin = first.remove(path);
            moved.extend(origin.zip(target));
        }
        // All of them at once: files may change places.
        for (origin, target) in moved {
            seen.insert(target);
            first.insert(target, origin);
        }
    }
    first.into_iter().map(|(now, first)| (first, now)).collect()
}
