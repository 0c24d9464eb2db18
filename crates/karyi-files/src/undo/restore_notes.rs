//! Says what of a file that came back is not as it was.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::attributes::Attributes;
use super::super::change::{Change, Dress};
use super::super::metadata::Had;
use super::Restored;

/// Says of which files that came back the owner is another one now, or attributes are lost.
pub(super) fn notes(changes: &[Change], losses: &[(PathBuf, String)]) -> Vec<(PathBuf, String)> {
    let again = changes.iter().filter_map(|change| {
        let after = change.after.as_ref()?;
        let note = note_again(&change.real, &after.dress)?;
        Some((change.real.clone(), note))
    });
    let lost = losses
        .iter()
        .map(|(path, names)| (path.clone(), lost(names)));
    again.chain(lost).collect()
}

/// Puts notes to their files.
pub(super) fn note(files: &mut [Restored], notes: Vec<(PathBuf, String)>) {
    for (path, note) in notes {
        let file = files
            .iter_mut()
            .find(|file| *file.to.as_ref().unwrap_or(&file.path) == path);
        if let Some(file) = file {
            file.note = Some(note);
        }
    }
}

fn note_again(path: &Path, dress: &Dress) -> Option<String> {
    let Dress::Again(had) = dress else {
        return None;
    };
    let found = std::fs::symlink_metadata(path).ok()?;
    let notes = [
        owner_note(had, (found.uid(), found.gid()), found.mode()),
        attributes_note(had, path),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn lost(names: &str) -> String {
    format!("these attributes could not be given back: {names}")
}

fn owner_note(had: &Had, (user, group): (u32, u32), mode: u32) -> Option<String> {
    let lost = match had.mode & !mode & 0o6000 {
        0 => "",
        _ => "; it does not run with the rights of its owner or group any more",
    };
    match had.owner {
        Some(owner) if owner == (user, group) => None,
        Some((was, of)) => Some(format!(
            "it belonged to user {was} and group {of}, which could not be given back: it belongs to user {user} and group {group} now{lost}"
        )),
        // Who it belonged to was not recorded; most belong to whom they did.
        None if lost.is_empty() => None,
        None => Some(format!(
            "its owner was not recorded: it belongs to user {user} and group {group} now{lost}"
        )),
    }
}

fn attributes_note(had: &Had, path: &Path) -> Option<String> {
    let Some(wanted) = &had.attributes else {
        return Some(
            "its access list and attributes were not kept: its group has no permissions now".into(),
        );
    };
    if wanted.is_empty() {
        return None;
    }
    let given = File::open(path).map(|file| Attributes::read(&file));
    let lost = wanted.missing_in(&given.unwrap_or_default());
    (!lost.is_empty()).then(|| self::lost(&lost.names()))
}
