//! Migrations that break off are finished by the next one, and values that runs could not hold are not kept.

use std::sync::Arc;

use karyi::error::ErrorCode;
use karyi::vault::index::Index;
use karyi::vault::policy::Policy;
use karyi::vault::store::{Key, Kind, Store, record};

use super::races::{Hooked, kept, vault};
use super::{name, terms, value};

#[test]
fn what_was_copied_before_is_moved_whatever_it_was_written_like() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (Hooked::new(Kind::Os), Hooked::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    // Another program put it there, without a policy; the copy has one.
    let raw = value("value-raw");
    let copy = record::join(&raw, &Policy::default()).unwrap();
    from.memory.set(&Key::of(&name("RAW")), &raw).unwrap();
    to.memory.set(&Key::of(&name("RAW")), &copy).unwrap();
    assert_eq!(old.migrate(&new).unwrap(), [name("RAW")]);
    assert_eq!(kept(&new, "RAW").as_deref(), Some("value-raw"));
    assert_eq!(from.list().unwrap(), []);
}

#[test]
fn names_that_differ_only_in_case_do_not_come_together() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (Hooked::new(Kind::Os), Hooked::new(Kind::Age));
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
    let (from, to) = (Hooked::new(Kind::Os), Hooked::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    old.set(&name("A"), &value("value-one"), &terms(None))
        .unwrap();
    *from.is_stuck.lock().unwrap() = true;
    let error = old.migrate(&new).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str(), error.hint.as_str()),
        (
            ErrorCode::KeyringLocked,
            "everything is in the store age now, and that one is in use; copies are left in the store os: on purpose",
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

/// Puts as many values as a run can hold into a store, but for 16 KiB.
fn fill(store: &Hooked) {
    let long = value(&"x".repeat(60 << 10));
    for number in 0..68 {
        let key = Key::of(&name(&format!("LONG{number}")));
        store.memory.set(&key, &long).unwrap();
    }
}

#[test]
fn what_a_run_could_not_hold_is_not_kept() {
    for kind in [Kind::Age, Kind::Os] {
        is_not_kept(kind);
    }
}

fn is_not_kept(kind: Kind) {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(kind);
    let own = vault(root.path(), &store);
    fill(&store);
    let fits = value(&"y".repeat(16 << 10));
    own.set(&name("LAST"), &fits, &terms(None)).unwrap();
    let refused = own.set(&name("MORE"), &value("one-more-value"), &terms(None));
    assert_eq!(refused.unwrap_err().code, ErrorCode::BadValue);
    // A shorter one in place of a longer one is fine.
    let shorter = value("shorter-value");
    own.set(&name("LAST"), &shorter, &terms(None)).unwrap();
    let again = Arc::clone(&store);
    own.set(&name("MORE"), &value("one-more-value"), &terms(None))
        .unwrap();
    assert_eq!(again.list().unwrap().len(), 70);
}

#[test]
fn what_a_run_could_not_hold_together_is_not_moved_together() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (Hooked::new(Kind::Os), Hooked::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    fill(&from);
    let there = value(&"y".repeat((16 << 10) + 1));
    to.memory.set(&Key::of(&name("THERE")), &there).unwrap();
    assert_eq!(old.migrate(&new).unwrap_err().code, ErrorCode::BadValue);
    assert_eq!(from.list().unwrap().len(), 68);
    assert_eq!(to.list().unwrap(), [name("THERE")]);
    to.memory.remove(&Key::of(&name("THERE"))).unwrap();
    assert_eq!(old.migrate(&new).unwrap().len(), 68);
}
