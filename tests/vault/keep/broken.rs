//! Changes that broke off where the index listed nothing else: a session looks for what they left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use karyi::error::{ErrorCode, ToolError};
use karyi::vault::index::{Chosen, Index};
use karyi::vault::keep::{State, Vault, rows as rows_of};
use karyi::vault::load::{Loader, Unlisted, Unopened};
use karyi::vault::session::{LackKind, Need, Secrets, Source};
use karyi::vault::store::{Key, Kind, Store};

use super::races::{Call, Hooked, is_locked, vault};
use super::{held, name, terms, value};

/// A new session with the store that the index names.
fn session(directory: &Path, store: &Arc<Hooked>) -> Secrets {
    let opened = Arc::clone(store);
    let open = Box::new(move || Ok(Arc::clone(&opened) as Arc<dyn Store>));
    let secrets = Secrets::default();
    secrets.attach(Arc::new(Loader::new(directory.to_owned(), open)));
    secrets.refresh(Need::Listed);
    secrets
}

/// Keeps or removes a value under A in a process that is killed at a call of the store.
fn kill_at(own: &Vault, store: &Arc<Hooked>, call: Call, work: impl Fn(&Vault)) {
    store.at(call, || panic!("killed"));
    assert!(catch_unwind(AssertUnwindSafe(|| work(own))).is_err());
}

fn set(own: &Vault) {
    let _ = own.set(&name("A"), &value("value-of-a"), &terms(Some("a note")));
}

fn remove(own: &Vault) {
    let _ = own.remove(&name("A"));
}

#[test]
fn what_the_first_change_left_is_masked_by_every_later_session() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    kill_at(&own, &store, Call::IsSet, set);
    for _ in 0..2 {
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
    }
    let index = Index::read(root.path()).unwrap();
    assert!(index.settled().is_some());
    assert_eq!((index.kept().count(), index.store), (0, Some(Chosen::os())));
    // A session with another store knows that it does not know it.
    let other = Unopened::new(root.path().to_owned(), Kind::Memory, Unlisted::Nothing);
    other.refresh(&Secrets::default(), Need::Listed);
    let lacks = other.lacks();
    let lacks: Vec<_> = lacks.iter().map(|l| (l.kind, l.names.clone())).collect();
    assert_eq!(lacks, [(LackKind::Elsewhere, vec![name("A")])]);
    // It is listed with what was said of it.
    assert_eq!(own.rows().unwrap()[0].state, State::Untracked);
    assert_eq!(own.repair().unwrap(), (vec![name("A")], vec![]));
    let listed = Index::read(root.path()).unwrap();
    let note = listed.get(&name("A")).unwrap().note.as_deref();
    assert_eq!(note, Some("a note"));
}

#[test]
fn a_rename_of_the_only_name_that_broke_off_loses_nothing() {
    for (call, left) in [
        (Call::Set, &["A"][..]),
        (Call::IsSet, &["A", "B"]),
        (Call::IsRemoved, &["B"]),
    ] {
        let root = tempfile::tempdir().unwrap();
        let store = Hooked::new(Kind::Os);
        let own = vault(root.path(), &store);
        set(&own);
        kill_at(&own, &store, call, |own| {
            own.rename(&name("A"), &name("B")).unwrap();
        });
        let rows = own.rows().unwrap();
        // Nor is it missing where the store is not asked.
        let index = Index::read(root.path()).unwrap();
        assert_eq!(rows_of(&index, Some(Kind::Os), None).len(), 2, "{call:?}");
        let untracked = rows.iter().filter(|row| row.state == State::Untracked);
        let untracked: Vec<&str> = untracked.map(|row| row.name.as_str()).collect();
        assert_eq!(
            (untracked, rows.len()),
            (left.to_vec(), left.len()),
            "{call:?}"
        );
        let secrets = session(root.path(), &store);
        assert_eq!(secrets.source_failure(), None, "{call:?}");
        assert_eq!(held(&secrets, left[0]).as_deref(), Some("value-of-a"));
        // Others can be kept, and a repair lists what there is with all that was said of it.
        own.set(&name("C"), &value("value-of-c"), &terms(None))
            .unwrap();
        let (added, removed) = own.repair().unwrap();
        assert_eq!((added.len(), removed.len()), (left.len(), 0), "{call:?}");
        let index = Index::read(root.path()).unwrap();
        for left in left {
            let note = index.get(&name(left)).unwrap().note.as_deref();
            assert_eq!(note, Some("a note"), "{call:?}");
        }
    }
}

/// The keyring dies before it says that the old name is gone.
#[test]
fn a_rename_of_the_only_name_that_nobody_heard_of_blocks_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    set(&own);
    let dying = Arc::clone(&store);
    store.at(Call::Remove, move || {
        let gone = ToolError::new(ErrorCode::KeyringUnavailable, "on purpose");
        *dying.is_lost.lock().unwrap() = Some(gone);
    });
    let failed = own.rename(&name("A"), &name("B"));
    assert_eq!(failed.unwrap_err().code, ErrorCode::KeyringUnavailable);
    let secrets = session(root.path(), &store);
    assert_eq!(secrets.source_failure(), None);
    assert_eq!(held(&secrets, "B").as_deref(), Some("value-of-a"));
    own.set(&name("C"), &value("value-of-c"), &terms(None))
        .unwrap();
    assert_eq!(own.repair().unwrap(), (vec![name("B")], vec![]));
}

#[test]
fn what_never_came_is_no_secret() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    kill_at(&own, &store, Call::Set, set);
    let secrets = session(root.path(), &store);
    assert_eq!(secrets.source_failure(), None);
    assert_eq!(own.rows().unwrap(), []);
    // The same command, or a repair, ends it.
    let before = std::fs::read(root.path().join("vars.json")).unwrap();
    assert_eq!(own.repair().unwrap(), (vec![], vec![]));
    assert!(Index::read(root.path()).unwrap().names.is_empty());
    std::fs::write(root.path().join("vars.json"), before).unwrap();
    set(&own);
    assert_eq!(own.rows().unwrap()[0].state, State::Kept);
}

#[test]
fn the_only_name_whose_removal_broke_off_is_masked() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let own = vault(root.path(), &store);
    set(&own);
    kill_at(&own, &store, Call::Remove, remove);
    for _ in 0..2 {
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
    }
}

#[test]
fn what_may_have_come_is_not_forgotten_when_nobody_heard_of_it() {
    // The keyring hangs, or is killed before it answers.
    for code in [ErrorCode::KeyringTimeout, ErrorCode::KeyringUnavailable] {
        let root = tempfile::tempdir().unwrap();
        let store = Hooked::new(Kind::Os);
        let own = vault(root.path(), &store);
        *store.is_lost.lock().unwrap() = Some(ToolError::new(code, "no answer"));
        let refused = own.set(&name("A"), &value("value-of-a"), &terms(None));
        assert_eq!(refused.unwrap_err().code, code);
        let index = Index::read(root.path()).unwrap();
        let is_open = index.settled().is_none();
        assert_eq!((index.store, is_open), (Some(Chosen::os()), true));
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
    }
    // Any other failure leaves no choice behind.
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let locked = ToolError::new(ErrorCode::KeyringLocked, "on purpose");
    *store.is_lost.lock().unwrap() = Some(locked);
    let own = vault(root.path(), &store);
    let refused = own.set(&name("B"), &value("value-of-b"), &terms(None));
    assert_eq!(refused.unwrap_err().code, ErrorCode::KeyringLocked);
    let index = Index::read(root.path()).unwrap();
    assert_eq!((index.store, index.names.len()), (None, 0));
}

#[test]
fn an_open_change_is_looked_into_though_no_name_is_listed() {
    let root = tempfile::tempdir().unwrap();
    let store = Hooked::new(Kind::Os);
    let open = r#"{"version":1,"generation":3,"store":{"kind":"os"},"names":{}}"#;
    let path = root.path().join("vars.json");
    std::fs::write(&path, open).unwrap();
    let key = Key::of(&name("A"));
    store.memory.set(&key, &value("value-of-a")).unwrap();
    for _ in 0..2 {
        let secrets = session(root.path(), &store);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-of-a"));
        // It is read once: who changes something makes another generation.
        store.at(Call::List, || panic!("read again"));
        secrets.refresh(Need::Listed);
        store.forget_hooks();
    }
    assert_eq!(Index::read(root.path()).unwrap().settled(), None);
    store.memory.remove(&key).unwrap();
    session(root.path(), &store);
    assert_eq!(Index::read(root.path()).unwrap().settled(), Some(4));
}

#[test]
fn what_may_be_done_yet_is_neither_settled_nor_changed() {
    let root = tempfile::tempdir().unwrap();
    let (old, store) = (Hooked::new(Kind::Age), Hooked::new(Kind::Os));
    let own = vault(root.path(), &store);
    let timeout = || ToolError::new(ErrorCode::KeyringTimeout, "no answer");
    for is_moved in [false, true] {
        set(&vault(root.path(), if is_moved { &old } else { &store }));
        *store.is_lost.lock().unwrap() = Some(timeout());
        let refused = match is_moved {
            false => own.set(&name("A"), &value("value-next"), &terms(None)),
            true => vault(root.path(), &old).migrate(&own).map(drop),
        };
        assert_eq!(refused.unwrap_err().code, ErrorCode::KeyringTimeout);
        assert!(is_locked(root.path()));
        let secrets = session(root.path(), &store);
        let open = Index::read(root.path()).unwrap();
        assert_eq!(open.settled(), None);
        // It is done once more, at last, and the next look sees it.
        let key = Key::of(&name("A"));
        store.memory.set(&key, &value("value-late")).unwrap();
        secrets.refresh(Need::Listed);
        assert_eq!(held(&secrets, "A").as_deref(), Some("value-late"));
        for store in [&store, &old] {
            store.held.lock().unwrap().take();
        }
        secrets.refresh(Need::Listed);
        let after = Index::read(root.path()).unwrap();
        assert_eq!(after.settled(), Some(open.generation + 1));
        store.memory.remove(&key).unwrap();
        std::fs::remove_file(root.path().join("vars.json")).unwrap();
    }
}
