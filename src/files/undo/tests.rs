//! Undo on real files.

use std::sync::Arc;

use super::*;
use crate::files::commit;
use crate::files::edit::{self, EditOptions, EditPair, FileEdit, Show};
use crate::files::intent::{Decision, Record};
use crate::files::journal::Lasts;
use crate::files::root::Root;

struct Place {
    top: tempfile::TempDir,
    recorder: Recorder,
    journal: Arc<Journal>,
    _state: tempfile::TempDir,
}

impl Place {
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

    /// Writes a file as a tool does; none removes it.
    fn write(&self, name: &str, text: Option<&str>) {
        let path = self.path(name);
        let transaction = Transaction::begin(&self.recorder, &[&path]).unwrap();
        let mut change = Change::read(&path, &path).unwrap();
        if let Some(text) = text {
            change = change.into_content(text.into());
        }
        transaction.commit(&[change], &|_| false).unwrap();
    }

    fn undo(&self, which: Which) -> Result<Vec<u64>, UndoError> {
        Ok(undo(&self.recorder, &self.journal, &which)?.numbers)
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

fn dry_run(place: &Place, which: &Which) -> Undone {
    let listed = Listed::to_try(&place.journal, which.clone()).unwrap();
    try_out(&place.journal, &listed).unwrap()
}

#[test]
fn changes_are_taken_back_one_after_another() {
    let place = Place::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    place.write("a", None);
    let states = ["2", "1"];
    for (number, state) in [3, 2].into_iter().zip(states) {
        assert_eq!(place.undo(Which::Last(1)).unwrap(), [number]);
        assert_eq!(place.read("a").as_deref(), Some(state));
    }
    assert_eq!(place.undo(Which::Last(5)).unwrap(), [1]);
    assert_eq!(place.read("a"), None);
    assert!(
        matches!(place.undo(Which::Last(1)), Err(UndoError::Other(e)) if e.code == ErrorCode::NotFound)
    );
}

#[test]
fn undos_at_the_same_time_tell_no_conflict() {
    let place = Place::new();
    place.write("a", Some("1"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let undo = || place.undo(Which::Last(1));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(undo)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        let UndoError::Other(error) = error else {
            panic!("{error:?}");
        };
        let is_told = error.message == "change 1 is taken back already"
            || error.message == "there is nothing to undo";
        assert!(is_told, "{}", error.message);
    }
}

#[test]
fn an_undo_can_be_undone() {
    let place = Place::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    assert_eq!(place.undo(Which::Last(2)).unwrap(), [2, 1]);
    assert_eq!(place.read("a"), None);
    assert_eq!(place.undo(Which::Number(3)).unwrap(), [3]);
    assert_eq!(place.read("a").as_deref(), Some("2"));
    assert!(
        matches!(place.undo(Which::Number(3)), Err(UndoError::Other(e)) if e.code == ErrorCode::UndoConflict)
    );
    // What was undone and made again can be undone again.
    assert_eq!(place.undo(Which::Last(1)).unwrap(), [2]);
    assert_eq!(place.read("a").as_deref(), Some("1"));
    assert_eq!(place.undo(Which::Session("s".into())).unwrap(), [1]);
    assert_eq!(place.read("a"), None);
}

#[test]
fn permissions_and_directories_come_back() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/x"), "x").unwrap();
    let mode = PermissionsExt::from_mode(0o750);
    std::fs::set_permissions(place.path("d/x"), mode).unwrap();
    place.write("d/x", None);
    std::fs::remove_dir(place.path("d")).unwrap();
    place.undo(Which::Last(1)).unwrap();
    let found = std::fs::metadata(place.path("d/x")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o750);
    place.write("new/deep/y", Some("y"));
    place.undo(Which::Last(1)).unwrap();
    assert!(!place.path("new").exists());
    place.write("new/deep/y", Some("y"));
    std::fs::write(place.path("new/theirs"), "z").unwrap();
    place.undo(Which::Last(1)).unwrap();
    assert_eq!(
        (
            place.read("new/theirs").as_deref(),
            place.path("new/deep").exists()
        ),
        (Some("z"), false)
    );
}

#[test]
fn what_changed_since_is_shown_and_left_alone() {
    let place = Place::new();
    std::fs::write(place.path("a"), "1").unwrap();
    place.write("a", Some("2"));
    place.write("b", Some("x"));
    std::fs::write(place.path("a"), "theirs").unwrap();
    let error = place.undo(Which::Last(2)).unwrap_err();
    let bytes = |text: &str| Content::Bytes(text.into());
    let expected = Conflict {
        path: place.path("a"),
        wrote: bytes("2"),
        now: bytes("theirs"),
        restored: bytes("1"),
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    assert_eq!(place.read("b").as_deref(), Some("x"));
    std::fs::remove_file(place.path("b")).unwrap();
    let error = place.undo(Which::Number(2)).unwrap_err();
    let expected = Conflict {
        path: place.path("b"),
        wrote: bytes("x"),
        now: Content::Missing,
        restored: Content::Missing,
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    // Once the file is as karyi wrote it, it can be restored.
    std::fs::write(place.path("a"), "2").unwrap();
    assert_eq!(place.undo(Which::Number(1)).unwrap(), [1]);
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

#[test]
fn an_earlier_change_is_not_taken_back_over_a_later_one() {
    let place = Place::new();
    for text in ["1", "2", "3"] {
        place.write("a", Some(text));
    }
    assert!(matches!(
        place.undo(Which::Number(2)),
        Err(UndoError::Conflicts(_))
    ));
    assert_eq!(place.read("a").as_deref(), Some("3"));
}

#[test]
fn git_is_never_touched() {
    let place = Place::new();
    std::fs::create_dir(place.path(".git")).unwrap();
    place.write(".git/config", Some("x"));
    let error = place.undo(Which::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::UndoUnavailable));
    assert_eq!(place.read(".git/config").as_deref(), Some("x"));
}

#[test]
fn a_link_on_the_way_is_not_followed() {
    let place = Place::new();
    place.write("d/a", Some("1"));
    place.write("d/a", Some("2"));
    std::fs::rename(place.path("d"), place.path("e")).unwrap();
    std::os::unix::fs::symlink("e", place.path("d")).unwrap();
    let error = place.undo(Which::Last(1)).unwrap_err();
    let found = format!(
        "nothing: its directory {} is a link to e",
        place.path("d").display()
    );
    let expected = Conflict {
        path: place.path("d/a"),
        wrote: Content::Bytes("2".into()),
        now: Content::Other(found),
        restored: Content::Bytes("1".into()),
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    assert_eq!(place.read("e/a").as_deref(), Some("2"));
}

#[test]
fn a_dry_run_changes_nothing() {
    let place = Place::new();
    place.write("a", Some("1"));
    let undone = dry_run(&place, &Which::Last(1));
    let expected = Undone {
        numbers: vec![1],
        files: vec![Restored {
            note: None,
            path: place.path("a"),
            to: None,
            now: Some(b"1".to_vec()),
            restored: None,
        }],
        number: None,
        recovered: Vec::new(),
        damage: None,
    };
    assert_eq!(undone, expected);
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

#[test]
fn a_lost_content_is_told() {
    let place = Place::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    let contents = place._state.path().join("contents");
    std::fs::remove_dir_all(&contents).unwrap();
    let error = place.undo(Which::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::UndoUnavailable));
    assert_eq!(place.read("a").as_deref(), Some("2"));
}

#[test]
fn an_encrypted_change_needs_its_key() {
    let mut place = Place::new();
    place.write("a", Some("1"));
    for key in [None, Some(&[4; 32])] {
        place.journal = Arc::new(Journal::open(place._state.path(), key).unwrap());
        place.recorder.journal = Some(Arc::clone(&place.journal));
        let Err(UndoError::Other(error)) = place.undo(Which::Last(1)) else {
            panic!("undone with {key:?}");
        };
        assert_eq!(error.code, ErrorCode::UndoUnavailable);
        assert_eq!(place.read("a").as_deref(), Some("1"));
    }
}

impl Place {
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
            show: Show::Part(&|text| text.to_owned()),
        };
        edit::apply(edits, options).map(|_| ())
    }

    /// The files that are there, with their permissions and contents.
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
        pairs: vec![EditPair {
            find: String::new(),
            replace: text.into(),
            all: false,
            written: None,
            has_secret: false,
        }],
        ..file(src)
    }
}

#[test]
fn each_version_comes_back_with_its_permissions() {
    let cases: [&[&[FileEdit]]; 4] = [
        &[&[delete("a"), rename("b", "a")]],
        &[&[delete("a")], &[fill("a", "public")]],
        &[&[delete("a")], &[fill("a", "secret")]],
        &[&[rename("a", "t"), rename("b", "a"), rename("t", "b")]],
    ];
    for (index, edits) in cases.iter().enumerate() {
        let place = Place::new();
        place.put("a", "secret", 0o600);
        place.put("b", "run", 0o755);
        let old = place.tree(&["a", "b", "t"]);
        edits.iter().for_each(|edit| place.edit(edit).unwrap());
        let new = place.tree(&["a", "b", "t"]);
        place.undo(Which::Last(edits.len())).unwrap();
        assert_eq!(place.tree(&["a", "b", "t"]), old, "case {index}");
        let undo = place.journal.entries().unwrap().last().unwrap().number;
        place.undo(Which::Number(undo)).unwrap();
        assert_eq!(place.tree(&["a", "b", "t"]), new, "case {index}");
    }
}

#[test]
fn permissions_changed_since_are_never_widened() {
    for (then, since, expected) in [(0o644, 0o600, 0o600), (0o600, 0o644, 0o600)] {
        let place = Place::new();
        place.put("a", "1", then);
        place.write("a", Some("2"));
        place.put("a", "2", since);
        place.undo(Which::Last(1)).unwrap();
        assert_eq!(place.tree(&["a"]), [format!("a {expected:o} 1")]);
    }
}

#[test]
fn what_is_no_file_any_more_is_a_conflict() {
    type Make = fn(&Path);
    let cases: [(Make, &str); 3] = [
        (
            |path| std::os::unix::fs::symlink("elsewhere", path).unwrap(),
            "a link to elsewhere",
        ),
        (
            |path| std::os::unix::fs::symlink("a", path).unwrap(),
            "a link to a",
        ),
        (|path| std::fs::create_dir(path).unwrap(), "a directory"),
    ];
    for (make, found) in cases {
        let place = Place::new();
        place.write("a", Some("1"));
        place.write("a", Some("2"));
        std::fs::remove_file(place.path("a")).unwrap();
        make(&place.path("a"));
        let expected = Conflict {
            path: place.path("a"),
            wrote: Content::Bytes("2".into()),
            now: Content::Other(found.into()),
            restored: Content::Bytes("1".into()),
        };
        let error = place.undo(Which::Last(1)).unwrap_err();
        assert_eq!(error, UndoError::Conflicts(vec![expected]));
    }
    let place = Place::new();
    place.write("d/a", Some("1"));
    std::fs::remove_dir_all(place.path("d")).unwrap();
    std::fs::write(place.path("d"), "x").unwrap();
    let directory = place.path("d");
    let expected = Conflict {
        path: place.path("d/a"),
        wrote: Content::Bytes("1".into()),
        now: Content::Other(format!(
            "nothing: its directory {} is a file",
            directory.display()
        )),
        restored: Content::Missing,
    };
    let error = place.undo(Which::Last(1)).unwrap_err();
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
}

#[test]
fn names_of_one_file_are_not_split() {
    let place = Place::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let error = place.undo(Which::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::HardLinked));
    assert_eq!(inode(&place.path("a")), inode(&place.path("b")));
    std::fs::remove_file(place.path("b")).unwrap();
    place.undo(Which::Last(1)).unwrap();
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

#[test]
fn a_renamed_file_is_renamed_back() {
    let place = Place::new();
    place.put("a", "x", 0o640);
    std::fs::hard_link(place.path("a"), place.path("other")).unwrap();
    let before = inode(&place.path("a"));
    place.edit(&[rename("a", "b")]).unwrap();
    place.edit(&[rename("b", "d/c")]).unwrap();
    place.undo(Which::Last(2)).unwrap();
    assert_eq!(inode(&place.path("a")), before);
    assert_eq!(place.tree(&["a", "b", "d/c"]), ["a 640 x"]);
    // Its text was opened by whoever changed the permissions, and all names are of one file.
    for (since, expected) in [(0o660, "a 660 x"), (0o600, "a 600 x")] {
        place.edit(&[rename("a", "b")]).unwrap();
        place.put("b", "x", since);
        place.undo(Which::Last(1)).unwrap();
        assert_eq!(place.tree(&["a", "b"]), [expected]);
        assert_eq!(inode(&place.path("a")), before);
    }
}

/// Returns how many contents the journal keeps.
fn kept(place: &Place) -> usize {
    let contents = place.journal.directory().join("contents");
    let starts = std::fs::read_dir(contents).unwrap();
    let files = starts.map(|start| std::fs::read_dir(start.unwrap().path()).unwrap().count());
    files.sum()
}

#[test]
fn a_large_file_is_kept_and_comes_back() {
    let (mut place, state) = (Place::new(), tempfile::tempdir().unwrap());
    place.journal = Arc::new(Journal::open(state.path(), None).unwrap());
    place.recorder.journal = Some(Arc::clone(&place.journal));
    let size = usize::try_from(crate::limits::EARLY_JOURNAL_BYTES).unwrap();
    let old = format!("old\n{}", "x".repeat(size));
    std::fs::write(place.path("large"), &old).unwrap();
    let edit = |find: &str| {
        let pair = EditPair {
            find: find.into(),
            replace: "new".into(),
            all: false,
            written: None,
            has_secret: false,
        };
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
            show: Show::Part(&|text| text.to_owned()),
        };
        edit::apply(&edits, options)
    };
    // An edit that comes to nothing leaves nothing.
    let error = edit(&"x".repeat(size / 2)).unwrap_err();
    assert_eq!((error.code, kept(&place)), (ErrorCode::FindAmbiguous, 0));
    assert!(edit("old").unwrap().can_be_undone);
    assert_eq!(
        (kept(&place), place.read("large")),
        (1, Some(old.replace("old", "new")))
    );
    assert_eq!(place.undo(Which::Last(1)).unwrap(), [1]);
    assert!(place.read("large") == Some(old));
}

/// Leaves a change of files behind that was decided, with no file in its place.
fn leave(place: &Place, files: &[(&str, &str, &str)]) {
    let (mut changes, mut records) = (Vec::new(), Vec::new());
    for (name, old, new) in files {
        let path = place.path(name);
        let version = |text: &str, is_kept| Version {
            content: place
                .journal
                .keep(text.as_bytes(), Lasts::PowerLoss)
                .unwrap(),
            size: text.len() as u64,
            mode: 0o644,
            is_kept,
            owner: None,
            attributes: None,
        };
        records.push(FileRecord {
            path: path.as_path().into(),
            old: Some(version(old, true)),
            new: Some(version(new, false)),
            renamed_to: None,
        });
        let change = Change::read(&path, &path).unwrap();
        changes.push(change.into_content(new.as_bytes().to_vec()));
    }
    let planned = commit::plan(&changes, "t");
    let mut record = Record::new(&place.journal.transactions(), "t", &planned).unwrap();
    let mut staged = commit::stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        id: "t".into(),
        files: records,
        ..place.journal.entries().unwrap().pop().unwrap()
    };
    let steps = staged.decided(&entry);
    record.decide(&Decision { steps, entry }).unwrap();
    std::mem::forget(staged);
}

#[test]
fn what_was_left_half_done_is_ended_before_the_choice() {
    let place = Place::new();
    place.write("b", Some("1"));
    place.write("a", Some("1"));
    leave(&place, &[("a", "1", "2"), ("b", "1", "2")]);
    let words = |undone: &Undone| -> Vec<&str> {
        let words = undone.recovered.iter().map(|file| file.became.as_str());
        words.collect()
    };
    let now = || [place.read("a").unwrap(), place.read("b").unwrap()];
    let shown = dry_run(&place, &Which::Last(1));
    assert_eq!(words(&shown), ["waiting"; 2]);
    assert_eq!(now(), ["1", "1"]);
    let undone = undo(&place.recorder, &place.journal, &Which::Last(1)).unwrap();
    assert_eq!(
        (undone.numbers.as_slice(), words(&undone)),
        (&[3][..], vec!["completed"; 2])
    );
    assert_eq!(now(), ["1", "1"]);
    let undone = undo(&place.recorder, &place.journal, &Which::Number(4)).unwrap();
    assert_eq!(words(&undone), Vec::<&str>::new());
    assert_eq!(now(), ["2", "2"]);
}

#[test]
fn a_dry_run_foresees_what_the_real_one_ends_first() {
    let lose = |place: &Place| {
        let temporary = place.path(".karyi-t-1.tmp");
        std::fs::remove_file(temporary).unwrap();
    };
    let put = |place: &Place| {
        std::fs::rename(place.path(".karyi-t-0.tmp"), place.path("a")).unwrap();
    };
    type Meddle<'a> = &'a dyn Fn(&Place);
    let cases: [(&[Meddle<'_>], u64); 4] =
        [(&[], 3), (&[&put], 3), (&[&lose], 2), (&[&put, &lose], 2)];
    for (meddle, number) in cases {
        let place = Place::new();
        place.write("b", Some("1"));
        place.write("a", Some("1"));
        leave(&place, &[("a", "1", "2"), ("b", "1", "2")]);
        meddle.iter().for_each(|meddle| meddle(&place));
        let before = place.tree(&["a", "b"]);
        let shown = dry_run(&place, &Which::Last(1));
        assert_eq!(place.tree(&["a", "b"]), before);
        let undone = undo(&place.recorder, &place.journal, &Which::Last(1)).unwrap();
        assert_eq!(undone.numbers, [number]);
        assert_eq!((shown.numbers, shown.files), (undone.numbers, undone.files));
    }
}

#[test]
fn an_owner_comes_back_and_rights_never_go_to_another() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let place = Place::new();
    let path = place.path("tool");
    let deleted = || {
        std::fs::write(&path, "x").unwrap();
        if nix::unistd::geteuid().is_root() {
            chown(&path, Some(4711), Some(4712)).unwrap();
        }
        let mode = PermissionsExt::from_mode(0o6755);
        std::fs::set_permissions(&path, mode).unwrap();
        let was = std::fs::metadata(&path).unwrap();
        place.write("tool", None);
        (was.uid(), was.gid(), was.mode())
    };
    let undone = || undo(&place.recorder, &place.journal, &Which::Last(1)).unwrap();
    let was = deleted();
    assert_eq!(undone().files[0].note, None);
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode()), was);
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

/// What the system tells of names that go from two directories, in order.
#[cfg(target_os = "linux")]
fn gone(directories: &[&Path], act: impl FnOnce()) -> Vec<String> {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    let watch = init(CreateFlags::NONBLOCK).unwrap();
    for directory in directories {
        add_watch(&watch, *directory, WatchFlags::DELETE).unwrap();
    }
    act();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(watch, &mut buffer);
    let mut names = Vec::new();
    while let Ok(event) = events.next() {
        let name = event.file_name().unwrap();
        names.push(name.to_string_lossy().into_owned());
    }
    names
}

/// Else a kill in between would leave them, and nothing would know.
#[cfg(target_os = "linux")]
#[test]
fn directories_that_were_made_go_before_the_record_of_the_undo() {
    let place = Place::new();
    place.write("new/deep/y", Some("y"));
    let transactions = place.journal.transactions();
    let top = place.path("");
    let names = gone(&[&top, &transactions], || {
        place.undo(Which::Last(1)).unwrap();
    });
    let [first, record] = names.as_slice() else {
        panic!("{names:?}");
    };
    assert!(first == "new" && record.ends_with(".json"), "{names:?}");
}

/// Whatever is chosen, it is the same as from the whole list, and no more of it is read than that needs.
#[test]
fn a_choice_needs_the_end_of_the_list_only() {
    let place = Place::new();
    for text in ["1", "2", "3", "4", "5"] {
        place.write("a", Some(text));
    }
    // 6 takes 5 back, 7 takes 4 back, 8 makes 4 again.
    place.undo(Which::Last(1)).unwrap();
    place.undo(Which::Last(1)).unwrap();
    place.undo(Which::Number(7)).unwrap();
    place.write("a", Some("9"));
    type Chosen = Result<&'static [u64], ErrorCode>;
    let cases: [(Which, Chosen, u64); 9] = [
        (Which::Last(1), Ok(&[9]), 9),
        (Which::Last(2), Ok(&[9, 4]), 4),
        (Which::Last(3), Ok(&[9, 4, 3]), 3),
        (Which::Last(99), Ok(&[9, 4, 3, 2, 1]), 1),
        (Which::Number(8), Ok(&[8]), 8),
        (Which::Number(7), Err(ErrorCode::UndoConflict), 7),
        (Which::Number(5), Err(ErrorCode::UndoConflict), 5),
        (Which::Number(99), Err(ErrorCode::NotFound), 9),
        (Which::Session("s".into()), Ok(&[9, 4, 3, 2, 1]), 1),
    ];
    for (which, expected, first) in cases {
        let listed = Listed::to_try(&place.journal, which.clone()).unwrap();
        let found = listed.chosen().map_err(|error| error.code);
        let found = found.map(|all| all.iter().map(|e| e.number).collect::<Vec<_>>());
        assert_eq!(found, expected.map(<[u64]>::to_vec), "{which:?}");
        assert_eq!(
            listed.entries.first().map(|e| e.number),
            Some(first),
            "{which:?}"
        );
    }
}

#[test]
fn one_that_cannot_be_undone_names_itself_and_the_way_out() {
    let place = Place::new();
    place.write("a", Some("1"));
    place.write(".git/config", Some("x"));
    let entries = place.journal.entries().unwrap();
    let can: Vec<bool> = entries.iter().map(Entry::can_be_undone).collect();
    assert_eq!(can, [true, false]);
    let Err(UndoError::Other(error)) = place.undo(Which::Last(1)) else {
        panic!("the change in .git was taken back");
    };
    let told = format!(
        "change 2 cannot be undone: {}: belongs to git, which undo never touches",
        place.path(".git/config").display()
    );
    assert_eq!(
        (error.code, error.message),
        (ErrorCode::UndoUnavailable, told)
    );
    assert!(error.hint.contains("`karyi undo 1`"), "{}", error.hint);
    assert_eq!(place.undo(Which::Number(1)).unwrap(), [1]);
}

mod dress {
    mod tests;
}
