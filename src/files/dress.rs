//! Makes a new file look like another one: owner, attributes, permissions.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::{Gid, Uid, fchown};

use super::directory::Stamp;

/// Most bytes of the names of a file's attributes, and of the value of one: what Linux allows.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Whether a file could be made to look like another one.
pub(super) enum Dressed {
    /// It looks so.
    Yes,
    /// The other one has an owner, user and group, that cannot be given.
    No(u32, u32),
}

/// Gives a file the owner, attributes and permissions of another one, which may be open.
pub(super) fn dress_like(file: &File, model: Stamp, opened: Option<&File>) -> io::Result<Dressed> {
    let own = Stamp::of(file)?;
    let (uid, gid) = model.owner;
    let is_other = own.owner != model.owner;
    if is_other && fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).is_err() {
        return Ok(Dressed::No(uid, gid));
    }
    if let Some(opened) = opened {
        copy_attributes(opened, file);
    }
    file.set_permissions(Permissions::from_mode(model.mode & 0o7777))?;
    Ok(Dressed::Yes)
}

/// Gives a file that comes back the owner and the permissions it had. Where the owner cannot be given, or is
/// not known, nobody gets the rights of another one by running it.
pub(super) fn dress_again(file: &File, mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let own = Stamp::of(file)?.owner;
    let give = |(user, group)| fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    let is_kept = owner.is_some_and(|owner| owner == own || give(owner).is_ok());
    let allowed = if is_kept { 0o7777 } else { 0o1777 };
    file.set_permissions(Permissions::from_mode(mode & allowed))
}

/// Copies extended attributes, access lists among them, as far as the system lets.
fn copy_attributes(from: &File, to: &File) {
    let (mut names, mut value) = (
        vec![0_u8; MAX_ATTRIBUTE_BYTES],
        vec![0_u8; MAX_ATTRIBUTE_BYTES],
    );
    let length = rustix::fs::flistxattr(from, &mut names[..]).unwrap_or(0);
    names.truncate(length);
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        if let Ok(length) = rustix::fs::fgetxattr(from, name, &mut value[..]) {
            let value = value.get(..length).unwrap_or_default();
            let flags = rustix::fs::XattrFlags::empty();
            let _ = rustix::fs::fsetxattr(to, name, value, flags);
        }
    }
}
