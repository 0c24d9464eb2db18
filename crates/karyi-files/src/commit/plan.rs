//! Plan of a change: the temporary names and new directories it will use.

use std::path::{Path, PathBuf};

use crate::change::Change;
use crate::directory::split;
use crate::journal::StoredPath;
use crate::wal::{ChangePlan, PlannedStep};

/// Plans the change with this id.
pub(crate) fn plan(changes: &[Change], id: &str) -> ChangePlan {
    let needed = changes.iter().filter(|change| change.is_needed());
    let several = needed.clone().count() > 1;
    let step = |(index, change): (usize, &Change)| PlannedStep {
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
    ChangePlan { steps, made }
}

fn missing_directories(path: &Path) -> impl Iterator<Item = StoredPath> {
    let above = path.ancestors().skip(1);
    above
        .take_while(|path| std::fs::symlink_metadata(path).is_err())
        .map(StoredPath::from)
}

/// Returns the temporary files and backups of a change that still exist.
pub(crate) fn leftovers(plan: &ChangePlan) -> Vec<PathBuf> {
    let beside = |step: &PlannedStep| {
        let parent = split(step.path.as_path()).map(|(parent, _)| parent.to_owned());
        let names = [step.temporary.clone(), step.backup.clone()];
        let paths = names.map(|name| Some(parent.as_ref()?.join(name?)));
        paths.into_iter().flatten()
    };
    let all = plan.steps.iter().flat_map(beside);
    all.filter(|path| std::fs::symlink_metadata(path).is_ok())
        .collect()
}

/// Describes files that could not be removed. With a record in the log the next run removes them.
pub(crate) fn leftovers_message(left: &[PathBuf], has_record: bool) -> Option<String> {
    let first = left.first()?.display();
    let more = match left.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let next = match has_record {
        true => "the next edit or undo tries again, so leave `.karyi-*` alone",
        false => "remove them by hand",
    };
    let what = "karyi could not remove its temporary files";
    Some(format!("{what}: {first}{more}; {next}"))
}
