//! While others wait for the index nobody is asked for anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use karyi::error::{ErrorCode, ToolError};
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::index::{Chosen, Index};
use karyi::vault::keep::{Earlier, Vault, Wanted, journal_key};
use karyi::vault::store::age::{AgeKey, AgeStore, GetKey};
use karyi::vault::store::{Key, Kind, Store};

use super::races::{Hooked, is_locked};
use super::{name, terms, value};

/// A store that may open a dialogue at every call, and another way to it that never does.
struct Asking {
    directory: PathBuf,
    quiet: Arc<Hooked>,
}

impl Asking {
    fn ask(&self) -> &Hooked {
        // Whoever holds it waits in vain.
        let free = Index::lock(&self.directory);
        assert!(free.is_ok(), "asked under the lock");
        &self.quiet
    }
}

impl Store for Asking {
    fn kind(&self) -> Kind {
        self.quiet.kind()
    }
    fn quiet(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::clone(&self.quiet) as Arc<dyn Store>)
    }
    fn probe(&self) -> Result<(), ToolError> {
        self.ask().probe()
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.ask().list()
    }
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        self.ask().get(key)
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.ask().set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.ask().remove(key)
    }
}

fn chosen(kind: Kind) -> Chosen {
    Chosen {
        kind,
        identity: None,
    }
}

fn asking(directory: &Path, kind: Kind) -> (Arc<dyn Store>, Vault) {
    let store: Arc<dyn Store> = Arc::new(Asking {
        directory: directory.to_owned(),
        quiet: Hooked::new(kind),
    });
    let vault = Vault::new(directory.to_owned(), chosen(kind), Arc::clone(&store));
    (store, vault)
}

#[test]
fn no_dialogue_stands_while_the_index_is_locked() {
    let root = tempfile::tempdir().unwrap();
    let (store, own) = asking(root.path(), Kind::Os);
    let (_, to) = asking(root.path(), Kind::Age);
    let note = terms(Some("n"));
    own.set(&name("A"), &value("value-of-a"), &note).unwrap();
    own.set(&name("B"), &value("value-of-b"), &note).unwrap();
    own.rename(&name("B"), &name("C")).unwrap();
    assert!(own.remove(&name("C")).unwrap());
    assert_eq!(own.remove_copy(&name("A")).unwrap(), None);
    fs::remove_file(root.path().join("vars.json")).unwrap();
    assert_eq!(own.repair().unwrap(), (vec![name("A")], vec![]));
    assert!(
        journal_key(root.path(), &store).unwrap().is_some(),
        "no key was made"
    );
    assert_eq!(own.migrate(&to).unwrap(), [name("A")]);
    // As if that had been killed.
    let left = to.store().get(&Key::of(&name("A"))).unwrap().unwrap();
    store.set(&Key::of(&name("A")), &left).unwrap();
    assert_eq!(to.finish(&own).unwrap().removed, [name("A")]);
}

/// Makes keys of passphrases as somebody types them, and counts.
fn typed(passphrases: &'static [&str], count: &Arc<AtomicUsize>) -> GetKey {
    let count = Arc::clone(count);
    Arc::new(move |_| {
        let at = count.fetch_add(1, Ordering::SeqCst);
        Ok(AgeKey::with_work(&value(passphrases[at]), 4).typed())
    })
}

#[test]
fn a_file_with_another_passphrase_is_refused_under_the_lock_and_asked_for_by_the_next_one() {
    let root = tempfile::tempdir().unwrap();
    let (file, foreign) = (root.path().join("vault.age"), root.path().join("other"));
    let count = Arc::new(AtomicUsize::new(0));
    let others = typed(&["two two two"], &Arc::default());
    let others = AgeStore::new(foreign.clone(), others);
    others
        .set(&Key::of(&name("THEIRS")), &value("value-theirs"))
        .unwrap();
    let store = AgeStore::new(file.clone(), typed(&["one one one", "two two two"], &count));
    let own = Vault::new(root.path().to_owned(), chosen(Kind::Age), Arc::new(store));
    own.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // It takes the place of the file at the last moment.
    let asked = AtomicUsize::new(0);
    let make = |_: &Earlier| {
        if asked.fetch_add(1, Ordering::SeqCst) == 1 {
            assert!(is_locked(root.path()));
            fs::rename(&foreign, &file).unwrap();
        }
        Ok(Some(Wanted {
            value: value("value-next"),
            terms: terms(None),
        }))
    };
    let error = own.update(&name("A"), &make).unwrap_err();
    assert_eq!(
        (error.code, error.hint.as_str()),
        (ErrorCode::VaultBusy, "run it again")
    );
    assert_eq!(count.load(Ordering::SeqCst), 1);
    fs::remove_file(root.path().join("vars.json")).unwrap();
    own.set(&name("A"), &value("value-next"), &terms(None))
        .unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let names = own.store().list().unwrap();
    assert_eq!(names, [name("A"), name("THEIRS")]);
    assert!(Index::read(root.path()).unwrap().get(&name("A")).is_some());
}

#[test]
fn a_store_that_is_left_has_no_key_made_up_for_it() {
    let root = tempfile::tempdir().unwrap();
    let (_, own) = asking(root.path(), Kind::Os);
    own.set(&name("A"), &value("value-of-a"), &terms(None))
        .unwrap();
    let file = root.path().join("vault.age");
    let count = Arc::new(AtomicUsize::new(0));
    let store = AgeStore::new(file.clone(), typed(&["one one one"], &count));
    let store: Arc<dyn Store> = Arc::new(store);
    assert!(journal_key(root.path(), &store).unwrap().is_none());
    assert_eq!((count.load(Ordering::SeqCst), file.exists()), (0, false));
}

#[test]
fn who_holds_the_lock_waits_for_no_question_of_another_thread() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("vault.age");
    let key = typed(&["one one one"], &Arc::default());
    let made = AgeStore::new(file.clone(), key);
    made.set(&Key::of(&name("A")), &value("value-of-a"))
        .unwrap();
    let (asked, is_asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel::<()>();
    let answered = std::sync::Mutex::new(answered);
    let key: GetKey = Arc::new(move |_| {
        asked.send(()).unwrap();
        answered.lock().unwrap().recv().unwrap();
        Ok(AgeKey::with_work(&value("one one one"), 4).typed())
    });
    let store = Arc::new(AgeStore::new(file, key));
    let quiet = store.quiet().unwrap();
    let asking = std::thread::spawn({
        let store = Arc::clone(&store);
        move || store.list()
    });
    is_asked.recv().unwrap();
    let (done, is_done) = mpsc::channel();
    let again = Arc::clone(&quiet);
    let waiting = std::thread::spawn(move || done.send(again.list()).unwrap());
    // Long, so that only who waits for the answer is late.
    let told = is_done.recv_timeout(Duration::from_secs(60));
    answer.send(()).unwrap();
    assert_eq!(asking.join().unwrap().unwrap(), [name("A")]);
    waiting.join().unwrap();
    let told = told.expect("it waited for the answer").unwrap_err();
    assert_eq!(told.code, ErrorCode::VaultBusy);
    // Once that is answered it is open for both.
    assert_eq!(quiet.list().unwrap(), [name("A")]);
}
