//! Makes a new file look like another one: owner, attributes, permissions.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::{Gid, Uid, fchown};

use super::attributes::Attributes;
use super::directory::Stamp;

/// Whether a file could be made to look like another one.
pub(super) enum MetadataOutcome {
    /// It looks so, but for these attributes.
    Applied(Attributes),
    /// The other one has an owner, user and group, that cannot be given.
    OwnerRefused(u32, u32),
}

/// What a file had that comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedMetadata {
    /// Its permissions.
    pub(super) mode: u32,
    /// User and group, where they were recorded.
    pub(super) owner: Option<(u32, u32)>,
    /// Its attributes; none when it had some that were not kept.
    pub(super) attributes: Option<Attributes>,
}

/// Gives a file the owner, attributes and permissions of another one, which may be open.
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
    let lost = opened.map(|opened| Attributes::read(opened).give(file));
    let lost = lost.unwrap_or_default();
    let mode = model.mode & 0o7777 & lost.allowed_without();
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(MetadataOutcome::Applied(lost))
}

/// Gives a file that comes back what it had. Where the owner cannot be given, or is not known, nobody gets the
/// rights of another one by running it.
pub(super) fn restore_metadata(file: &File, saved: &SavedMetadata) -> io::Result<()> {
    let own = Stamp::of(file)?.owner;
    let give = |(user, group)| fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    let is_kept = saved
        .owner
        .is_some_and(|owner| owner == own || give(owner).is_ok());
    let allowed = if is_kept { 0o7777 } else { 0o1777 };
    let allowed = match &saved.attributes {
        Some(attributes) => allowed & attributes.give(file).allowed_without(),
        None => allowed & !0o070,
    };
    file.set_permissions(Permissions::from_mode(saved.mode & allowed))
}
