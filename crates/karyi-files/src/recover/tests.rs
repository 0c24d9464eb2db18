//! Every state that a crash can leave behind.

use std::path::Path;

use super::*;
use crate::change::Change;
use crate::commit::{plan, stage};
use crate::journal::{Durability, Entry, FileRecord, Journal, Version};
use crate::transaction::{Recorder, Transaction};

struct Fixture {
    top: tempfile::TempDir,
    state: tempfile::TempDir,
    journal: Journal,
}

impl Fixture {
    fn new() -> Self {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path(), None).unwrap();
        std::fs::write(top.path().join("a"), "1").unwrap();
        std::fs::write(top.path().join("b"), "2").unwrap();
        std::fs::write(top.path().join("c"), "3").unwrap();
        Self {
            top,
            state,
            journal,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn changes(&self) -> Vec<Change> {
        let read = |name: &str| Change::read(Path::new(name), &self.path(name)).unwrap();
        let write = |name: &str, text: &str| read(name).with_content(text.into());
        vec![
            write("a", "one"),
            write("b", "two"),
            read("c"),
            write("d/new", "four"),
        ]
    }

    fn tree(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut left = vec![self.top.path().to_owned()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                    continue;
                }
                let name = path.strip_prefix(self.top.path()).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((name.to_string_lossy().into_owned(), text));
            }
        }
        found.sort();
        found
    }
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    files.iter().map(owned).collect()
}

fn entry() -> Entry {
    Entry {
        id: "t".into(),
        time_ms: 1,
        tool: "edit".into(),
        ..Entry::default()
    }
}

const OLD: &[(&str, &str)] = &[("a", "1"), ("b", "2"), ("c", "3")];
const NEW: &[(&str, &str)] = &[("a", "one"), ("b", "two"), ("d/new", "four")];

/// Leaves a change behind after `steps` of its files were renamed into place.
fn set_pending(place: &Fixture, is_decided: bool, steps: usize, entry: Entry) -> ChangePlan {
    let changes = place.changes();
    let planned = plan(&changes, "t");
    let mut record = WalRecord::new(&place.journal.transactions(), "t", &planned).unwrap();
    let mut staged = stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    if is_decided {
        let decision = Decision {
            steps: staged.step_hashes(&entry),
            entry,
        };
        record.decide(&decision).unwrap();
        for work in StepRecovery::all(&planned, &decision).iter().take(steps) {
            work.complete().unwrap();
        }
    }
    // As in a crash: nothing is removed, and the lock is free.
    std::mem::forget(staged);
    drop(record);
    planned
}

/// An entry as a run records it, with the old contents stored.
fn full_entry(place: &Fixture) -> Entry {
    let version = |text: &str, is_kept| Version {
        content: match is_kept {
            true => place
                .journal
                .store(text.as_bytes(), Durability::PowerLoss)
                .unwrap(),
            false => place.journal.name(text.as_bytes()),
        },
        size: text.len() as u64,
        mode: 0o644,
        is_kept,
        owner: None,
        attributes: None,
    };
    let file = |name: &str, old: Option<&str>, new: Option<&str>| FileRecord {
        path: place.path(name).as_path().into(),
        old: old.map(|text| version(text, true)),
        new: new.map(|text| version(text, false)),
        renamed_to: None,
    };
    Entry {
        files: vec![
            file("a", Some("1"), Some("one")),
            file("b", Some("2"), Some("two")),
            file("c", Some("3"), None),
            file("d/new", None, Some("four")),
        ],
        ..entry()
    }
}

fn words(recovered: &[FileRecovery]) -> Vec<&'static str> {
    recovered.iter().map(|file| file.outcome.as_str()).collect()
}

fn beside(place: &Fixture, name: &Option<String>) -> PathBuf {
    place.path(name.as_ref().unwrap())
}

/// Leaves a change behind after `steps` of its files were renamed into place, lets `meddle` act, and
/// recovers; returns the outcomes.
fn crash(
    is_decided: bool,
    steps: usize,
    meddle: impl FnOnce(&Fixture, &ChangePlan),
    expected: &[(&str, &str)],
) -> Vec<&'static str> {
    let place = Fixture::new();
    let transactions = place.journal.transactions();
    let planned = set_pending(&place, is_decided, steps, entry());
    meddle(&place, &planned);
    let recovered = recover(&place.journal).unwrap();
    assert_eq!(place.tree(), owned(expected), "{steps} steps");
    assert_eq!(std::fs::read_dir(&transactions).unwrap().count(), 0);
    assert_eq!(recover(&place.journal).unwrap(), []);
    let is_new = expected.contains(&("a", "one"));
    let entries = place.journal.entries().unwrap().len();
    assert_eq!(entries, usize::from(is_new));
    drop(place.state);
    words(&recovered)
}

#[test]
fn undecided_changes_leave_nothing() {
    assert!(crash(false, 0, |_, _| {}, OLD).is_empty());
}

#[test]
fn decided_changes_are_completed_from_every_step() {
    for steps in 0..=4 {
        assert_eq!(crash(true, steps, |_, _| {}, NEW), ["completed"; 4]);
    }
}

#[test]
fn changes_without_their_new_content_are_rolled_back() {
    let lose = |place: &Fixture, plan: &ChangePlan| {
        let temporary = plan.steps[3].temporary.as_ref().unwrap();
        std::fs::remove_file(place.path("d").join(temporary)).unwrap();
    };
    for steps in 0..=3 {
        assert_eq!(crash(true, steps, lose, OLD), ["taken_back"; 4]);
    }
}

fn write_rest(place: &Fixture, rest: PendingWork) {
    use std::io::Write;
    let path = place.journal.transactions().join("t.json");
    let mut file = std::fs::File::options().append(true).open(path).unwrap();
    writeln!(file, "{}", serde_json::to_string(&rest).unwrap()).unwrap();
}

#[test]
fn refused_changes_are_rolled_back() {
    let refuse = |place: &Fixture, _: &ChangePlan| write_rest(place, PendingWork::TakeBack);
    for steps in 0..=4 {
        assert_eq!(crash(true, steps, refuse, OLD), ["taken_back"; 4]);
    }
}

#[test]
fn files_changed_since_are_left_alone() {
    let write =
        |place: &Fixture, _: &ChangePlan| std::fs::write(place.path("b"), "theirs").unwrap();
    let expected: &[_] = &[("a", "one"), ("b", "theirs"), ("d/new", "four")];
    for steps in [0, 1, 2, 4] {
        let outcome = crash(true, steps, write, expected);
        assert_eq!(
            outcome,
            ["completed", "left_alone", "completed", "completed"]
        );
    }
    let again = |place: &Fixture, _: &ChangePlan| std::fs::write(place.path("c"), "back").unwrap();
    let expected: &[_] = &[("a", "one"), ("b", "two"), ("c", "back"), ("d/new", "four")];
    let outcome = crash(true, 4, again, expected);
    assert_eq!(
        outcome,
        ["completed", "completed", "left_alone", "completed"]
    );
}

#[test]
fn damaged_records_are_reported_and_files_left_alone() {
    for is_plan_whole in [true, false] {
        let place = Fixture::new();
        let changes = place.changes();
        let planned = plan(&changes, "t");
        let path = place.journal.transactions().join("t.json");
        let mut record = WalRecord::new(&place.journal.transactions(), "t", &planned).unwrap();
        let mut staged = stage(&changes, &planned).unwrap();
        staged.check().unwrap();
        let entry = entry();
        let steps = staged.step_hashes(&entry);
        record.decide(&Decision { steps, entry }).unwrap();
        std::mem::forget(staged);
        drop(record);
        let mut bytes = std::fs::read(&path).unwrap();
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        bytes[if is_plan_whole { line + 5 } else { 5 }] = b'?';
        std::fs::write(&path, bytes).unwrap();
        let before = place.tree();
        let recovered = recover(&place.journal).unwrap();
        let paths: Vec<PathBuf> = match is_plan_whole {
            true => planned
                .steps
                .iter()
                .map(|step| step.path.0.clone())
                .collect(),
            false => vec![path],
        };
        assert!(
            recovered
                .iter()
                .all(|file| file.outcome == RecoveryOutcome::LeftAlone)
        );
        let recovered_files: Vec<PathBuf> = recovered.into_iter().map(|file| file.path).collect();
        assert_eq!(recovered_files, paths);
        assert_eq!(place.tree(), before);
        // It is reported once.
        assert_eq!(recover(&place.journal).unwrap(), []);
    }
}

#[test]
fn running_changes_are_not_touched() {
    let place = Fixture::new();
    let changes = place.changes();
    let planned = plan(&changes, "t");
    let record = WalRecord::new(&place.journal.transactions(), "t", &planned).unwrap();
    let staged = stage(&changes, &planned).unwrap();
    let before = place.tree();
    assert_eq!(recover(&place.journal).unwrap(), []);
    assert_eq!(place.tree(), before);
    drop(staged);
    record.close();
    assert_eq!(place.tree(), owned(OLD));
}

#[test]
fn unreachable_files_wait_for_the_next_run() {
    for steps in 0..=4 {
        let place = Fixture::new();
        let planned = set_pending(&place, true, steps, entry());
        let (top, away) = (place.path(""), place.state.path().join("away"));
        let left = place.tree();
        std::fs::rename(&top, &away).unwrap();
        for _ in 0..2 {
            let recovered = recover(&place.journal).unwrap();
            assert_eq!(words(&recovered), ["waiting"; 4]);
            let first = planned.steps[0].path.as_path().display();
            let why = recovered[0].why.as_deref().unwrap();
            let is_told = why.starts_with(&format!("{first}: ")) && why.ends_with("tried again");
            assert!(is_told, "{why}");
        }
        assert_eq!(pending_files(&place.journal).len(), 4);
        assert_eq!(place.journal.entries().unwrap(), []);
        // Other changes are made meanwhile.
        let recorder = Recorder {
            journal: Some(std::sync::Arc::new(
                Journal::open(place.state.path(), None).unwrap(),
            )),
            ..Recorder::default()
        };
        let other = place.state.path().canonicalize().unwrap().join("other");
        let transaction = Transaction::begin(&recorder, &[&other]).unwrap();
        let change = Change::read(&other, &other).unwrap();
        let change = change.with_content(b"x".to_vec());
        let receipt = transaction.commit(&[change], &|_| false);
        assert_eq!(words(&receipt.unwrap().recovered), ["waiting"; 4]);

        std::fs::rename(&away, &top).unwrap();
        assert_eq!(place.tree(), left);
        assert_eq!(words(&recover(&place.journal).unwrap()), ["completed"; 4]);
        assert_eq!(place.tree(), owned(NEW));
        assert_eq!(place.journal.entries().unwrap().len(), 2);
        assert_eq!(pending_files(&place.journal), []);
    }
}

#[test]
fn unrecordable_changes_wait_for_the_next_run() {
    let place = Fixture::new();
    set_pending(&place, true, 1, entry());
    let entries = place.state.path().join("entries");
    std::fs::create_dir(&entries).unwrap();
    assert_eq!(words(&recover(&place.journal).unwrap()), ["waiting"; 4]);
    std::fs::remove_dir(&entries).unwrap();
    assert_eq!(words(&recover(&place.journal).unwrap()), ["completed"; 4]);
    assert_eq!(place.tree(), owned(NEW));
    assert_eq!(place.journal.entries().unwrap().len(), 1);
}

#[test]
fn records_are_quarantined_after_a_while() {
    let place = Fixture::new();
    set_pending(&place, true, 1, entry());
    let path = place.journal.transactions().join("t.json");
    let record = std::fs::File::options().append(true).open(&path).unwrap();
    let then = std::time::SystemTime::now() - limits::INCOMPLETE_CHANGE_AGE * 2;
    record.set_modified(then).unwrap();
    drop(record);
    let (top, away) = (place.path(""), place.state.path().join("away"));
    std::fs::rename(&top, &away).unwrap();
    assert_eq!(words(&recover(&place.journal).unwrap()), ["left_alone"; 4]);
    assert_eq!(recover(&place.journal).unwrap(), []);
    assert!(path.with_extension("broken").exists());
    std::fs::rename(&away, &top).unwrap();
}

#[test]
fn overwritten_temporary_files_are_not_installed() {
    let place = Fixture::new();
    let planned = set_pending(&place, true, 1, entry());
    let theirs = beside(&place, &planned.steps[1].temporary);
    std::fs::write(&theirs, "evil").unwrap();
    let recovered = recover(&place.journal).unwrap();
    let mut expected = vec!["taken_back"; 4];
    expected.push("left_alone");
    assert_eq!(words(&recovered), expected);
    assert_eq!(recovered[4].path, theirs);
    assert!(recovered[4].why.is_some());
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "evil");
    std::fs::remove_file(&theirs).unwrap();
    assert_eq!(place.tree(), owned(OLD));
}

#[test]
fn lost_backups_are_restored_from_the_journal() {
    for (is_overwritten, is_kept) in [(true, true), (false, true), (true, false), (false, false)] {
        let place = Fixture::new();
        let entry = match is_kept {
            true => full_entry(&place),
            false => entry(),
        };
        // The files a, b and c were renamed into place.
        let planned = set_pending(&place, true, 3, entry);
        let originals = [0, 2].map(|step: usize| beside(&place, &planned.steps[step].backup));
        for original in &originals {
            match is_overwritten {
                true => std::fs::write(original, "evil").unwrap(),
                false => std::fs::remove_file(original).unwrap(),
            }
        }
        // `git clean -fd` removes the directory with the new content.
        std::fs::remove_dir_all(place.path("d")).unwrap();
        let recovered = recover(&place.journal).unwrap();
        let mut expected = match is_kept {
            true => vec!["taken_back"; 4],
            false => vec!["left_alone", "taken_back", "left_alone", "taken_back"],
        };
        for original in originals.iter().filter(|_| is_overwritten) {
            expected.push("left_alone");
            assert_eq!(std::fs::read_to_string(original).unwrap(), "evil");
            std::fs::remove_file(original).unwrap();
        }
        assert_eq!(words(&recovered), expected);
        let files: &[_] = match is_kept {
            true => OLD,
            false => &[("a", "one"), ("b", "2")],
        };
        assert_eq!(place.tree(), owned(files));
    }
}

#[test]
fn files_restored_from_the_journal_gain_no_rights() {
    use std::os::unix::fs::MetadataExt;
    let own = nix::unistd::geteuid().as_raw();
    // Only root can set an owner; otherwise setuid is cleared.
    let theirs = if own == 0 { 4711 } else { own };
    for (owner, uid, mode) in [(Some((theirs, own)), theirs, 0o4755), (None, own, 0o755)] {
        let place = Fixture::new();
        let mut entry = full_entry(&place);
        let removed = entry.files[2].old.as_mut().unwrap();
        (removed.mode, removed.owner) = (0o4755, owner);
        let planned = set_pending(&place, true, 3, entry);
        std::fs::remove_file(beside(&place, &planned.steps[2].backup)).unwrap();
        std::fs::remove_dir_all(place.path("d")).unwrap();
        assert_eq!(words(&recover(&place.journal).unwrap()), ["taken_back"; 4]);
        let found = std::fs::metadata(place.path("c")).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o7777), (uid, mode));
    }
}

#[test]
fn permissions_changed_since_are_preserved() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for is_new in [true, false] {
        let place = Fixture::new();
        for name in ["a", "b"] {
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(place.path(name), open).unwrap();
        }
        let planned = set_pending(&place, true, 1, full_entry(&place));
        let name = if is_new { "b" } else { "a" };
        let closed = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path(name), closed).unwrap();
        if !is_new {
            std::fs::remove_file(beside(&place, &planned.steps[1].temporary)).unwrap();
        }
        recover(&place.journal).unwrap();
        assert_eq!(place.tree(), owned(if is_new { NEW } else { OLD }));
        assert_eq!(mode(&place.path(name)), 0o600);
    }
}

#[test]
fn a_killed_undo_removes_created_directories_too() {
    let place = Fixture::new();
    let made = place.path("d");
    std::fs::create_dir(&made).unwrap();
    let first = Entry {
        id: "first".into(),
        made: vec![made.as_path().into()],
        ..entry()
    };
    let number = place.journal.append(first).unwrap();
    let undo = Entry {
        undoes: vec![number],
        ..entry()
    };
    let changes = [Change::read(Path::new("a"), &place.path("a")).unwrap()];
    let planned = plan(&changes, "t");
    let mut record = WalRecord::new(&place.journal.transactions(), "t", &planned).unwrap();
    let mut staged = stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let steps = staged.step_hashes(&undo);
    record.decide(&Decision { steps, entry: undo }).unwrap();
    std::mem::forget(staged);
    drop(record);
    assert_eq!(words(&recover(&place.journal).unwrap()), ["completed"]);
    assert!(!made.exists());
}
