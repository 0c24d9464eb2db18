//! Transactions that are disturbed.

use std::path::PathBuf;

use super::*;
use crate::commit::{plan, stage};
use karyi_core::error::ErrorCode;

/// Directory with files `a` and `b` that hold `1` and `2`, and a journal elsewhere.
struct Fixture {
    top: tempfile::TempDir,
    recorder: Recorder,
    _state: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(top.path().join("a"), "1").unwrap();
        std::fs::write(top.path().join("b"), "2").unwrap();
        let journal = Journal::open(state.path(), None).unwrap();
        let recorder = Recorder {
            journal: Some(Arc::new(journal)),
            ..Recorder::default()
        };
        Self {
            top,
            recorder,
            _state: state,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn change(&self, name: &str, text: &str) -> Change {
        let change = Change::read(Path::new(name), &self.path(name)).unwrap();
        change.with_content(text.into())
    }

    /// Files with their texts; directories end with a slash.
    fn tree(&self) -> Vec<(String, String)> {
        let mut found: Vec<_> = std::fs::read_dir(self.top.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                match std::fs::read_to_string(&path) {
                    Ok(text) => (name, text),
                    Err(_) => (format!("{name}/"), String::new()),
                }
            })
            .collect();
        found.sort();
        found
    }

    #[track_caller]
    fn expect(&self, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(self.tree(), expected);
    }

    fn commit(&self, changes: &[Change]) -> Result<Receipt, ToolError> {
        let paths: Vec<&Path> = changes.iter().map(|change| change.real.as_path()).collect();
        let transaction = Transaction::begin(&self.recorder, &paths).unwrap();
        transaction.commit(changes, &|_| false)
    }
}

/// Reads the files, lets `meddle` act, then commits.
fn check(meddle: impl FnOnce(&Fixture), expected: &[(&str, &str)]) {
    let place = Fixture::new();
    let changes = [
        place.change("a", "one"),
        place.change("b", "two"),
        place.change("new", "three"),
    ];
    meddle(&place);
    let error = place.commit(&changes).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileChanged, "{}", error.message);
    place.expect(expected);
}

#[test]
fn a_file_changed_meanwhile_is_left_alone() {
    check(
        |place| std::fs::write(place.path("b"), "3").unwrap(),
        &[("a", "1"), ("b", "3")],
    );
    check(
        |place| std::fs::remove_file(place.path("b")).unwrap(),
        &[("a", "1")],
    );
    check(
        |place| {
            std::fs::remove_file(place.path("b")).unwrap();
            std::fs::create_dir(place.path("b")).unwrap();
        },
        &[("a", "1"), ("b/", "")],
    );
    check(
        |place| std::fs::write(place.path("new"), "theirs").unwrap(),
        &[("a", "1"), ("b", "2"), ("new", "theirs")],
    );
    // Equal size and time, other content.
    check(
        |place| {
            let file = std::fs::File::options().write(true).open(place.path("b"));
            let file = file.unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            std::io::Write::write_all(&mut &file, b"9").unwrap();
            file.set_modified(time).unwrap();
        },
        &[("a", "1"), ("b", "9")],
    );
    // Only its permissions, or its links.
    check(
        |place| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(place.path("b"), mode).unwrap();
        },
        &[("a", "1"), ("b", "2")],
    );
    check(
        |place| std::fs::hard_link(place.path("b"), place.path("c")).unwrap(),
        &[("a", "1"), ("b", "2"), ("c", "2")],
    );
    // The same content in another file.
    check(
        |place| {
            std::fs::write(place.path("t"), "2").unwrap();
            std::fs::rename(place.path("t"), place.path("b")).unwrap();
        },
        &[("a", "1"), ("b", "2")],
    );
}

#[test]
fn a_directory_replaced_by_a_symlink_is_not_followed() {
    let place = Fixture::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::write(place.path("d/x"), "old").unwrap();
    std::fs::write(place.path("elsewhere/x"), "old").unwrap();
    let changes = [place.change("a", "one"), place.change("d/x", "new")];
    std::fs::rename(place.path("d"), place.path("d2")).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.path("d")).unwrap();
    let error = place.commit(&changes).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotADirectory, "{}", error.message);
    for (name, text) in [("a", "1"), ("d2/x", "old"), ("elsewhere/x", "old")] {
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text);
    }
}

#[test]
fn a_directory_swapped_after_staging_refuses_the_change() {
    let place = Fixture::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/x"), "old").unwrap();
    let changes = [place.change("d/x", "new")];
    let planned = plan(&changes, "t");
    let mut staged = stage(&changes, &planned).unwrap();
    std::fs::rename(place.path("d"), place.path("d2")).unwrap();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/x"), "old").unwrap();
    assert_eq!(staged.check().unwrap_err().code, ErrorCode::FileChanged);
    assert_eq!(
        staged.install_all().unwrap_err().error.code,
        ErrorCode::FileChanged
    );
    assert_eq!(std::fs::read_to_string(place.path("d/x")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(place.path("d2")).unwrap().count(), 1);
}

#[test]
fn a_failed_step_rolls_back_the_others() {
    let place = Fixture::new();
    let mut gone = Change::read(Path::new("a"), &place.path("a")).unwrap();
    gone.after = None;
    let changes = [
        gone,
        place.change("new/deep", "x"),
        place.change("b", "two"),
    ];
    let planned = plan(&changes, "t");
    let mut staged = stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let temporary = planned.steps[2].temporary.as_ref().unwrap();
    std::fs::remove_file(place.path(temporary)).unwrap();
    assert_eq!(
        staged.install_all().unwrap_err().error.code,
        ErrorCode::NotFound
    );
    place.expect(&[("a", "1"), ("b", "2")]);
}

#[test]
fn a_full_disk_changes_nothing() {
    let place = Fixture::new();
    let disk = place.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(&disk);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: a small tmpfs cannot be mounted here");
        return;
    }
    std::fs::write(disk.join("x"), "2").unwrap();
    let large = "x".repeat(1 << 20);
    let changes = [
        place.change("a", "fits"),
        place.change("disk/new", "fits"),
        place.change("disk/x", &large),
    ];
    let error = place.commit(&changes).unwrap_err();
    let left: Vec<_> = std::fs::read_dir(&disk)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let _ = std::process::Command::new("umount").arg(&disk).status();
    assert_eq!(error.code, ErrorCode::NoSpace, "{}", error.message);
    assert_eq!(left, ["x"]);
    assert_eq!(std::fs::read_to_string(place.path("a")).unwrap(), "1");
}

#[test]
fn private_contents_are_not_stored() {
    let place = Fixture::new();
    let paths = [place.path("a")];
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let commit = |recorder: &Recorder, text: &str| {
        let transaction = Transaction::begin(recorder, &paths).unwrap();
        let is_private = |bytes: &[u8]| bytes.starts_with(b"secret");
        let changes = [place.change("a", text)];
        transaction.commit(&changes, &is_private).unwrap()
    };
    let why = |obstacle: &str| {
        let path = place.path("a").display().to_string();
        Some(format!(
            "{path}: {obstacle}: it holds the value of a secret, and this run has no vault whose key would encrypt it"
        ))
    };
    assert_eq!(commit(&place.recorder, "plain").no_undo, None);
    assert_eq!(
        commit(&place.recorder, "secret 1").no_undo,
        why("its new content was not recorded, so later changes of the file could not be detected")
    );
    assert_eq!(
        commit(&place.recorder, "plain").no_undo,
        why("its content before that change was not stored")
    );
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open(state.path(), Some(&[1; 32])).unwrap();
    let recorder = Recorder {
        journal: Some(Arc::new(journal)),
        ..Recorder::default()
    };
    assert_eq!(commit(&recorder, "secret 2").no_undo, None);
    // Files change without a journal, too.
    let expected = "the state directory, where changes are recorded, cannot be written";
    assert_eq!(
        commit(&Recorder::default(), "last").no_undo.as_deref(),
        Some(expected)
    );
    place.expect(&[("a", "last"), ("b", "2")]);
}

#[test]
fn a_full_journal_disk_only_prevents_changes_of_several_files() {
    let place = Fixture::new();
    let disk = tempfile::tempdir().unwrap();
    let mut mount = std::process::Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(disk.path());
    if !mount.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: a small tmpfs cannot be mounted here");
        return;
    }
    let journal = Journal::open(disk.path(), None).unwrap();
    let recorder = Recorder {
        journal: Some(Arc::new(journal)),
        needs_journal: true,
        ..Recorder::default()
    };
    let commit = |changes: &[Change]| {
        let paths: Vec<&Path> = changes.iter().map(|change| change.real.as_path()).collect();
        let transaction = Transaction::begin(&recorder, &paths).unwrap();
        transaction.commit(changes, &|_| false)
    };
    let first = commit(&[place.change("a", "one")]).unwrap();
    // Until nothing fits any more.
    let mut filler = std::fs::File::create(disk.path().join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 512]).is_ok() {}
    let several = commit(&[place.change("a", "1"), place.change("b", "2 more")]);
    let single = commit(&[place.change("a", "alone")]);
    drop(filler);
    let _ = std::process::Command::new("umount")
        .arg(disk.path())
        .status();
    assert_eq!(first.no_undo, None);
    assert_eq!(several.unwrap_err().code, ErrorCode::NoJournal);
    assert!(single.is_ok());
    place.expect(&[("a", "alone"), ("b", "2")]);
}

#[test]
fn leftovers_are_removed_later() {
    let place = Fixture::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/x"), "3").unwrap();
    let chattr = |sign: &str| {
        let mut chattr = std::process::Command::new("chattr");
        let done = chattr.arg(sign).arg(place.path("d")).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !chattr("+a") {
        println!("skipped: no directory can be made append-only here");
        return;
    }
    let failed = place.commit(&[place.change("a", "one"), place.change("d/x", "three")]);
    assert!(chattr("-a"));
    let message = failed.unwrap_err().message;
    let expected = format!(
        "could not remove its temporary files: {}/.karyi-",
        place.path("d").display()
    );
    assert!(message.contains(&expected), "{message}");
    assert!(
        message.contains(" and 1 more; the next edit or undo tries again"),
        "{message}"
    );
    assert_eq!(std::fs::read_to_string(place.path("a")).unwrap(), "1");
    let next = place.commit(&[place.change("b", "two")]).unwrap();
    assert_eq!(next.recovered, []);
    let left = std::fs::read_dir(place.path("d")).unwrap().count();
    assert_eq!(left, 1);
    // A refused change is not made later, even if all of it is still there.
    assert!(chattr("+a"));
    let failed = place.commit(&[place.change("d/x", "three")]);
    assert!(chattr("-a"));
    assert!(failed.is_err());
    place.commit(&[place.change("b", "three")]).unwrap();
    assert_eq!(std::fs::read_to_string(place.path("d/x")).unwrap(), "3");
    let left = std::fs::read_dir(place.path("d")).unwrap().count();
    assert_eq!(left, 1);
}

/// Brings a change up to its decision.
fn decided<'a>(
    journal: &Journal,
    changes: &'a [Change],
) -> (wal::ChangePlan, WalRecord, commit::StagedChange<'a>, Entry) {
    let planned = plan(changes, "t");
    let mut record = WalRecord::new(&journal.transactions(), "t", &planned).unwrap();
    let mut staged = stage(changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        id: "t".into(),
        ..Entry::default()
    };
    decide(&mut record, &staged, &entry, true).unwrap();
    (planned, record, staged, entry)
}

#[test]
fn leftovers_of_a_committed_change_are_removed_later() {
    let place = Fixture::new();
    let journal = place.recorder.journal.clone().unwrap();
    let changes = [place.change("a", "one"), place.change("b", "two")];
    let (planned, mut record, staged, entry) = decided(&journal, &changes);
    let placed = staged.install_all().unwrap();
    journal.append(entry).unwrap();
    record.set_pending(PendingWork::Clear).unwrap();
    drop((placed, record));
    assert_eq!(commit::leftovers(&planned).len(), 2);
    // Removing temporary files later is not worth a report.
    std::fs::write(place.path("a"), "theirs").unwrap();
    assert_eq!(recover::pending_files(&journal), []);
    let receipt = place.commit(&[place.change("b", "three")]).unwrap();
    assert_eq!((receipt.recovered, receipt.leftovers), (Vec::new(), None));
    place.expect(&[("a", "theirs"), ("b", "three")]);
    let numbers = journal.entries().unwrap().len();
    let left = std::fs::read_dir(journal.transactions()).unwrap().count();
    assert_eq!((numbers, left), (2, 0));
}

#[test]
fn a_dying_process_is_waited_for() {
    let place = Fixture::new();
    let journal = place.recorder.journal.clone().unwrap();
    let changes = [place.change("a", "one"), place.change("b", "two")];
    let (_, record, staged, _) = decided(&journal, &changes);
    std::mem::forget(staged);
    // The locks of its paths are free, that of its record is not yet.
    let (path, other) = (place.path("a"), place.path("c"));
    let records_of_paths =
        |path: &Path| wal::records_of_paths(&journal.transactions(), &[path]).len();
    assert_eq!((records_of_paths(&path), records_of_paths(&other)), (1, 0));
    let begun = std::thread::scope(|scope| {
        let next = scope.spawn(|| {
            let transaction = Transaction::begin(&place.recorder, &[&path]);
            transaction.map(|transaction| transaction.recovered().len())
        });
        // Otherwise it would have begun by then.
        let since = std::time::Instant::now();
        while since.elapsed() < std::time::Duration::from_millis(200) {
            assert!(!next.is_finished());
            std::thread::yield_now();
        }
        drop(record);
        next.join().unwrap()
    });
    assert_eq!(begun.unwrap(), 2);
    place.expect(&[("a", "one"), ("b", "two")]);
}

#[test]
fn a_decision_that_cannot_be_synced_is_withdrawn() {
    let place = Fixture::new();
    let journal = place.recorder.journal.clone().unwrap();
    let changes = [place.change("a", "one"), place.change("b", "two")];
    let planned = plan(&changes, "t");
    let mut record = WalRecord::new(&journal.transactions(), "t", &planned).unwrap();
    let mut staged = stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        id: "t".into(),
        ..Entry::default()
    };
    let steps = staged.step_hashes(&entry);
    let decision = Decision { steps, entry };
    let written = record.decide_durably(&decision, |_| Err(std::io::ErrorKind::StorageFull.into()));
    assert!(written.is_err());
    // The temporary files cannot be removed, so the record stays.
    std::mem::forget(staged);
    assert!(!commit::leftovers(&planned).is_empty());
    assert!(end(Some(record), &planned, Progress::Planned).is_some());
    assert_eq!(recover::recover(&journal).unwrap(), []);
    place.expect(&[("a", "1"), ("b", "2")]);
    assert_eq!(journal.entries().unwrap(), []);
}
