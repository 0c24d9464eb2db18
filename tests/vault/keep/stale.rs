//! What was checked before the lock is checked again when another process changed something meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use karyi::error::{ErrorCode, ToolError};
use karyi::vault::index::Index;
use karyi::vault::store::{Key, Kind, Store};

use super::races::{Call, Hooked, kept, other, vault};
use super::{Counting, name, terms, value};

/// Has another process keep something after the second list of names, which is the one that values are read by.
fn at_second_list(store: &Arc<Hooked>, work: impl FnOnce() + Send + 'static) {
    let again = Arc::clone(store);
    store.at(Call::List, move || again.at(Call::List, work));
}

fn code<T>(result: Result<T, ToolError>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

#[test]
fn a_note_shows_nothing_of_a_value_that_is_kept_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    let meanwhile = other(root.path(), &store);
    at_second_list(&store, move || {
        meanwhile.set("B", "value-late", &terms(None)).unwrap();
    });
    let said = terms(Some("see value-late"));
    let refused = own.set(&name("A"), &value("value-of-a"), &said);
    assert_eq!(code(refused), Some(ErrorCode::BadArguments));
    assert_eq!(kept(&own, "B").as_deref(), Some("value-late"));
    assert_eq!(kept(&own, "A"), None);
    // The same vault goes on with what it read then, and with what it keeps itself.
    own.set(&name("A"), &value("value-of-a"), &terms(Some("n")))
        .unwrap();
    let said = terms(Some("see value-of-a"));
    let refused = own.set(&name("C"), &value("value-of-c"), &said);
    assert_eq!(code(refused), Some(ErrorCode::BadArguments));
}

#[test]
fn a_new_value_stands_in_no_other_note() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    let shows = terms(Some("see value-late"));
    own.set(&name("A"), &value("value-of-a"), &shows).unwrap();
    let refused = own.set(&name("B"), &value("value-late"), &terms(None));
    let error = refused.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::BadArguments,
            "the note or policy of A holds the value of B"
        )
    );
    // Another program kept it: what is said of it can be changed, and the note.
    let key = Key::of(&name("B"));
    store.memory.set(&key, &value("value-late")).unwrap();
    own.set(&name("B"), &value("value-late"), &terms(Some("n")))
        .unwrap();
    own.set(&name("A"), &value("value-of-a"), &terms(Some("n")))
        .unwrap();
    // And what another process says while the value is checked.
    let meanwhile = other(root.path(), &store);
    store.at(Call::Get, move || {
        let shows = terms(Some("see value-next"));
        meanwhile.set("A", "value-of-a", &shows).unwrap();
    });
    let refused = own.set(&name("C"), &value("value-next"), &terms(None));
    assert_eq!(code(refused), Some(ErrorCode::BadArguments));
    assert_eq!(kept(&own, "C"), None);
}

#[test]
fn what_fits_alone_is_not_kept_beside_what_was_kept_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    let long = "x".repeat(60 << 10);
    for number in 0..67 {
        let key = Key::of(&name(&format!("LONG{number}")));
        store.memory.set(&key, &value(&long)).unwrap();
    }
    let meanwhile = other(root.path(), &store);
    store.at(Call::List, move || {
        meanwhile.set("TWO", &long, &terms(None)).unwrap();
    });
    let one = value(&"y".repeat(40 << 10));
    let refused = own.set(&name("ONE"), &one, &terms(None));
    assert_eq!(code(refused), Some(ErrorCode::BadValue));
    let index = Index::read(root.path()).unwrap();
    assert_eq!(index.kept().collect::<Vec<_>>(), [name("TWO")]);
}

#[test]
fn a_change_that_was_broken_off_is_no_reason_to_trust_an_earlier_look() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("A"), &value("value-of-a"), &terms(Some("n")))
        .unwrap();
    let break_off = || {
        let mut locked = Index::lock(root.path()).unwrap();
        let index = locked.index().clone();
        let failed = locked.around(index.clone(), index, || {
            Err::<(), _>(ToolError::new(ErrorCode::KeyringTimeout, "no answer"))
        });
        assert_eq!(code(failed), Some(ErrorCode::KeyringTimeout));
    };
    break_off();
    // What timed out is done after all, between the first look and the lock.
    let late = Arc::clone(&store);
    let again = Arc::clone(&store);
    // The lists of: agreement, room, values.
    store.at(Call::List, move || {
        at_second_list(&again, move || {
            let key = Key::of(&name("LATE"));
            late.memory.set(&key, &value("value-late")).unwrap();
        });
    });
    let said = terms(Some("see value-late"));
    let refused = own.set(&name("B"), &value("value-of-b"), &said);
    assert_eq!(code(refused), Some(ErrorCode::BadArguments));
    assert_eq!(kept(&own, "B"), None);
}

#[test]
fn a_store_whose_change_broke_off_is_read_once_for_each_check() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(Counting::default());
    let own = super::vault(root.path(), &store);
    for key in ["A", "B", "C"] {
        own.set(&name(key), &value(&format!("value-of-{key}")), &terms(None))
            .unwrap();
    }
    let path = root.path().join("vars.json");
    let mut index = Index::read(root.path()).unwrap();
    index.generation += 1;
    std::fs::write(&path, serde_json::to_vec(&index).unwrap()).unwrap();
    let mut said = terms(Some("a note"));
    said.policy.commands = Some((0..20).map(|n| format!("program-{n}")).collect());
    let before = store.compared.load(Ordering::SeqCst);
    own.set(&name("D"), &value("value-of-D"), &said).unwrap();
    // Before the lock and under it, one value each.
    assert_eq!(store.compared.load(Ordering::SeqCst) - before, 2 * 3);
}
