//! Changes that broke off: the next one who looks makes the index say what the store holds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use karyi::error::{ErrorCode, ToolError};
use karyi::vault::index::{Index, StoreChoice};
use karyi::vault::session::{Need, Secrets};
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::sync::StoreSync;
use karyi::vault::vault::{SecretState, Vault};

use super::races::{Call, HookedStore, vault};
use super::{held, name, terms, value};

/// A new session with the store that the index names.
fn session(directory: &Path, store: &Arc<HookedStore>) -> Secrets {
    let opened = Arc::clone(store);
    let open = Box::new(move || Ok(Arc::clone(&opened) as Arc<dyn Store>));
    let secrets = Secrets::default();
    secrets.attach(Arc::new(StoreSync::new(directory.to_owned(), open)));
    secrets.refresh(Need::Listed);
    // A program that another test starts has the lock for a moment.
    while !Index::read(directory).unwrap().is_whole() {
        secrets.refresh(Need::Listed);
    }
    secrets
}

/// Does something in a process that is killed at a call of the store.
fn kill_at(own: &Vault, store: &Arc<HookedStore>, call: Call, work: impl Fn(&Vault)) {
    store.at(call, || panic!("killed"));
    assert!(catch_unwind(AssertUnwindSafe(|| work(own))).is_err());
}

fn set(own: &Vault) {
    let _ = own.set(&name("A"), &value("value-of-a"), &terms(Some("a note")));
}

fn remove(own: &Vault) {
    let _ = own.remove(&name("A"));
}

/// Returns what the index lists, with notes.
fn listed(directory: &Path) -> Vec<(String, Option<String>)> {
    let index = Index::read(directory).unwrap();
    let names = index.names.into_iter();
    names.map(|(name, listed)| (name, listed.note)).collect()
}

#[test]
fn the_first_value_is_listed_by_the_next_session() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    kill_at(&own, &store, Call::IsSet, set);
    assert_eq!(listed(root.path()), []);
    for _ in 0..2 {
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
        let index = Index::read(root.path()).unwrap();
        assert_eq!(
            (index.is_whole(), index.store),
            (true, Some(StoreChoice::os()))
        );
        let note = Some("a note".to_owned());
        assert_eq!(listed(root.path()), [("A".to_owned(), note)]);
    }
    assert_eq!(own.statuses().unwrap()[0].state, SecretState::Kept);
}

#[test]
fn a_rename_of_the_only_name_that_broke_off_loses_nothing() {
    for (call, left) in [
        (Call::Set, &["A"][..]),
        (Call::IsSet, &["A", "B"]),
        (Call::IsRemoved, &["B"]),
    ] {
        let root = tempfile::tempdir().unwrap();
        let store = HookedStore::new(Kind::Os);
        let own = vault(root.path(), &store);
        set(&own);
        kill_at(&own, &store, call, |own| {
            own.rename(&name("A"), &name("B")).unwrap();
        });
        let secrets = session(root.path(), &store);
        assert_eq!(secrets.source_failure(), None, "{call:?}");
        assert_eq!(held(&secrets, left[0]).as_deref(), Some("value-of-a"));
        let note = Some("a note".to_owned());
        let expected: Vec<_> = left
            .iter()
            .map(|name| ((*name).to_owned(), note.clone()))
            .collect();
        assert_eq!(listed(root.path()), expected, "{call:?}");
    }
}

#[test]
fn whoever_changes_something_next_mends_the_index() {
    for call in [Call::Set, Call::IsSet] {
        let root = tempfile::tempdir().unwrap();
        let store = HookedStore::new(Kind::Os);
        let own = vault(root.path(), &store);
        kill_at(&own, &store, call, set);
        own.set(&name("C"), &value("value-of-c"), &terms(None))
            .unwrap();
        let names: Vec<_> = listed(root.path())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let expected = match call {
            Call::IsSet => vec!["A", "C"],
            _ => vec!["C"],
        };
        assert_eq!(names, expected);
        assert!(Index::read(root.path()).unwrap().is_whole());
    }
}

#[test]
fn what_never_came_is_no_secret() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    kill_at(&own, &store, Call::Set, set);
    let secrets = session(root.path(), &store);
    assert_eq!(secrets.source_failure(), None);
    assert_eq!(own.statuses().unwrap(), []);
    set(&own);
    assert_eq!(own.statuses().unwrap()[0].state, SecretState::Kept);
}

#[test]
fn a_removal_of_the_only_name_that_broke_off_blocks_nothing() {
    for (call, is_there) in [(Call::Remove, true), (Call::IsRemoved, false)] {
        let root = tempfile::tempdir().unwrap();
        let store = HookedStore::new(Kind::Os);
        let own = vault(root.path(), &store);
        set(&own);
        kill_at(&own, &store, call, remove);
        for _ in 0..2 {
            let secrets = session(root.path(), &store);
            assert_eq!(secrets.source_failure(), None);
            assert_eq!(held(&secrets, "A").is_some(), is_there);
            assert_eq!(listed(root.path()).len(), usize::from(is_there));
        }
    }
}

#[test]
fn what_may_have_come_is_not_forgotten_when_nobody_heard_of_it() {
    // The keyring hangs, or is killed before it answers.
    for code in [ErrorCode::KeyringTimeout, ErrorCode::KeyringUnavailable] {
        let root = tempfile::tempdir().unwrap();
        let store = HookedStore::new(Kind::Os);
        let own = vault(root.path(), &store);
        *store.is_damaged.lock().unwrap() = Some(ToolError::new(code, "no answer"));
        let refused = own.set(&name("A"), &value("value-of-a"), &terms(None));
        assert_eq!(refused.unwrap_err().code, code);
        let index = Index::read(root.path()).unwrap();
        assert_eq!(
            (index.is_whole(), index.store),
            (false, Some(StoreChoice::os()))
        );
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
        assert_eq!(listed(root.path()).len(), 1);
    }
    // Any other failure leaves no choice behind.
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let locked = ToolError::new(ErrorCode::KeyringLocked, "on purpose");
    *store.is_damaged.lock().unwrap() = Some(locked);
    let own = vault(root.path(), &store);
    let refused = own.set(&name("B"), &value("value-of-b"), &terms(None));
    assert_eq!(refused.unwrap_err().code, ErrorCode::KeyringLocked);
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.store, index.names.len()), (None, 0));
}

#[test]
fn an_open_change_of_an_earlier_version_is_looked_into() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let open = r#"{"version":1,"generation":3,"store":{"kind":"os"},"names":{}}"#;
    std::fs::write(root.path().join("vars.json"), open).unwrap();
    let key = Key::of(&name("A"));
    store.memory.set(&key, &value("value-of-a")).unwrap();
    let secrets = session(root.path(), &store);
    assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
    assert_eq!(listed(root.path()).len(), 1);
    // It is read once.
    store.at(Call::List, || panic!("read again"));
    secrets.refresh(Need::Listed);
}
