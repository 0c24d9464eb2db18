//! Undo on real files.

use std::sync::Arc;

use super::*;
use crate::commit;
use crate::edit::{self, Diffs, EditOptions, EditPair, FileEdit, Masking};
use crate::journal::Durability;
use crate::root::Root;
use crate::wal::{Decision, WalRecord};

struct Fixture {
    top: tempfile::TempDir,
    recorder: Recorder,
    journal: Arc<Journal>,
    _state: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Arc::new(Journal::open(state.path(), Some(&[3; 32])).unwrap());
        let recorder = Recorder {
            journal: Some(Arc::clone(&journal)),
            session: "s".into(),
            call: "1".into(),
            tool: "write_file".into(),
            ..Recorder::default()
        };
        Self {
            top,
            recorder,
            journal,
            _state: state,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file as a tool does; `None` removes it.
    fn write(&self, name: &str, text: Option<&str>) {
        let path = self.path(name);
        let transaction = Transaction::begin(&self.recorder, &[&path]).unwrap();
        let mut change = Change::read(&path, &path).unwrap();
        if let Some(text) = text {
            change = change.with_content(text.into());
        }
        transaction.commit(&[change], &|_| false).unwrap();
    }

    fn undo(&self, target: UndoTarget) -> Result<Vec<u64>, UndoError> {
        Ok(undo(&self.recorder, &self.journal, &target)?.numbers)
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

fn dry_run_of(place: &Fixture, target: &UndoTarget) -> UndoOutcome {
    let selection = UndoSelection::for_dry_run(&place.journal, target.clone()).unwrap();
    dry_run(&place.journal, &selection).unwrap()
}

#[test]
fn permissions_and_directories_are_restored() {
    use std::os::unix::fs::PermissionsExt;
    let place = Fixture::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/x"), "x").unwrap();
    let mode = PermissionsExt::from_mode(0o750);
    std::fs::set_permissions(place.path("d/x"), mode).unwrap();
    place.write("d/x", None);
    std::fs::remove_dir(place.path("d")).unwrap();
    place.undo(UndoTarget::Last(1)).unwrap();
    let found = std::fs::metadata(place.path("d/x")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o750);
    place.write("new/deep/y", Some("y"));
    place.undo(UndoTarget::Last(1)).unwrap();
    assert!(!place.path("new").exists());
    place.write("new/deep/y", Some("y"));
    std::fs::write(place.path("new/theirs"), "z").unwrap();
    place.undo(UndoTarget::Last(1)).unwrap();
    assert_eq!(
        (
            place.read("new/theirs").as_deref(),
            place.path("new/deep").exists()
        ),
        (Some("z"), false)
    );
}

impl Fixture {
    fn put(&self, name: &str, text: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(self.path(name), text).unwrap();
        let mode = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    fn edit(&self, edits: &[FileEdit]) -> Result<(), ToolError> {
        let root = Root::unconfined();
        let cwd = self.path("");
        let options = EditOptions {
            cwd: &cwd,
            root: &root,
            recorder: &self.recorder,
            is_private: &|_| false,
            masking: Masking::Part(&|text| text.to_owned()),
            diffs: Diffs::Full,
        };
        edit::apply(edits, options).map(|_| ())
    }

    /// Existing files with their permissions and contents.
    fn tree(&self, names: &[&str]) -> Vec<String> {
        use std::os::unix::fs::MetadataExt;
        let shown = names.iter().filter_map(|name| {
            let mode = std::fs::metadata(self.path(name)).ok()?.mode() & 0o7777;
            Some(format!("{name} {mode:o} {}", self.read(name)?))
        });
        shown.collect()
    }
}

fn file(src: &str) -> FileEdit {
    FileEdit {
        path: src.into(),
        ..FileEdit::default()
    }
}

fn delete(src: &str) -> FileEdit {
    FileEdit {
        delete: true,
        ..file(src)
    }
}

fn rename(src: &str, to: &str) -> FileEdit {
    FileEdit {
        to: Some(to.into()),
        ..file(src)
    }
}

fn fill(src: &str, text: &str) -> FileEdit {
    FileEdit {
        pairs: vec![EditPair::new("", text)],
        ..file(src)
    }
}

#[test]
fn each_version_is_restored_with_its_permissions() {
    let cases: [&[&[FileEdit]]; 4] = [
        &[&[delete("a"), rename("b", "a")]],
        &[&[delete("a")], &[fill("a", "public")]],
        &[&[delete("a")], &[fill("a", "secret")]],
        &[&[rename("a", "t"), rename("b", "a"), rename("t", "b")]],
    ];
    for (index, edits) in cases.iter().enumerate() {
        let place = Fixture::new();
        place.put("a", "secret", 0o600);
        place.put("b", "run", 0o755);
        let old = place.tree(&["a", "b", "t"]);
        edits.iter().for_each(|edit| place.edit(edit).unwrap());
        let new = place.tree(&["a", "b", "t"]);
        place.undo(UndoTarget::Last(edits.len())).unwrap();
        assert_eq!(place.tree(&["a", "b", "t"]), old, "case {index}");
        let undo = place.journal.entries().unwrap().last().unwrap().number;
        place.undo(UndoTarget::Number(undo)).unwrap();
        assert_eq!(place.tree(&["a", "b", "t"]), new, "case {index}");
    }
}

#[test]
fn permissions_changed_since_are_never_widened() {
    for (then, since, expected) in [(0o644, 0o600, 0o600), (0o600, 0o644, 0o600)] {
        let place = Fixture::new();
        place.put("a", "1", then);
        place.write("a", Some("2"));
        place.put("a", "2", since);
        place.undo(UndoTarget::Last(1)).unwrap();
        assert_eq!(place.tree(&["a"]), [format!("a {expected:o} 1")]);
    }
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
}

#[test]
fn a_renamed_file_is_renamed_back() {
    let place = Fixture::new();
    place.put("a", "x", 0o640);
    std::fs::hard_link(place.path("a"), place.path("other")).unwrap();
    let before = inode(&place.path("a"));
    place.edit(&[rename("a", "b")]).unwrap();
    place.edit(&[rename("b", "d/c")]).unwrap();
    place.undo(UndoTarget::Last(2)).unwrap();
    assert_eq!(inode(&place.path("a")), before);
    assert_eq!(place.tree(&["a", "b", "d/c"]), ["a 640 x"]);
    // Whoever changed the permissions exposed the text, and all links share one file.
    for (since, expected) in [(0o660, "a 660 x"), (0o600, "a 600 x")] {
        place.edit(&[rename("a", "b")]).unwrap();
        place.put("b", "x", since);
        place.undo(UndoTarget::Last(1)).unwrap();
        assert_eq!(place.tree(&["a", "b"]), [expected]);
        assert_eq!(inode(&place.path("a")), before);
    }
}

/// Returns the number of blobs in the journal.
fn blob_count(place: &Fixture) -> usize {
    let contents = place.journal.directory().join("contents");
    let starts = std::fs::read_dir(contents).unwrap();
    let files = starts.map(|start| std::fs::read_dir(start.unwrap().path()).unwrap().count());
    files.sum()
}

#[test]
fn large_files_are_stored_and_restored() {
    let (mut place, state) = (Fixture::new(), tempfile::tempdir().unwrap());
    place.journal = Arc::new(Journal::open(state.path(), None).unwrap());
    place.recorder.journal = Some(Arc::clone(&place.journal));
    let size = usize::try_from(karyi_core::limits::PREFETCH_BYTES).unwrap();
    let old = format!("old\n{}", "x".repeat(size));
    std::fs::write(place.path("large"), &old).unwrap();
    let edit = |find: &str| {
        let pair = EditPair::new(find, "new");
        let edits = [FileEdit {
            path: place.path("large"),
            pairs: vec![pair],
            ..FileEdit::default()
        }];
        let options = EditOptions {
            cwd: place.top.path(),
            root: &Root::unconfined(),
            recorder: &place.recorder,
            is_private: &|_| false,
            masking: Masking::Part(&|text| text.to_owned()),
            diffs: Diffs::Full,
        };
        edit::apply(&edits, options)
    };
    // A failed edit leaves nothing behind.
    let error = edit(&"x".repeat(size / 2)).unwrap_err();
    assert_eq!(
        (error.code, blob_count(&place)),
        (ErrorCode::FindAmbiguous, 0)
    );
    assert_eq!(edit("old").unwrap().no_undo, None);
    assert_eq!(
        (blob_count(&place), place.read("large")),
        (1, Some(old.replace("old", "new")))
    );
    assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [1]);
    assert!(place.read("large") == Some(old));
}

#[test]
fn undo_has_a_memory_limit() {
    let place = Fixture::new();
    place.write("a", Some("12"));
    place.write("a", Some("1234"));
    place.write("b", Some("123"));
    let selection = UndoSelection::for_undo(&place.journal, UndoTarget::Last(3)).unwrap();
    let chosen = selection.chosen().unwrap();
    // For both files, the last written version, and no earlier one.
    let goals = goals(&place.journal, &chosen).unwrap();
    assert_eq!(check_size(&goals, 7), Ok(()));
    let error = check_size(&goals, 6).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileTooLarge);
    assert!(error.hint.contains("karyi undo --last K"), "{}", error.hint);
}

#[test]
fn owners_are_restored_and_setuid_never_changes_hands() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let place = Fixture::new();
    let path = place.path("tool");
    let deleted = || {
        std::fs::write(&path, "x").unwrap();
        if nix::unistd::geteuid().is_root() {
            chown(&path, Some(4711), Some(4712)).unwrap();
        }
        let mode = PermissionsExt::from_mode(0o6755);
        std::fs::set_permissions(&path, mode).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        place.write("tool", None);
        (before.uid(), before.gid(), before.mode())
    };
    let undone = || undo(&place.recorder, &place.journal, &UndoTarget::Last(1)).unwrap();
    let before = deleted();
    assert_eq!(undone().files[0].note, None);
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode()), before);
    // An entry from before owners were recorded.
    deleted();
    let list = place.journal.directory().join("entries");
    let mut lines: Vec<serde_json::Value> = std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last_mut().unwrap();
    let old = last["files"][0]["old"].as_object_mut().unwrap();
    assert!(old.remove("owner").is_some());
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&list, lines).unwrap();
    let note = undone().files[0].note.clone().unwrap_or_default();
    assert!(note.contains("its owner was not recorded"), "{note}");
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o755);
}

mod conflicts;
mod half_done;
mod metadata;
mod selection;
