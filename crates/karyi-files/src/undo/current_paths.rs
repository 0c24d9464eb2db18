//! Follows files through renames to their current paths.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::journal::{Entry, StoredPath};

/// Maps the path of each file before the changes to its path after them. Removed and created files are left
/// out. `chosen` starts with the latest change.
pub(super) fn current_paths<'a>(chosen: &[&'a Entry]) -> HashMap<&'a Path, &'a Path> {
    // Maps current paths to original ones.
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
        // Applied at once, since files may swap names.
        for (origin, target) in moved {
            seen.insert(target);
            first.insert(target, origin);
        }
    }
    first.into_iter().map(|(now, first)| (first, now)).collect()
}
