//! Notes and policies, which are listed, show no value.

use karyi::error::ErrorCode;
use karyi::vault::store::{Key, Kind, Store};

use super::races::{HookedStore, kept, vault};
use super::{name, terms, value};

#[test]
fn a_note_shows_no_value_that_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("B"), &value("value-of-b"), &terms(None))
        .unwrap();
    for shown in ["see value-of-a", "see value-of-b", "see dmFsdWUtb2YtYg=="] {
        let said = terms(Some(shown));
        let refused = own.set(&name("A"), &value("value-of-a"), &said);
        assert_eq!(refused.unwrap_err().code, ErrorCode::BadArguments);
        assert_eq!(kept(&own, "A"), None);
    }
}

#[test]
fn a_new_value_stands_in_no_other_note() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
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
    own.set(&name("A"), &value("value-of-a"), &terms(Some("n")))
        .unwrap();
    own.set(&name("B"), &value("value-late"), &terms(Some("n")))
        .unwrap();
    assert!(store.get(&Key::of(&name("B"))).unwrap().is_some());
}
