//! Unfinished changes, and undos that are killed.

use super::*;

/// Leaves a decided change behind of which no file was renamed yet.
fn set_pending(place: &Fixture, files: &[(&str, &str, &str)]) {
    let (mut changes, mut records) = (Vec::new(), Vec::new());
    for (name, old, new) in files {
        let path = place.path(name);
        let version = |text: &str, is_kept| Version {
            content: place
                .journal
                .store(text.as_bytes(), Durability::PowerLoss)
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
        changes.push(change.with_content(new.as_bytes().to_vec()));
    }
    let planned = commit::plan(&changes, "t");
    let mut record = WalRecord::new(&place.journal.transactions(), "t", &planned).unwrap();
    let mut staged = commit::stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        id: "t".into(),
        files: records,
        ..place.journal.entries().unwrap().pop().unwrap()
    };
    let steps = staged.step_hashes(&entry);
    record.decide(&Decision { steps, entry }).unwrap();
    std::mem::forget(staged);
}

#[test]
fn unfinished_changes_are_recovered_before_the_selection() {
    let place = Fixture::new();
    place.write("b", Some("1"));
    place.write("a", Some("1"));
    set_pending(&place, &[("a", "1", "2"), ("b", "1", "2")]);
    let words = |recovered: &[FileRecovery]| -> Vec<&str> {
        recovered.iter().map(|file| file.outcome.as_str()).collect()
    };
    let now = || [place.read("a").unwrap(), place.read("b").unwrap()];
    dry_run_of(&place, &UndoTarget::Last(1));
    let selection = UndoSelection::for_dry_run(&place.journal, UndoTarget::Last(1)).unwrap();
    assert_eq!(words(&selection.recovered), ["waiting"; 2]);
    assert_eq!(now(), ["1", "1"]);
    let selection = UndoSelection::for_undo(&place.journal, UndoTarget::Last(1)).unwrap();
    let mut recovered = Vec::new();
    let undone = take_back(&place.recorder, &place.journal, &selection, &mut recovered).unwrap();
    assert_eq!(
        (undone.numbers.as_slice(), words(&recovered)),
        (&[3][..], vec!["completed"; 2])
    );
    assert_eq!(now(), ["1", "1"]);
    let selection = UndoSelection::for_undo(&place.journal, UndoTarget::Number(4)).unwrap();
    take_back(&place.recorder, &place.journal, &selection, &mut recovered).unwrap();
    assert_eq!(words(&recovered), Vec::<&str>::new());
    assert_eq!(now(), ["2", "2"]);
}

#[test]
fn a_dry_run_predicts_the_recovery() {
    let lose = |place: &Fixture| {
        let temporary = place.path(".karyi-t-1.tmp");
        std::fs::remove_file(temporary).unwrap();
    };
    let put = |place: &Fixture| {
        std::fs::rename(place.path(".karyi-t-0.tmp"), place.path("a")).unwrap();
    };
    type Meddle<'a> = &'a dyn Fn(&Fixture);
    let cases: [(&[Meddle<'_>], u64); 4] =
        [(&[], 3), (&[&put], 3), (&[&lose], 2), (&[&put, &lose], 2)];
    for (meddle, number) in cases {
        let place = Fixture::new();
        place.write("b", Some("1"));
        place.write("a", Some("1"));
        set_pending(&place, &[("a", "1", "2"), ("b", "1", "2")]);
        meddle.iter().for_each(|meddle| meddle(&place));
        let before = place.tree(&["a", "b"]);
        let shown = dry_run_of(&place, &UndoTarget::Last(1));
        assert_eq!(place.tree(&["a", "b"]), before);
        let selection = UndoSelection::for_undo(&place.journal, UndoTarget::Last(1)).unwrap();
        let mut recovered = Vec::new();
        let undone =
            take_back(&place.recorder, &place.journal, &selection, &mut recovered).unwrap();
        assert_eq!(undone.numbers, [number]);
        assert_eq!((shown.numbers, shown.files), (undone.numbers, undone.files));
    }
}

/// Returns the file system events of removals in two directories, in order.
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

/// A kill in between would otherwise leave them for good.
#[cfg(target_os = "linux")]
#[test]
fn created_directories_are_removed_before_the_record() {
    let place = Fixture::new();
    place.write("new/deep/y", Some("y"));
    let transactions = place.journal.transactions();
    let top = place.path("");
    let names = gone(&[&top, &transactions], || {
        place.undo(UndoTarget::Last(1)).unwrap();
    });
    let [first, record] = names.as_slice() else {
        panic!("{names:?}");
    };
    assert!(first == "new" && record.ends_with(".json"), "{names:?}");
}

/// Another process may be killed between selection and undo; only this error reports its recovered files.
#[test]
fn a_refused_undo_reports_recovered_files() {
    let place = Fixture::new();
    place.write("b", Some("1"));
    place.write("a", Some("1"));
    place.write("c", Some("1"));
    let selection = UndoSelection::for_undo(&place.journal, UndoTarget::Last(1)).unwrap();
    assert_eq!(selection.recovered, []);
    set_pending(&place, &[("a", "1", "2"), ("b", "1", "2")]);
    std::fs::write(place.path("c"), "somebody's").unwrap();
    std::fs::write(place.path("a"), "somebody's").unwrap();
    let mut recovered = Vec::new();
    let refused = take_back(&place.recorder, &place.journal, &selection, &mut recovered);
    assert!(
        matches!(refused, Err(UndoError::Conflicts(_))),
        "{refused:?}"
    );
    let reported: Vec<_> = recovered
        .iter()
        .map(|file| (file.path.clone(), file.outcome))
        .collect();
    assert_eq!(
        reported,
        [
            (place.path("a"), RecoveryOutcome::LeftAlone),
            (place.path("b"), RecoveryOutcome::New)
        ]
    );
}
