//! Migrations that break off are finished by the next one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karyi::error::ErrorCode;
use karyi::vault::index::{Index, StoreChoice};
use karyi::vault::policy::Policy;
use karyi::vault::store::record::{self, Facts};
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::vault::Vault;

use super::journal::journal_key;
use super::races::{Call, HookedStore, kept, vault};
use super::{name, terms, value};

#[test]
fn what_was_copied_before_is_moved_whatever_it_was_written_like() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    // Another program put it there, without a policy; the copy has one.
    let raw = value("value-raw");
    let copy = record::join(&raw, &Policy::default(), &Facts::default()).unwrap();
    from.memory.set(&Key::of(&name("RAW")), &raw).unwrap();
    to.memory.set(&Key::of(&name("RAW")), &copy).unwrap();
    assert_eq!(old.migrate(&new).unwrap(), [name("RAW")]);
    assert_eq!(kept(&new, "RAW").as_deref(), Some("value-raw"));
    assert_eq!(from.list().unwrap(), []);
}

#[test]
fn names_that_differ_only_in_case_do_not_come_together() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    old.set(&name("Token"), &value("value-one"), &terms(None))
        .unwrap();
    let there = Key::of(&name("TOKEN"));
    to.memory.set(&there, &value("value-two")).unwrap();
    assert_eq!(old.migrate(&new).unwrap_err().code, ErrorCode::BadArguments);
    assert_eq!(kept(&old, "Token").as_deref(), Some("value-one"));
    assert_eq!(to.list().unwrap(), [name("TOKEN")]);
}

#[test]
fn copies_that_are_left_are_told_and_removed_by_the_next_one() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    old.set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    *from.is_stuck.lock().unwrap() = true;
    let error = old.migrate(&new).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str(), error.hint.as_str()),
        (
            ErrorCode::KeyringLocked,
            "all secrets are in the store age now, which is in use; copies remain in the store os: on purpose",
            "remove them with `karyi var migrate --vault os --to age`"
        )
    );
    let index = Index::read(root.path()).unwrap();
    assert_eq!(index.store.unwrap().kind, Kind::Age);
    assert_eq!(kept(&new, "A").as_deref(), Some("value-one"));
    *from.is_stuck.lock().unwrap() = false;
    assert_eq!(old.migrate(&new).unwrap(), [name("A")]);
    assert_eq!(from.list().unwrap(), []);
    assert_eq!(kept(&new, "A").as_deref(), Some("value-one"));
}

/// Has a migration end before it removes anything, as one that is killed.
fn kill_at_removal(old: &Vault, new: &Vault, from: &HookedStore) {
    from.at(Call::Remove, || panic!("killed, on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(|| old.migrate(new))).is_err());
}

#[test]
fn a_migration_that_was_killed_is_ended_by_the_next_one() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    for key in ["A", "B", "C"] {
        let text = value(&format!("value-of-{key}"));
        old.set(&name(key), &text, &terms(None)).unwrap();
    }
    let store = Arc::clone(&from) as Arc<dyn Store>;
    assert!(journal_key(root.path(), &store).unwrap().is_some());
    // Before the switch nothing has changed of what is in use.
    to.at(Call::Set, || panic!("killed, on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(|| old.migrate(&new))).is_err());
    assert_eq!(
        Index::read(root.path()).unwrap().store,
        Some(StoreChoice::os())
    );
    kill_at_removal(&old, &new, &from);
    assert_eq!(from.list().unwrap().len(), 3);
    let used = Index::read(root.path()).unwrap().store.unwrap();
    assert_eq!(used.kind, Kind::Age);
    // Since then one has changed: which is the right one nobody knows.
    new.set(&name("B"), &value("value-since"), &terms(None))
        .unwrap();
    let refused = old.migrate(&new).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadArguments);
    assert_eq!(kept(&old, "B").as_deref(), Some("value-of-B"));
    assert!(from.memory.remove(&Key::of(&name("B"))).unwrap());
    assert_eq!(old.migrate(&new).unwrap(), [name("A"), name("C")]);
    assert_eq!(from.list().unwrap(), []);
    assert!(from.memory.get(&Key::journal()).unwrap().is_none());
    assert!(to.memory.get(&Key::journal()).unwrap().is_some());
    assert_eq!(kept(&new, "A").as_deref(), Some("value-of-A"));
    assert_eq!(kept(&new, "B").as_deref(), Some("value-since"));
    let index = Index::read(root.path()).unwrap();
    assert!(index.is_whole());
    assert_eq!(index.secret_names().collect::<Vec<_>>(), to.list().unwrap());
}

#[test]
fn what_opens_the_old_store_is_known_until_nothing_is_left_there() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Age), HookedStore::new(Kind::Os));
    let chosen = StoreChoice {
        kind: Kind::Age,
        identity: Some(PathBuf::from("/home/u/identity")),
    };
    let store = Arc::clone(&from) as Arc<dyn Store>;
    let old = Vault::new(root.path().to_owned(), chosen.clone(), store);
    let new = vault(root.path(), &to);
    old.set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    kill_at_removal(&old, &new, &from);
    let used = || Index::read(root.path()).unwrap().store;
    let between = StoreChoice {
        kind: Kind::Os,
        ..chosen
    };
    assert_eq!(used(), Some(between));
    assert_eq!(old.migrate(&new).unwrap(), [name("A")]);
    assert_eq!(used(), Some(StoreChoice::os()));
    old.set(&name("B"), &value("value-two"), &terms(None))
        .unwrap();
    old.migrate(&new).unwrap();
    assert_eq!(used(), Some(StoreChoice::os()));
}

fn key_in(store: &HookedStore) -> Option<String> {
    let text = store.memory.get(&Key::journal()).unwrap();
    text.map(|text| text.expose().to_owned())
}

/// Values in two stores, each with a key of the undo journal; the second one is not in use.
fn two_stores(directory: &Path) -> [Arc<HookedStore>; 2] {
    let stores = [HookedStore::new(Kind::Os), HookedStore::new(Kind::Age)];
    for (key, store) in ["A", "B"].into_iter().zip(&stores) {
        let text = value(&format!("value-of-{key}"));
        let own = vault(directory, store);
        own.set(&name(key), &text, &terms(None)).unwrap();
        let store = Arc::clone(store) as Arc<dyn Store>;
        assert!(journal_key(directory, &store).unwrap().is_some());
    }
    stores
}

#[test]
fn the_key_that_a_killed_migration_left_in_a_store_not_in_use_goes_with_the_rest() {
    let root = tempfile::tempdir().unwrap();
    let [used, left] = two_stores(root.path());
    let (own, leftover) = (vault(root.path(), &used), vault(root.path(), &left));
    let in_use = key_in(&used);
    kill_at_removal(&leftover, &own, &left);
    assert!(key_in(&left).is_some());
    assert_eq!(leftover.migrate(&own).unwrap(), [name("B")]);
    assert_eq!((key_in(&used), key_in(&left)), (in_use, None));
    assert_eq!(leftover.migrate(&own).unwrap(), []);
}

#[test]
fn a_key_that_the_store_in_use_has_not_is_moved_there() {
    let root = tempfile::tempdir().unwrap();
    let [used, left] = two_stores(root.path());
    let (own, leftover) = (vault(root.path(), &used), vault(root.path(), &left));
    kill_at_removal(&leftover, &own, &left);
    used.memory.remove(&Key::journal()).unwrap();
    let key = key_in(&left);
    assert_eq!(leftover.migrate(&own).unwrap(), [name("B")]);
    assert_eq!((key_in(&used), key_in(&left)), (key, None));
}

#[test]
fn a_key_that_comes_back_changed_is_not_removed() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    let store = Arc::clone(&from) as Arc<dyn Store>;
    assert!(journal_key(root.path(), &store).unwrap().is_some());
    let key = key_in(&from);
    let there = Arc::clone(&to);
    to.at(Call::IsSet, move || {
        let other = value("another-key");
        there.memory.set(&Key::journal(), &other).unwrap();
    });
    let error = old.migrate(&new).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::BadVault,
            "the store age returns a changed key of the undo journal"
        )
    );
    assert_eq!(key_in(&from), key);
    assert_ne!(
        Index::read(root.path())
            .unwrap()
            .store
            .map(|used| used.kind),
        Some(Kind::Age)
    );
}
