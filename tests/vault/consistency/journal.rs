//! The key of the undo journal is made and moved like a value.

use std::path::Path;
use std::sync::{Arc, Mutex};

use karyi::error::ToolError;
use karyi::vault::index::{Index, StoreChoice};
use karyi::vault::session::{Need, Secrets};
use karyi::vault::store::age::{AgeStore, GetKey};
use karyi::vault::store::journal_key::JournalKey;
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::sync::StoreSync;
use karyi::vault::vault;

use super::races::{Call, HookedStore, is_locked, vault};
use super::{CountingStore, name, terms, value};

/// Returns the text of the key that a store has.
fn key_in(store: &HookedStore) -> Option<String> {
    let text = store.memory.get(&Key::journal()).unwrap();
    text.map(|text| text.expose().to_owned())
}

/// Returns the key of a store, made at the first time.
pub fn journal_key(
    directory: &Path,
    store: &Arc<dyn Store>,
) -> Result<Option<JournalKey>, ToolError> {
    let chosen = StoreChoice {
        kind: store.kind(),
        identity: None,
    };
    vault::journal_key(directory, chosen, store)
}

fn dyn_store(store: &Arc<HookedStore>) -> Arc<dyn Store> {
    Arc::clone(store) as Arc<dyn Store>
}

#[test]
fn a_new_key_is_made_under_the_lock_and_masked_by_every_session() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    // A session that looked before the key was made.
    let opened = dyn_store(&store);
    let open = Box::new(move || Ok(Arc::clone(&opened)));
    let secrets = Secrets::default();
    secrets.attach(Arc::new(StoreSync::new(root.path().to_owned(), open)));
    secrets.refresh(Need::Listed);
    let before = Index::read(root.path()).unwrap();
    let directory = root.path().to_owned();
    store.at(Call::Set, move || {
        assert!(is_locked(&directory));
        assert!(!Index::read(&directory).unwrap().is_whole());
    });
    let made = journal_key(root.path(), &dyn_store(&store)).unwrap();
    assert!(made.is_some());
    let after = Index::read(root.path()).unwrap();
    assert_eq!(
        (after.generation, after.names),
        (before.generation + 2, before.names)
    );
    let text = key_in(&store).unwrap();
    assert!(!secrets.occur_in(text.as_bytes()));
    secrets.refresh(Need::Listed);
    assert!(secrets.occur_in(text.as_bytes()));
    // From now on it is there.
    store.at(Call::Set, || panic!("made again"));
    assert_eq!(journal_key(root.path(), &dyn_store(&store)).unwrap(), made);
}

#[test]
fn a_store_that_is_moved_away_gets_no_new_key() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    old.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    // A run that began before makes its key in the middle of the migration.
    let (run, directory) = (dyn_store(&from), root.path().to_owned());
    let waiting = Arc::new(Mutex::new(None));
    let place = Arc::clone(&waiting);
    to.at(Call::IsSet, move || {
        let make = move || journal_key(&directory, &run).unwrap().is_some();
        *place.lock().unwrap() = Some(std::thread::spawn(make));
    });
    assert_eq!(old.migrate(&new).unwrap(), [name("A")]);
    let thread = waiting.lock().unwrap().take().unwrap();
    assert!(!thread.join().unwrap(), "made in the store of before");
    assert_eq!(key_in(&from), None);
    assert!(
        journal_key(root.path(), &dyn_store(&to)).unwrap().is_some(),
        "none in the store in use"
    );
}

#[test]
fn the_key_of_a_store_that_is_not_in_use_goes_with_its_values() {
    let root = tempfile::tempdir().unwrap();
    let (used, left) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (own, leftover) = (vault(root.path(), &used), vault(root.path(), &left));
    own.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    leftover
        .set(&name("B"), &value("value-of-b"), &terms(None))
        .unwrap();
    for store in [&used, &left] {
        assert!(
            journal_key(root.path(), &dyn_store(store))
                .unwrap()
                .is_some(),
            "{}",
            store.kind()
        );
    }
    let in_use = key_in(&used);
    assert_ne!(in_use, key_in(&left));
    assert_eq!(leftover.migrate(&own).unwrap(), [name("B")]);
    assert_eq!((key_in(&used), key_in(&left)), (in_use, None));
}

#[test]
fn a_new_key_is_asked_for_once_before_it_is_made_and_once_after() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let made = journal_key(root.path(), &(Arc::clone(&store) as Arc<dyn Store>));
    assert!(made.unwrap().is_some());
    assert_eq!(store.read(), 2);
}

#[test]
fn no_passphrase_is_asked_for_a_file_that_gets_no_key() {
    let root = tempfile::tempdir().unwrap();
    let own = vault(root.path(), &HookedStore::new(Kind::Os));
    own.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    let file = root.path().join("vault.age");
    let key: GetKey = Arc::new(|_| panic!("asked"));
    let store: Arc<dyn Store> = Arc::new(AgeStore::new(file.clone(), key));
    assert!(journal_key(root.path(), &store).unwrap().is_none());
    assert!(!file.exists());
}
