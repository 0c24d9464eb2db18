//! Obstacles of an undo.

use super::*;

#[test]
fn files_changed_since_are_shown_and_left_alone() {
    let place = Fixture::new();
    std::fs::write(place.path("a"), "1").unwrap();
    place.write("a", Some("2"));
    place.write("b", Some("x"));
    std::fs::write(place.path("a"), "theirs").unwrap();
    let error = place.undo(UndoTarget::Last(2)).unwrap_err();
    let bytes = |text: &str| ConflictContent::Bytes(text.into());
    let expected = Conflict {
        path: place.path("a"),
        wrote: bytes("2"),
        now: bytes("theirs"),
        restored: bytes("1"),
        lines: vec![(1, 1)],
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    assert_eq!(place.read("b").as_deref(), Some("x"));
    std::fs::remove_file(place.path("b")).unwrap();
    let error = place.undo(UndoTarget::Number(2)).unwrap_err();
    let expected = Conflict {
        path: place.path("b"),
        wrote: bytes("x"),
        now: ConflictContent::Missing,
        restored: ConflictContent::Missing,
        lines: Vec::new(),
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    // Once the file is as karyi wrote it, it can be restored.
    std::fs::write(place.path("a"), "2").unwrap();
    assert_eq!(place.undo(UndoTarget::Number(1)).unwrap(), [1]);
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

#[test]
fn an_earlier_change_is_not_taken_back_over_a_later_one() {
    let place = Fixture::new();
    for text in ["1", "2", "3"] {
        place.write("a", Some(text));
    }
    assert!(matches!(
        place.undo(UndoTarget::Number(2)),
        Err(UndoError::Conflicts(_))
    ));
    assert_eq!(place.read("a").as_deref(), Some("3"));
}

/// Even if the file has the content of the earlier change.
#[test]
fn nor_when_the_later_change_restored_the_same_text() {
    let place = Fixture::new();
    for text in ["B", "A", "B"] {
        place.write("a", Some(text));
    }
    place.write("b", Some("1"));
    for target in [UndoTarget::Number(1), UndoTarget::Number(2)] {
        let refused = place.undo(target.clone());
        let hint = match &refused {
            Err(UndoError::Other(error)) if error.code == ErrorCode::UndoConflict => &error.hint,
            Err(UndoError::Conflicts(_)) if target == UndoTarget::Number(2) => continue,
            other => panic!("{other:?}"),
        };
        let wanted = "later changes are in the way: first `karyi undo 3`, then `karyi undo 2`; or restore the \
                      wanted lines by hand";
        assert_eq!(hint, wanted);
        let selection = UndoSelection::for_dry_run(&place.journal, target).unwrap();
        assert!(dry_run(&place.journal, &selection).is_err());
    }
    assert_eq!(place.read("a").as_deref(), Some("B"));
    // One after the other, newest first; an undo is never an obstacle.
    for number in [3, 2, 1] {
        assert_eq!(place.undo(UndoTarget::Number(number)).unwrap(), [number]);
    }
    assert_eq!(place.read("a"), None);
}

#[test]
fn git_is_never_touched() {
    let place = Fixture::new();
    std::fs::create_dir(place.path(".git")).unwrap();
    place.write(".git/config", Some("x"));
    let error = place.undo(UndoTarget::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::UndoUnavailable));
    assert_eq!(place.read(".git/config").as_deref(), Some("x"));
}

#[test]
fn symlinks_on_the_path_are_not_followed() {
    let place = Fixture::new();
    place.write("d/a", Some("1"));
    place.write("d/a", Some("2"));
    std::fs::rename(place.path("d"), place.path("e")).unwrap();
    std::os::unix::fs::symlink("e", place.path("d")).unwrap();
    let error = place.undo(UndoTarget::Last(1)).unwrap_err();
    let found = format!(
        "nothing: its directory {} is a link to e",
        place.path("d").display()
    );
    let expected = Conflict {
        path: place.path("d/a"),
        wrote: ConflictContent::Bytes("2".into()),
        now: ConflictContent::Other(found),
        restored: ConflictContent::Bytes("1".into()),
        lines: Vec::new(),
    };
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
    assert_eq!(place.read("e/a").as_deref(), Some("2"));
}

#[test]
fn lost_contents_are_reported() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    let contents = place._state.path().join("contents");
    std::fs::remove_dir_all(&contents).unwrap();
    let error = place.undo(UndoTarget::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::UndoUnavailable));
    assert_eq!(place.read("a").as_deref(), Some("2"));
}

#[test]
fn an_encrypted_change_needs_its_key() {
    let mut place = Fixture::new();
    place.write("a", Some("1"));
    for key in [None, Some(&[4; 32])] {
        place.journal = Arc::new(Journal::open(place._state.path(), key).unwrap());
        place.recorder.journal = Some(Arc::clone(&place.journal));
        let Err(UndoError::Other(error)) = place.undo(UndoTarget::Last(1)) else {
            panic!("undone with {key:?}");
        };
        assert_eq!(error.code, ErrorCode::UndoUnavailable);
        assert_eq!(place.read("a").as_deref(), Some("1"));
    }
}

#[test]
fn a_path_that_is_no_file_any_more_is_a_conflict() {
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
        let place = Fixture::new();
        place.write("a", Some("1"));
        place.write("a", Some("2"));
        std::fs::remove_file(place.path("a")).unwrap();
        make(&place.path("a"));
        let expected = Conflict {
            path: place.path("a"),
            wrote: ConflictContent::Bytes("2".into()),
            now: ConflictContent::Other(found.into()),
            restored: ConflictContent::Bytes("1".into()),
            lines: Vec::new(),
        };
        let error = place.undo(UndoTarget::Last(1)).unwrap_err();
        assert_eq!(error, UndoError::Conflicts(vec![expected]));
    }
    let place = Fixture::new();
    place.write("d/a", Some("1"));
    std::fs::remove_dir_all(place.path("d")).unwrap();
    std::fs::write(place.path("d"), "x").unwrap();
    let directory = place.path("d");
    let expected = Conflict {
        path: place.path("d/a"),
        wrote: ConflictContent::Bytes("1".into()),
        now: ConflictContent::Other(format!(
            "nothing: its directory {} is a file",
            directory.display()
        )),
        restored: ConflictContent::Missing,
        lines: Vec::new(),
    };
    let error = place.undo(UndoTarget::Last(1)).unwrap_err();
    assert_eq!(error, UndoError::Conflicts(vec![expected]));
}

#[test]
fn names_of_one_file_are_not_split() {
    let place = Fixture::new();
    place.write("a", Some("1"));
    place.write("a", Some("2"));
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let error = place.undo(UndoTarget::Last(1)).unwrap_err();
    assert!(matches!(error, UndoError::Other(e) if e.code == ErrorCode::HardLinked));
    assert_eq!(inode(&place.path("a")), inode(&place.path("b")));
    std::fs::remove_file(place.path("b")).unwrap();
    place.undo(UndoTarget::Last(1)).unwrap();
    assert_eq!(place.read("a").as_deref(), Some("1"));
}

#[test]
fn changes_since_are_kept_where_they_do_not_touch() {
    let place = Fixture::new();
    place.write("a", Some("1\n2\n3\n4\n5\n"));
    place.write("a", Some("1\nTWO\n3\n4\n5\n"));
    place.put("a", "0\n1\nTWO\n3\n4\nfive\n", 0o640);
    let expected = RestoredFile {
        path: place.path("a"),
        to: None,
        now: Some(Arc::new(b"0\n1\nTWO\n3\n4\nfive\n".to_vec())),
        restored: Some(Arc::new(b"0\n1\n2\n3\n4\nfive\n".to_vec())),
        note: Some("what changed there since is kept".into()),
    };
    let tried = dry_run_of(&place, &UndoTarget::Last(1)).files;
    assert_eq!(tried, std::slice::from_ref(&expected));
    let undone = undo(&place.recorder, &place.journal, &UndoTarget::Last(1)).unwrap();
    assert_eq!(undone.files, [expected]);
    assert_eq!(place.tree(&["a"]), ["a 640 0\n1\n2\n3\n4\nfive\n"]);
    // The undo can be undone, also after another change.
    std::fs::write(place.path("a"), "0\n1\n2\n3\n4\nfive\n6\n").unwrap();
    place
        .undo(UndoTarget::Number(undone.number.unwrap()))
        .unwrap();
    assert_eq!(
        place.read("a").as_deref(),
        Some("0\n1\nTWO\n3\n4\nfive\n6\n")
    );
}

#[test]
fn an_earlier_change_is_taken_back_below_a_later_one_that_does_not_touch_it() {
    let place = Fixture::new();
    for text in ["1\n2\n3\n", "ONE\n2\n3\n", "ONE\n2\nTHREE\n"] {
        place.write("a", Some(text));
    }
    assert_eq!(place.undo(UndoTarget::Number(2)).unwrap(), [2]);
    assert_eq!(place.read("a").as_deref(), Some("1\n2\nTHREE\n"));
    assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [3]);
    assert_eq!(place.read("a").as_deref(), Some("1\n2\n3\n"));
    assert_eq!(place.undo(UndoTarget::Last(1)).unwrap(), [1]);
    assert_eq!(place.read("a"), None);
}

#[test]
fn several_changes_are_taken_back_around_those_of_others() {
    let place = Fixture::new();
    std::fs::write(place.path("a"), "1\n2\n3\n4\n5\n").unwrap();
    place.write("a", Some("ONE\n2\n3\n4\n5\n"));
    std::fs::write(place.path("a"), "ONE\n2\n3\n4\n5\n6\n").unwrap();
    place.write("a", Some("ONE\n2\nTHREE\n4\n5\n6\n"));
    assert_eq!(place.undo(UndoTarget::Session("s".into())).unwrap(), [2, 1]);
    assert_eq!(place.read("a").as_deref(), Some("1\n2\n3\n4\n5\n6\n"));
    // A conflict in between is named by its change.
    place.write("a", Some("ONE\n"));
    std::fs::write(place.path("a"), "one\n").unwrap();
    place.write("a", Some("two\n"));
    let Err(UndoError::Other(error)) = place.undo(UndoTarget::Last(2)) else {
        panic!("undone");
    };
    assert!(
        error.message.contains("between change 4 and"),
        "{}",
        error.message
    );
    assert_eq!(place.read("a").as_deref(), Some("two\n"));
}
