//! What a change will do on the disk, before it does anything.

use std::path::Path;

use crate::files::change::Change;
use crate::files::directory::split;
use crate::files::intent::{Plan, Step};
use crate::files::journal::StoredPath;

/// Plans the change with this id: which names it will use, and which directories are missing.
pub(in crate::files) fn plan(changes: &[Change], id: &str) -> Plan {
    let needed = changes.iter().filter(|change| change.is_needed());
    let several = needed.clone().count() > 1;
    let step = |(index, change): (usize, &Change)| Step {
        path: StoredPath::from(change.real.as_path()),
        temporary: change
            .after
            .as_ref()
            .map(|_| format!(".karyi-{id}-{index}.tmp")),
        backup: change
            .before
            .as_ref()
            .filter(|_| several || change.after.is_none())
            .map(|_| format!(".karyi-{id}-{index}.old")),
    };
    let steps = needed.clone().enumerate().map(step).collect();
    let mut made: Vec<StoredPath> = needed
        .filter(|change| change.after.is_some())
        .flat_map(|change| missing_directories(&change.real))
        .collect();
    made.sort_unstable();
    made.dedup();
    Plan { steps, made }
}

fn missing_directories(path: &Path) -> impl Iterator<Item = StoredPath> {
    let above = path.ancestors().skip(1);
    above
        .take_while(|path| std::fs::symlink_metadata(path).is_err())
        .map(StoredPath::from)
}

/// Whether something of a change lies beside its files still.
pub(in crate::files) fn has_leftovers(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| {
        let Some((parent, _)) = split(step.path.as_path()) else {
            return false;
        };
        let mut names = [&step.temporary, &step.backup].into_iter().flatten();
        names.any(|name| std::fs::symlink_metadata(parent.join(name)).is_ok())
    })
}
