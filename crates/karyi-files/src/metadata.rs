//! Copies and restores the metadata of files: owner, attributes, permissions.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::{Gid, Uid, fchown};

use super::attributes::Attributes;
use super::directory::Stamp;

/// Outcome of applying metadata.
pub(super) enum MetadataOutcome {
    /// Applied, except for these attributes.
    Applied(Attributes),
    /// The owner, user and group, cannot be set.
    OwnerRefused(u32, u32),
}

/// Recorded metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedMetadata {
    /// Permissions.
    pub(super) mode: u32,
    /// User and group, if recorded.
    pub(super) owner: Option<(u32, u32)>,
    /// Attributes; `None` when they were not stored.
    pub(super) attributes: Option<Attributes>,
}

impl SavedMetadata {
    /// Metadata of a new file with this mode.
    pub(super) fn of_new_file(mode: u32) -> Self {
        Self {
            mode,
            owner: None,
            attributes: Some(Attributes::default()),
        }
    }
}

/// Copies owner, attributes and permissions from another file, which may be open.
pub(super) fn copy_metadata(
    file: &File,
    model: Stamp,
    opened: Option<&File>,
) -> io::Result<MetadataOutcome> {
    let own = Stamp::of(file)?;
    let (uid, gid) = model.owner;
    let is_other = own.owner != model.owner;
    if is_other && fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).is_err() {
        return Ok(MetadataOutcome::OwnerRefused(uid, gid));
    }
    let lost = opened.map(|opened| Attributes::read(opened).apply(file));
    let lost = lost.unwrap_or_default();
    let mode = model.mode & 0o7777 & lost.allowed_without();
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(MetadataOutcome::Applied(lost))
}

/// Restores recorded metadata. If the owner cannot be set or is unknown, setuid and setgid are cleared, so
/// that nobody gains the rights of another user.
pub(super) fn restore_metadata(file: &File, saved: &SavedMetadata) -> io::Result<()> {
    let own = Stamp::of(file)?.owner;
    let apply = |(user, group)| fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    let is_kept = saved
        .owner
        .is_some_and(|owner| owner == own || apply(owner).is_ok());
    let allowed = if is_kept { 0o7777 } else { 0o1777 };
    let allowed = match &saved.attributes {
        Some(attributes) => allowed & attributes.apply(file).allowed_without(),
        None => allowed & !0o070,
    };
    file.set_permissions(Permissions::from_mode(saved.mode & allowed))
}
