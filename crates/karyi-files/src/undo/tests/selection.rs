//! Selection of the changes to take back.

use super::*;

#[test]
fn changes_are_taken_back_one_after_another() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    place.write("a", None);
    let states = ["2", "1"];
    for (number, state) in [3, 2].into_iter().zip(states) {
        assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [number]);
        assert_eq!(place.read("a").as_deref(), Some(state));
    }
    assert_eq!(place.undo(UndoTarget::Last(5)).unwrap(), [1]);
    assert_eq!(place.read("a"), None);
    assert!(
        matches!(place.undo(UndoTarget::Last(1)), Err(UndoError::Other(e)) if e.code == ErrorCode::NotFound)
    );
}

#[test]
fn parallel_undos_report_no_conflict() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let undo = || place.undo(UndoTarget::Last(1));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(undo)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        let UndoError::Other(error) = error else {
            panic!("{error:?}");
        };
        let is_told = error.message == "change 1 was already undone"
            || error.message == "there is nothing to undo";
        assert!(is_told, "{}", error.message);
    }
}

#[test]
fn an_undo_that_changes_no_file_is_recorded() {
    let place = Fixture::new();
    place.write("d/a", Some("1"));
    place.write("d/a", None);
    let done = undo(&place.recorder, &place.journal, &UndoTarget::Last(2)).unwrap();
    assert_eq!((done.numbers, done.number), (vec![2, 1], Some(3)));
    assert!(!place.path("d").exists());
    assert!(
        matches!(place.undo(UndoTarget::Last(1)), Err(UndoError::Other(e)) if e.code == ErrorCode::NotFound)
    );
    // It can be taken back like any other change.
    let done = undo(&place.recorder, &place.journal, &UndoTarget::Number(3)).unwrap();
    assert_eq!((done.numbers, done.number), (vec![3], Some(4)));
    assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [2]);
    assert_eq!(place.read("d/a").as_deref(), Some("1"));
}

#[test]
fn an_undo_can_be_undone() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    assert_eq!(place.undo(UndoTarget::Last(2)).unwrap(), [2, 1]);
    assert_eq!(place.read("a"), None);
    assert_eq!(place.undo(UndoTarget::Number(3)).unwrap(), [3]);
    assert_eq!(place.read("a").as_deref(), Some("2"));
    assert!(
        matches!(place.undo(UndoTarget::Number(3)), Err(UndoError::Other(e)) if e.code == ErrorCode::UndoConflict)
    );
    // A change that was undone and redone can be undone again.
    assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [2]);
    assert_eq!(place.read("a").as_deref(), Some("1"));
    assert_eq!(place.undo(UndoTarget::Session("s".into())).unwrap(), [1]);
    assert_eq!(place.read("a"), None);
}

#[test]
fn a_dry_run_changes_nothing() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    let undone = dry_run_of(&place, &UndoTarget::Last(1));
    let expected = UndoOutcome {
        numbers: vec![1],
        files: vec![RestoredFile {
            note: None,
            path: place.path("a"),
            to: None,
            now: Some(Arc::new(b"1".to_vec())),
            restored: None,
        }],
        number: None,
        damage: None,
        leftovers: None,
    };
    assert_eq!(undone, expected);
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

/// The selection equals that from the whole list, and reads no more than it needs.
#[test]
fn a_selection_reads_only_the_end_of_the_list() {
    let place = Fixture::new();
    for text in ["1", "2", "3", "4", "5"] {
        place.write("a", Some(text));
    }
    // 6 takes 5 back, 7 takes 4 back, 8 redoes 4.
    place.undo(UndoTarget::Last(1)).unwrap();
    place.undo(UndoTarget::Last(1)).unwrap();
    place.undo(UndoTarget::Number(7)).unwrap();
    place.write("a", Some("9"));
    type Selection = Result<&'static [u64], ErrorCode>;
    let cases: [(UndoTarget, Selection, u64); 9] = [
        (UndoTarget::Last(1), Ok(&[9]), 9),
        (UndoTarget::Last(2), Ok(&[9, 4]), 4),
        (UndoTarget::Last(3), Ok(&[9, 4, 3]), 3),
        (UndoTarget::Last(99), Ok(&[9, 4, 3, 2, 1]), 1),
        (UndoTarget::Number(8), Ok(&[8]), 8),
        (UndoTarget::Number(7), Err(ErrorCode::UndoConflict), 7),
        (UndoTarget::Number(5), Err(ErrorCode::UndoConflict), 5),
        (UndoTarget::Number(99), Err(ErrorCode::NotFound), 9),
        (UndoTarget::Session("s".into()), Ok(&[9, 4, 3, 2, 1]), 1),
    ];
    for (target, expected, first) in cases {
        let selection = UndoSelection::for_dry_run(&place.journal, target.clone()).unwrap();
        let found = selection.chosen().map_err(|error| error.code);
        let found = found.map(|all| all.iter().map(|e| e.number).collect::<Vec<_>>());
        assert_eq!(found, expected.map(<[u64]>::to_vec), "{target:?}");
        assert_eq!(
            selection.entries.first().map(|e| e.number),
            Some(first),
            "{target:?}"
        );
    }
}

#[test]
fn a_change_that_cannot_be_undone_suggests_an_alternative() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    place.write(".git/config", Some("x"));
    let entries = place.journal.entries().unwrap();
    let can: Vec<bool> = entries.iter().map(Entry::can_be_undone).collect();
    assert_eq!(can, [true, false]);
    let Err(UndoError::Other(error)) = place.undo(UndoTarget::Last(1)) else {
        panic!("the change in .git was taken back");
    };
    let expected = format!(
        "change 2 cannot be undone: {}: belongs to git, which undo never touches",
        place.path(".git/config").display()
    );
    assert_eq!(
        (error.code, error.message),
        (ErrorCode::UndoUnavailable, expected)
    );
    assert!(error.hint.contains("`karyi undo 1`"), "{}", error.hint);
    assert_eq!(place.undo(UndoTarget::Number(1)).unwrap(), [1]);
}
