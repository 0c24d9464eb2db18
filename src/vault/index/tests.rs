//! What is written, when, and what is refused.

use super::*;

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn listed() -> Listed {
    Listed {
        note: None,
        created: Timestamp::UNIX_EPOCH,
        updated: Timestamp::UNIX_EPOCH,
        used: None,
        store: Kind::Os,
        policy: Policy::default(),
        is_going: false,
    }
}

#[test]
fn what_is_written_is_read() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Index::read(root.path()).unwrap(), Index::default());
    Index::change(root.path(), |index| {
        index.generation = 3;
        index.names.insert("A".into(), listed());
        Ok(())
    })
    .unwrap();
    let index = Index::read(root.path()).unwrap();
    assert_eq!(
        (index.generation, index.get(&name("A"))),
        (3, Some(&listed()))
    );
}

#[test]
fn uses_are_written_down_to_the_hour() {
    let root = tempfile::tempdir().unwrap();
    let add = |index: &mut Index| {
        index.names.insert("A".into(), listed());
        Ok(())
    };
    Index::change(root.path(), add).unwrap();
    let used = |second: i64, key: &str| {
        let now = Timestamp::from_second(second).unwrap();
        Index::note_use(root.path(), &[name(key)], now).unwrap();
        let index = Index::read(root.path()).unwrap();
        index
            .get(&name("A"))
            .unwrap()
            .used
            .map(Timestamp::as_second)
    };
    assert_eq!(used(1000, "B"), None);
    assert_eq!(used(1000, "A"), Some(1000));
    assert_eq!(used(1001, "A"), Some(1000));
    assert_eq!(used(4600, "A"), Some(4600));
}

#[test]
fn a_change_that_fails_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let result = Index::change(root.path(), |index| {
        index.generation = 3;
        Err::<(), _>(ToolError::new(ErrorCode::Io, "no"))
    });
    assert_eq!(result.unwrap_err().code, ErrorCode::Io);
    assert!(!root.path().join(FILE_NAME).exists());
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let mut after = Index::default();
    let note = Some("x".repeat(17 << 20));
    after.names.insert("A".into(), Listed { note, ..listed() });
    let mut is_done = false;
    let result = locked.around(Index::default(), after, || {
        is_done = true;
        Ok(())
    });
    assert_eq!(
        (result.unwrap_err().code, is_done),
        (ErrorCode::BadArguments, false)
    );
    assert!(!root.path().join(FILE_NAME).exists());
}

#[test]
fn what_fails_in_the_store_leaves_the_index_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let mut after = Index::default();
    after.names.insert("A".into(), listed());
    let mut locked = Index::lock(root.path()).unwrap();
    let meanwhile = || {
        let index = Index::read(root.path()).unwrap();
        assert_eq!((index.generation, index.settled()), (1, None));
    };
    let failed = locked.around(Index::default(), after.clone(), || {
        meanwhile();
        Err::<(), _>(ToolError::new(ErrorCode::Io, "no"))
    });
    assert_eq!(failed.unwrap_err().code, ErrorCode::Io);
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.settled(), index.names.len()), (Some(2), 0));
    locked.around(index, after, || Ok(())).unwrap();
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.settled(), index.names.len()), (Some(4), 1));
}

#[test]
fn what_is_no_index_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for text in [
        "",
        "[]",
        "{}",
        r#"{"version":2,"generation":0,"store":null,"names":{}}"#,
        r#"{"version":1,"generation":0,"store":null,"names":{},"more":1}"#,
        r#"{"version":1,"generation":-1,"store":null,"names":{}}"#,
    ] {
        std::fs::write(root.path().join(FILE_NAME), text).unwrap();
        let error = Index::read(root.path()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadVault, "{text}");
    }
}

#[test]
fn what_is_going_is_not_listed() {
    let mut index = Index::default();
    index.names.insert("A".into(), listed());
    let going = Listed {
        is_going: true,
        ..listed()
    };
    index.names.insert("B".into(), going);
    assert_eq!(index.kept().collect::<Vec<_>>(), [name("A")]);
    assert_eq!(index.get(&name("B")), None);
    assert_eq!(
        index.check_new(&name("a")).unwrap_err().code,
        ErrorCode::BadArguments
    );
    assert_eq!(index.check_new(&name("b")), Ok(()));
}

/// An index of one secret with a note of so many bytes.
fn noted(bytes: u64) -> Index {
    let mut index = Index::default();
    let note = Some("x".repeat(usize::try_from(bytes).unwrap()));
    let listed = Listed { note, ..listed() };
    index.names.insert("A".into(), listed);
    index
}

#[test]
fn what_is_as_large_as_it_may_be_can_be_removed() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let change = |locked: &mut Locked, meanwhile: Index, after: Index| {
        let result = locked.around(meanwhile, after, || Ok(()));
        result.map_err(|error| error.code)
    };
    let empty = encode(&noted(0)).unwrap().len() as u64;
    let most = limits::MAX_VAULT_FILE_BYTES - empty - 100;
    let refused = change(&mut locked, Index::default(), noted(most));
    assert_eq!(refused, Err(ErrorCode::BadArguments));
    // An index of before, which may be so large.
    locked.write(noted(most)).unwrap();
    change(&mut locked, noted(most), noted(most)).unwrap();
    let more = noted(most + 1);
    assert_eq!(
        change(&mut locked, noted(most), more),
        Err(ErrorCode::BadArguments)
    );
    // One that stays within the room there is can be marked as going, and goes.
    let most = most - limits::VAULT_INDEX_RESERVE;
    let mut going = noted(most);
    for listed in going.names.values_mut() {
        listed.is_going = true;
    }
    change(&mut locked, noted(most), noted(most)).unwrap();
    change(&mut locked, going, Index::default()).unwrap();
    assert_eq!(Index::read(root.path()).unwrap().names.len(), 0);
}

#[test]
fn what_may_still_be_done_leaves_the_change_open() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let mut going = noted(1);
    for listed in going.names.values_mut() {
        listed.is_going = true;
    }
    locked.around(noted(1), noted(1), || Ok(())).unwrap();
    let failed = locked.around(going, Index::default(), || {
        Err::<(), _>(ToolError::new(ErrorCode::KeyringTimeout, "no answer"))
    });
    assert_eq!(failed.unwrap_err().code, ErrorCode::KeyringTimeout);
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.generation, index.settled()), (3, None));
    // It may be there or not, and what was said of it is known.
    assert_eq!(index.kept().count(), 0);
    assert!(index.names["A"].is_going);
}

#[test]
fn what_is_done_and_not_listed_is_told() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let path = root.path().join(FILE_NAME);
    let error = locked
        .around(Index::default(), noted(1), || {
            // Nothing can take its place.
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir_all(path.join("in the way")).unwrap();
            Ok(())
        })
        .unwrap_err();
    assert!(
        error
            .message
            .starts_with("the store was changed, and the index does not say so: "),
        "{}",
        error.message
    );
    assert!(error.hint.contains("doctor --repair"), "{}", error.hint);
}
