//! What a session has of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use karyi::error::ErrorCode;
use karyi::vault::index::Index;
use karyi::vault::policy::Policy;
use karyi::vault::session::{Need, Origin};
use karyi::vault::store::{Key, Store};
use karyi::vault::vault::SecretDetails;

use super::{CountingStore, held, name, session, terms, value, vault};

#[test]
fn a_session_follows_the_store() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    let secrets = session(root.path(), &store);
    secrets.refresh(Need::Listed);
    assert_eq!(store.opened.load(Ordering::SeqCst), 0, "nothing is listed");

    let policy = Policy {
        write: true,
        ..Policy::default()
    };
    let said = SecretDetails { note: None, policy };
    vault.set(&name("A"), &value("value-one"), &said).unwrap();
    vault
        .set(&name("B"), &value("value-two"), &terms(None))
        .unwrap();
    secrets.refresh(Need::Listed);
    assert_eq!(held(&secrets, "A"), Some("value-one".into()));
    assert!(secrets.policy(&name("A")).unwrap().write);
    assert_eq!(secrets.origin(&name("B")), Some(Origin::Stored));

    let read = store.read();
    secrets.refresh(Need::Listed);
    assert_eq!(store.read(), read, "the index is as it was");

    vault
        .set(&name("A"), &value("value-three"), &terms(None))
        .unwrap();
    vault.remove(&name("B")).unwrap();
    secrets.refresh(Need::Listed);
    assert_eq!(
        (held(&secrets, "A"), held(&secrets, "B")),
        (Some("value-three".into()), None)
    );
    assert_eq!(store.opened.load(Ordering::SeqCst), 1);
}

#[test]
fn a_policy_is_read_once_for_a_value() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    vault
        .set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    let secrets = session(root.path(), &store);
    secrets.refresh(Need::Listed);
    let policy = Policy {
        write: true,
        ..Policy::default()
    };
    vault
        .set(
            &name("A"),
            &value("value-one"),
            &SecretDetails { note: None, policy },
        )
        .unwrap();
    secrets.refresh(Need::Listed);
    assert!(!secrets.policy(&name("A")).unwrap().write);
}

#[test]
fn what_was_given_goes_before_what_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    vault(root.path(), &store)
        .set(&name("A"), &value("value-kept"), &terms(None))
        .unwrap();
    let secrets = session(root.path(), &store);
    let policy = Policy::unrestricted();
    secrets
        .insert_with(name("A"), value("value-given"), policy, Origin::Given)
        .unwrap();
    secrets.refresh(Need::Listed);
    assert_eq!(held(&secrets, "A"), Some("value-given".into()));
}

#[test]
fn a_store_that_fails_is_asked_again_when_a_name_needs_it() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    vault(root.path(), &store)
        .set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    let secrets = session(root.path(), &store);
    store.fail(Some(ErrorCode::KeyringLocked));
    secrets.refresh(Need::Listed);
    assert_eq!(
        secrets.source_failure().unwrap().code,
        ErrorCode::KeyringLocked
    );
    store.fail(None);
    secrets.refresh(Need::Listed);
    assert_eq!(
        held(&secrets, "A"),
        None,
        "nothing changed, so it is left alone"
    );
    secrets.refresh(Need::Used);
    assert_eq!(
        (held(&secrets, "A"), secrets.source_failure()),
        (Some("value-one".into()), None)
    );
}

#[test]
fn one_damaged_value_hides_no_other() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    vault
        .set(&name("B"), &value("value-two"), &terms(None))
        .unwrap();
    store
        .memory
        .set(&Key::of(&name("A")), &value("karyi-secret 1 {\nx"))
        .unwrap();
    let secrets = session(root.path(), &store);
    secrets.refresh(Need::Listed);
    assert_eq!(held(&secrets, "B"), Some("value-two".into()));
    assert_eq!(secrets.source_failure().unwrap().code, ErrorCode::BadVault);
}

/// The date of the last use is for people to know; nobody waits for it.
#[test]
fn noting_a_use_waits_for_nobody() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    vault(root.path(), &store)
        .set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    let note = || Index::record_use(root.path(), &[name("A")], jiff::Timestamp::UNIX_EPOCH);
    let before = Index::read(root.path()).unwrap();
    let another = Index::lock(root.path()).unwrap();
    assert_eq!(note(), Ok(()));
    assert_eq!(Index::read(root.path()).unwrap(), before);
    drop(another);
    assert_eq!(note(), Ok(()));
    let used = Index::read(root.path()).unwrap();
    let used = used.get(&name("A")).unwrap().used;
    assert_eq!(used, Some(jiff::Timestamp::UNIX_EPOCH));
}
