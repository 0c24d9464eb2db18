//! Tests of writing the index, and of refused input.

use super::*;

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn listed() -> IndexEntry {
    IndexEntry {
        note: None,
        created: Timestamp::UNIX_EPOCH,
        updated: Timestamp::UNIX_EPOCH,
        used: None,
        store: Kind::Os,
        policy: Policy::default(),
    }
}

#[test]
fn written_content_is_read_back() {
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
        Index::record_use(root.path(), &[name(key)], now).unwrap();
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

/// An index of one secret with a note of so many bytes.
fn noted(bytes: usize) -> Index {
    let mut index = Index::default();
    let note = Some("x".repeat(bytes));
    index
        .names
        .insert("A".into(), IndexEntry { note, ..listed() });
    index
}

#[test]
fn unreadable_content_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let mut is_done = false;
    let result = locked.change_store(noted(17 << 20), || {
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
fn a_failed_store_change_leaves_the_index_unchanged() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let read = || {
        let index = Index::read(root.path()).unwrap();
        (index.generation, index.is_whole(), index.names.len())
    };
    let failed = locked.change_store(noted(1), || {
        assert_eq!(read(), (1, false, 0));
        Err::<(), _>(ToolError::new(ErrorCode::Io, "no"))
    });
    assert_eq!(failed.unwrap_err().code, ErrorCode::Io);
    assert_eq!(read(), (2, true, 0));
    locked.change_store(noted(1), || Ok(())).unwrap();
    assert_eq!(read(), (4, true, 1));
}

#[test]
fn an_unknown_outcome_leaves_the_change_open() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let after = Index {
        store: Some(StoreChoice::os()),
        ..noted(1)
    };
    let failed = locked.change_store(after, || {
        Err::<(), _>(ToolError::new(ErrorCode::KeyringTimeout, "no answer"))
    });
    assert_eq!(failed.unwrap_err().code, ErrorCode::KeyringTimeout);
    let index = Index::read(root.path()).unwrap();
    assert_eq!(
        (index.generation, index.store, index.names.len()),
        (1, Some(StoreChoice::os()), 0)
    );
}

#[test]
fn a_foreign_index_is_damaged_and_preserved() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(FILE_NAME);
    let os = Some(StoreChoice::os());
    for (text, store) in [
        ("", None),
        ("[]", None),
        ("{}", None),
        (r#"{"version":1,"generation":0,"store":null,"na"#, None),
        (
            r#"{"version":2,"generation":0,"store":{"kind":"os"},"names":{}}"#,
            os,
        ),
        (
            r#"{"version":1,"generation":-1,"store":null,"names":{}}"#,
            None,
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let mut locked = Index::lock(root.path()).unwrap();
        assert!(locked.index().is_damaged, "{text}");
        assert_eq!(locked.index().store, store, "{text}");
        locked.change_store(noted(1), || Ok(())).unwrap();
        assert!(Index::read(root.path()).unwrap().is_whole());
        let old = std::fs::read_to_string(root.path().join("vars.json.damaged"));
        assert_eq!(old.unwrap(), text);
    }
}

#[test]
fn the_index_of_an_earlier_version_is_read() {
    let root = tempfile::tempdir().unwrap();
    let text = r#"{"version":1,"generation":3,"store":{"kind":"age","identity":"/i"},"names":{"A":{
        "created":"2024-02-03T04:05:06Z","updated":"2024-02-03T04:05:06Z","store":"age","policy":{},"is_going":true}}}"#;
    std::fs::write(root.path().join(FILE_NAME), text).unwrap();
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.is_damaged, index.is_whole()), (false, false));
    assert_eq!(index.secret_names().collect::<Vec<_>>(), [name("A")]);
    let refused = index.check_new(&name("a")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadArguments);
}

#[test]
fn an_unlisted_change_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let mut locked = Index::lock(root.path()).unwrap();
    let path = root.path().join(FILE_NAME);
    let error = locked
        .change_store(noted(1), || {
            // It cannot be replaced.
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir_all(path.join("in the way")).unwrap();
            Ok(())
        })
        .unwrap_err();
    assert!(
        error
            .message
            .starts_with("the store was changed, but the index could not be written: "),
        "{}",
        error.message
    );
    assert!(error.hint.contains("karyi var list"), "{}", error.hint);
}
