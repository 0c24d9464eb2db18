//! What a crash leaves, in every state it can leave it in.

use std::path::Path;

use super::*;
use crate::files::change::Change;
use crate::files::commit::{plan, stage};
use crate::files::journal::{Entry, Journal};

struct Place {
    top: tempfile::TempDir,
    state: tempfile::TempDir,
    journal: Journal,
}

impl Place {
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
        let write = |name: &str, text: &str| read(name).into_content(text.into());
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
        number: 0,
        id: "t".into(),
        time_ms: 1,
        session: String::new(),
        call: String::new(),
        tool: "edit".into(),
        key: None,
        undoes: Vec::new(),
        files: Vec::new(),
        made: Vec::new(),
    }
}

const OLD: &[(&str, &str)] = &[("a", "1"), ("b", "2"), ("c", "3")];
const NEW: &[(&str, &str)] = &[("a", "one"), ("b", "two"), ("d/new", "four")];

/// Leaves a change behind after `steps` of its files took their places, lets `meddle` act, and ends
/// it; returns what became of the files.
fn crash(
    is_decided: bool,
    steps: usize,
    meddle: impl FnOnce(&Place, &Plan),
    expected: &[(&str, &str)],
) -> Vec<&'static str> {
    let place = Place::new();
    let changes = place.changes();
    let planned = plan(&changes, "t");
    let transactions = place.journal.transactions();
    let mut record = Record::new(&transactions, "t", &planned).unwrap();
    let mut staged = stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    if is_decided {
        let entry = entry();
        let decision = Decision {
            steps: staged.decided(&entry),
            entry,
        };
        record.decide(&decision).unwrap();
        for (step, decided) in planned.steps.iter().zip(&decision.steps).take(steps) {
            complete(step, decided).unwrap();
        }
    }
    // As a crash does: nothing is removed, and the lock is free.
    std::mem::forget(staged);
    drop(record);
    meddle(&place, &planned);
    let recovered = recover(&place.journal).unwrap();
    assert_eq!(place.tree(), owned(expected), "{steps} steps");
    assert_eq!(std::fs::read_dir(&transactions).unwrap().count(), 0);
    assert_eq!(recover(&place.journal).unwrap(), []);
    let is_new = expected.contains(&("a", "one"));
    let entries = place.journal.entries().unwrap().len();
    assert_eq!(entries, usize::from(is_new));
    drop(place.state);
    recovered.iter().map(|file| file.became.as_str()).collect()
}

#[test]
fn what_was_not_decided_leaves_nothing() {
    assert!(crash(false, 0, |_, _| {}, OLD).is_empty());
}

#[test]
fn what_was_decided_is_completed_from_every_step() {
    for steps in 0..=4 {
        assert_eq!(crash(true, steps, |_, _| {}, NEW), ["completed"; 4]);
    }
}

#[test]
fn what_lost_a_new_content_is_taken_back() {
    let lose = |place: &Place, plan: &Plan| {
        let temporary = plan.steps[3].temporary.as_ref().unwrap();
        std::fs::remove_file(place.path("d").join(temporary)).unwrap();
    };
    for steps in 0..=3 {
        assert_eq!(crash(true, steps, lose, OLD), ["taken_back"; 4]);
    }
}

#[test]
fn a_file_changed_since_is_left_alone() {
    let write = |place: &Place, _: &Plan| std::fs::write(place.path("b"), "theirs").unwrap();
    let expected: &[_] = &[("a", "one"), ("b", "theirs"), ("d/new", "four")];
    for steps in [0, 1, 2, 4] {
        let became = crash(true, steps, write, expected);
        assert_eq!(
            became,
            ["completed", "left_alone", "completed", "completed"]
        );
    }
    let again = |place: &Place, _: &Plan| std::fs::write(place.path("c"), "back").unwrap();
    let expected: &[_] = &[("a", "one"), ("b", "two"), ("c", "back"), ("d/new", "four")];
    let became = crash(true, 4, again, expected);
    assert_eq!(
        became,
        ["completed", "completed", "left_alone", "completed"]
    );
}

#[test]
fn a_damaged_record_is_told_and_its_files_are_left_alone() {
    for is_plan_whole in [true, false] {
        let place = Place::new();
        let changes = place.changes();
        let planned = plan(&changes, "t");
        let path = place.journal.transactions().join("t.json");
        let mut record = Record::new(&place.journal.transactions(), "t", &planned).unwrap();
        let mut staged = stage(&changes, &planned).unwrap();
        staged.check().unwrap();
        let entry = entry();
        let steps = staged.decided(&entry);
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
                .all(|file| file.became == Became::LeftAlone)
        );
        let told: Vec<PathBuf> = recovered.into_iter().map(|file| file.path).collect();
        assert_eq!(told, paths);
        assert_eq!(place.tree(), before);
        // It is told once.
        assert_eq!(recover(&place.journal).unwrap(), []);
    }
}

#[test]
fn a_change_that_is_under_way_is_not_touched() {
    let place = Place::new();
    let changes = place.changes();
    let planned = plan(&changes, "t");
    let record = Record::new(&place.journal.transactions(), "t", &planned).unwrap();
    let staged = stage(&changes, &planned).unwrap();
    let before = place.tree();
    assert_eq!(recover(&place.journal).unwrap(), []);
    assert_eq!(place.tree(), before);
    drop(staged);
    record.close();
    assert_eq!(place.tree(), owned(OLD));
}
