//! Extended attributes of a file, including POSIX access lists.

use std::fs::File;

use serde::{Deserialize, Serialize};

use karyi_core::limits;

/// Attribute with the access list. It caps what the file mode grants to the group, so the group bits of a
/// file that has one are a mask.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Attributes that the kernel assigns by its own rules.
const SYSTEM_ATTRIBUTES: &[&[u8]] = &[b"security.selinux", b"security.ima", b"security.evm"];

/// Initial buffer for the list of attribute names; few files need more.
const USUAL_BYTES: usize = 1 << 10;

/// Extended attributes of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attributes(Vec<Attribute>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Attribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Attributes {
    /// Reads the attributes that the system lets this process see.
    pub(super) fn read(file: &File) -> Self {
        let mut names = vec![0; USUAL_BYTES];
        let mut length = rustix::fs::flistxattr(file, &mut names[..]);
        if length == Err(rustix::io::Errno::RANGE) {
            names.resize(limits::MAX_ATTRIBUTE_BYTES, 0);
            length = rustix::fs::flistxattr(file, &mut names[..]);
        }
        names.truncate(length.unwrap_or(0));
        let names = names.split(|byte| *byte == 0);
        let is_name = |name: &&[u8]| !name.is_empty();
        let read = |name: &[u8]| {
            let mut value = vec![0; limits::MAX_ATTRIBUTE_BYTES];
            let length = rustix::fs::fgetxattr(file, name, &mut value[..]).ok()?;
            value.truncate(length);
            let name = name.to_vec();
            Some(Attribute { name, value })
        };
        Self(names.filter(is_name).filter_map(read).collect())
    }

    /// Returns the attributes that belong to the file, without those the kernel assigns.
    pub(super) fn without_system(mut self) -> Self {
        let is_own = |one: &Attribute| !SYSTEM_ATTRIBUTES.contains(&one.name.as_slice());
        self.0.retain(is_own);
        self
    }

    /// Tells whether the list is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the attributes on a file; returns those of its own that could not be set.
    pub(super) fn apply(&self, file: &File) -> Self {
        let flags = rustix::fs::XattrFlags::empty();
        let is_lost = |attribute: &&Attribute| {
            let (name, value) = (attribute.name.as_slice(), attribute.value.as_slice());
            rustix::fs::fsetxattr(file, name, value, flags).is_err()
        };
        Self(self.0.iter().filter(is_lost).cloned().collect()).without_system()
    }

    /// Returns a mask of the permissions that are safe without these attributes. Without the access list the
    /// group bits are cleared: they were only its mask.
    pub(super) fn allowed_without(&self) -> u32 {
        let has_list = self.0.iter().any(|one| one.name == ACCESS_LIST);
        if has_list { !0o070 } else { !0 }
    }

    /// Returns the attributes that `other` lacks or has with another value.
    pub(super) fn missing_in(&self, other: &Self) -> Self {
        let is_missing = |one: &&Attribute| !other.0.contains(one);
        Self(self.0.iter().filter(is_missing).cloned().collect())
    }

    /// Returns the names for a message.
    pub(super) fn names(&self) -> String {
        let name = |one: &Attribute| match one.name.as_slice() {
            ACCESS_LIST => "access list".to_owned(),
            name => String::from_utf8_lossy(name).into_owned(),
        };
        self.0.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}
