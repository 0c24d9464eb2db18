//! The extended attributes of a file, access lists among them.

use std::fs::File;

use serde::{Deserialize, Serialize};

use karyi_core::limits;

/// The one that holds the access list. While a file has it, the permissions of its group are the most that
/// anybody named in the list may get.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Those that the system gives to files by rules of its own.
const OF_THE_SYSTEM: &[&[u8]] = &[b"security.selinux", b"security.ima", b"security.evm"];

/// Bytes that the names of a file's attributes seldom go over.
const USUAL_BYTES: usize = 1 << 10;

/// The attributes of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attributes(Vec<Attribute>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Attribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Attributes {
    /// Reads them, as far as the system tells.
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

    /// Returns those that belong to the file, and not to the rules of the system.
    pub(super) fn own(mut self) -> Self {
        let is_own = |one: &Attribute| !OF_THE_SYSTEM.contains(&one.name.as_slice());
        self.0.retain(is_own);
        self
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives them to a file; returns those of its own that could not be given.
    pub(super) fn give(&self, file: &File) -> Self {
        let flags = rustix::fs::XattrFlags::empty();
        let is_lost = |attribute: &&Attribute| {
            let (name, value) = (attribute.name.as_slice(), attribute.value.as_slice());
            rustix::fs::fsetxattr(file, name, value, flags).is_err()
        };
        Self(self.0.iter().filter(is_lost).cloned().collect()).own()
    }

    /// Returns which permissions may be given without them: where the access list is missing, those of the
    /// group were never meant for it.
    pub(super) fn allowed_without(&self) -> u32 {
        let has_list = self.0.iter().any(|one| one.name == ACCESS_LIST);
        if has_list { !0o070 } else { !0 }
    }

    /// Returns those that another file lacks or has otherwise.
    pub(super) fn missing_in(&self, other: &Self) -> Self {
        let is_missing = |one: &&Attribute| !other.0.contains(one);
        Self(self.0.iter().filter(is_missing).cloned().collect())
    }

    /// Returns their names, for people.
    pub(super) fn names(&self) -> String {
        let name = |one: &Attribute| match one.name.as_slice() {
            ACCESS_LIST => "access list".to_owned(),
            name => String::from_utf8_lossy(name).into_owned(),
        };
        self.0.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}
