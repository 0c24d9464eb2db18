//! Notes about metadata that an undo could not restore.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::attributes::Attributes;
use super::super::change::{Change, MetadataSource};
use super::super::metadata::SavedMetadata;
use super::RestoredFile;

/// Returns notes about files with another owner or with lost attributes.
pub(super) fn collect(changes: &[Change], losses: &[(PathBuf, String)]) -> Vec<(PathBuf, String)> {
    let again = changes.iter().filter_map(|change| {
        let after = change.after.as_ref()?;
        let note = note_again(&change.real, &after.metadata)?;
        Some((change.real.clone(), note))
    });
    let lost = losses
        .iter()
        .map(|(path, names)| (path.clone(), lost(names)));
    again.chain(lost).collect()
}

/// Attaches the notes to their files.
pub(super) fn attach(files: &mut [RestoredFile], notes: Vec<(PathBuf, String)>) {
    for (path, note) in notes {
        let file = files
            .iter_mut()
            .find(|file| *file.to.as_ref().unwrap_or(&file.path) == path);
        if let Some(file) = file {
            file.note = Some(match file.note.take() {
                Some(first) => format!("{first}; {note}"),
                None => note,
            });
        }
    }
}

fn note_again(path: &Path, metadata: &MetadataSource) -> Option<String> {
    let MetadataSource::Saved(saved) = metadata else {
        return None;
    };
    let found = std::fs::symlink_metadata(path).ok()?;
    let notes = [
        owner_note(saved, (found.uid(), found.gid()), found.mode()),
        attributes_note(saved, path),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn lost(names: &str) -> String {
    format!("these attributes could not be restored: {names}")
}

fn owner_note(saved: &SavedMetadata, (user, group): (u32, u32), mode: u32) -> Option<String> {
    let lost = match saved.mode & !mode & 0o6000 {
        0 => "",
        _ => "; it does not run with the rights of its owner or group any more",
    };
    match saved.owner {
        Some(owner) if owner == (user, group) => None,
        Some((old_user, old_group)) => Some(format!(
            "it belonged to user {old_user} and group {old_group}, which could not be restored: it belongs to user {user} and group {group} now{lost}"
        )),
        // The former owner was not recorded, and is most likely the same.
        None if lost.is_empty() => None,
        None => Some(format!(
            "its owner was not recorded: it belongs to user {user} and group {group} now{lost}"
        )),
    }
}

fn attributes_note(saved: &SavedMetadata, path: &Path) -> Option<String> {
    let Some(recorded) = &saved.attributes else {
        return Some(
            "its access list and attributes were not stored: its group has no permissions now"
                .into(),
        );
    };
    if recorded.is_empty() {
        return None;
    }
    let actual = File::open(path).map(|file| Attributes::read(&file));
    let lost = recorded.missing_in(&actual.unwrap_or_default());
    (!lost.is_empty()).then(|| self::lost(&lost.names()))
}
