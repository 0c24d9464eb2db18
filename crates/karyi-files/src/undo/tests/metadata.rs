//! Owner, permissions and attributes of restored files, and renames.

use super::*;
use crate::attributes::Attributes;

impl Fixture {
    /// Text, owner, permissions and attributes of a file.
    fn state(&self, name: &str) -> (String, u32, u32, Attributes) {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::open(self.path(name)).unwrap();
        let found = file.metadata().unwrap();
        let text = self.read(name).unwrap();
        (
            text,
            found.uid(),
            found.mode() & 0o7777,
            Attributes::read(&file),
        )
    }
}

/// Creates a file with an attribute, where the file system supports it, and another owner, where that is
/// allowed.
fn dressed(place: &Fixture, name: &str, owner: u32, mode: u32) {
    use std::os::unix::fs::{PermissionsExt, chown};
    let path = place.path(name);
    std::fs::write(&path, format!("text of {name}\n")).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(&path, "user.karyi-test", name.as_bytes(), flags);
    if nix::unistd::geteuid().is_root() {
        chown(&path, Some(owner), Some(owner)).unwrap();
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn swapped_files_carry_their_metadata_back() {
    let swap = [rename("a", "t"), rename("b", "a"), rename("t", "b")];
    let over = [delete("a"), rename("b", "a")];
    for edits in [&swap[..], &over[..]] {
        let place = Fixture::new();
        dressed(&place, "a", 4711, 0o600);
        dressed(&place, "b", 4712, 0o644);
        let before = [place.state("a"), place.state("b")];
        place.edit(edits).unwrap();
        assert_ne!(place.state("a"), before[0]);
        place.undo(UndoTarget::Last(1)).unwrap();
        assert_eq!([place.state("a"), place.state("b")], before, "{edits:?}");
        // The undo is undone, too.
        place.undo(UndoTarget::Number(2)).unwrap();
        assert_eq!(place.state("a").0, "text of b\n", "{edits:?}");
        assert_eq!(place.state("a").1, before[1].1, "{edits:?}");
    }
}

/// Changes owner, permissions and an attribute of a file, as the bits say.
fn change_since(place: &Fixture, name: &str, bits: u32) {
    use std::os::unix::fs::{PermissionsExt, chown};
    let path = place.path(name);
    if bits & 1 != 0 && nix::unistd::geteuid().is_root() {
        chown(&path, Some(4713), Some(4713)).unwrap();
    }
    if bits & 2 != 0 {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o664)).unwrap();
    }
    if bits & 4 != 0 {
        let flags = rustix::fs::XattrFlags::empty();
        let _ = rustix::fs::setxattr(&path, "user.karyi-test", b"since", flags);
    }
}

#[test]
fn metadata_changed_since_is_preserved_separately() {
    let swap = [rename("a", "t"), rename("b", "a"), rename("t", "b")];
    for bits in 0..8 {
        let place = Fixture::new();
        dressed(&place, "a", 4711, 0o600);
        dressed(&place, "b", 4712, 0o644);
        place.edit(&swap).unwrap();
        change_since(&place, "b", bits);
        let [a, b] = ["a", "b"].map(|name| place.state(name));
        place.undo(UndoTarget::Last(1)).unwrap();
        assert_eq!([place.state("b"), place.state("a")], [a, b], "{bits}");
    }
    // Restored text gets no wider permissions than it had.
    let text = |to: Option<&str>| FileEdit {
        to: to.map(Into::into),
        pairs: vec![EditPair::new("text", "words")],
        ..file("a")
    };
    for (edit, name) in [(text(None), "a"), (text(Some("b")), "b")] {
        for bits in 0..8 {
            let place = Fixture::new();
            dressed(&place, "a", 4711, 0o640);
            place.edit(std::slice::from_ref(&edit)).unwrap();
            change_since(&place, name, bits);
            let (_, owner, mode, attributes) = place.state(name);
            place.undo(UndoTarget::Last(1)).unwrap();
            let expected = ("text of a\n".to_owned(), owner, mode & 0o640, attributes);
            assert_eq!(place.state("a"), expected, "{name} {bits}");
        }
    }
}

#[test]
fn a_chain_of_renames_in_one_call_is_one_rename() {
    let place = Fixture::new();
    dressed(&place, "a", 4711, 0o600);
    std::fs::hard_link(place.path("a"), place.path("other")).unwrap();
    place.edit(&[rename("a", "b"), rename("b", "c")]).unwrap();
    let entries = place.journal.entries().unwrap();
    let to = |file: &FileRecord| file.renamed_to.as_ref().map(|to| to.0.clone());
    assert_eq!(to(&entries[0].files[0]), Some(place.path("c")));
    assert_eq!(entries[0].files.len(), 2);
    place.undo(UndoTarget::Last(1)).unwrap();
    std::fs::write(place.path("a"), "one file").unwrap();
    assert_eq!(place.read("other").as_deref(), Some("one file"));
}

#[test]
fn attributes_and_access_lists_are_restored() {
    let place = Fixture::new();
    dressed(&place, "a", 4711, 0o640);
    // user::rw-, user:4712:rw-, group::---, mask::rw-, other::---
    let list: Vec<u8> = [
        (1_u16, 6_u16, u32::MAX),
        (2, 6, 4712),
        (4, 0, u32::MAX),
        (0x10, 6, u32::MAX),
        (0x20, 0, u32::MAX),
    ]
    .iter()
    .flat_map(|(tag, rights, id)| {
        let (tag, rights, id) = (tag.to_le_bytes(), rights.to_le_bytes(), id.to_le_bytes());
        [&tag[..], &rights[..], &id[..]].concat()
    })
    .collect();
    let list = [&2_u32.to_le_bytes()[..], &list].concat();
    let (path, flags) = (place.path("a"), rustix::fs::XattrFlags::empty());
    if rustix::fs::setxattr(&path, "system.posix_acl_access", &list, flags).is_err() {
        println!("skipped: this file system has no access lists");
        return;
    }
    let before = place.state("a");
    place.edit(&[delete("a")]).unwrap();
    place.undo(UndoTarget::Last(1)).unwrap();
    assert_eq!(place.state("a"), before);
    // Without the stored list the group gets nothing, and the result says so.
    place.edit(&[delete("a")]).unwrap();
    let entries = place.journal.entries().unwrap();
    let old = entries.last().unwrap().files[0].old.clone().unwrap();
    let name = old.attributes.unwrap();
    let mut found = 0;
    for content in walk(&place.journal.directory().join("contents")) {
        if content.ends_with(&name[2..]) {
            std::fs::remove_file(content).unwrap();
            found += 1;
        }
    }
    assert_eq!(found, 1);
    let undone = undo(&place.recorder, &place.journal, &UndoTarget::Last(1)).unwrap();
    assert_eq!(place.state("a").2, 0o600);
    let note = undone.files[0].note.as_deref().unwrap();
    assert!(
        note.starts_with("its access list and attributes were not stored"),
        "{note}"
    );
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => walk(&path),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}
