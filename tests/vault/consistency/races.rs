//! What several processes do at once: each change goes by what is there then, and loses nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use karyi::error::{ErrorCode, ToolError};
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::index::{Index, StoreChoice};
use karyi::vault::policy::{Approval, Policy};
use karyi::vault::session::{Need, Secrets};
use karyi::vault::store::memory::MemoryStore;
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::sync::StoreSync;
use karyi::vault::vault::{
    CurrentSecret, NewSecret, SecretDetails, SecretState, SecretStatus, Vault,
};

use super::{held, name, terms, value};

/// A call of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The beginning of a call that lists names.
    Look,
    List,
    Get,
    Set,
    /// The end of a call that kept something.
    IsSet,
    Remove,
    /// The end of a call that removed something.
    IsRemoved,
}

type Work = Box<dyn FnOnce() + Send>;

/// A store in memory that says that it lasts, beside whose calls something else happens, once each.
pub struct HookedStore {
    pub memory: MemoryStore,
    kind: Kind,
    hooks: Mutex<Vec<(Call, Work)>>,
    /// What removals fail with.
    pub is_stuck: Mutex<bool>,
    /// What keeping or removing ends with once, after it was done.
    pub is_damaged: Mutex<Option<ToolError>>,
}

impl HookedStore {
    pub fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryStore::default(),
            kind,
            hooks: Mutex::default(),
            is_stuck: Mutex::default(),
            is_damaged: Mutex::default(),
        })
    }

    /// Has something happen when the next such call begins.
    pub fn at(&self, call: Call, work: impl FnOnce() + Send + 'static) {
        self.hooks.lock().unwrap().push((call, Box::new(work)));
    }

    fn pass(&self, call: Call) {
        let mut hooks = self.hooks.lock().unwrap();
        let at = hooks.iter().position(|(wanted, _)| *wanted == call);
        let found = at.map(|at| hooks.remove(at));
        drop(hooks);
        if let Some((_, work)) = found {
            work();
        }
    }
}

impl Store for HookedStore {
    fn kind(&self) -> Kind {
        self.kind
    }
    fn probe(&self) -> Result<(), ToolError> {
        Ok(())
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.pass(Call::Look);
        let names = self.memory.list();
        self.pass(Call::List);
        names
    }
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        let text = self.memory.get(key);
        self.pass(Call::Get);
        text
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.pass(Call::Set);
        self.memory.set(key, text)?;
        self.pass(Call::IsSet);
        self.is_damaged.lock().unwrap().take().map_or(Ok(()), Err)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.pass(Call::Remove);
        match *self.is_stuck.lock().unwrap() {
            true => Err(ToolError::new(ErrorCode::KeyringLocked, "on purpose")),
            false => {
                let removed = self.memory.remove(key);
                self.pass(Call::IsRemoved);
                let lost = self.is_damaged.lock().unwrap().take();
                lost.map_or(removed, Err)
            }
        }
    }
}

pub fn vault(directory: &Path, store: &Arc<HookedStore>) -> Vault {
    let chosen = StoreChoice {
        kind: store.kind,
        identity: None,
    };
    let store = Arc::clone(store) as Arc<dyn Store>;
    Vault::new(directory.to_owned(), chosen, store)
}

/// What another process can do with a vault.
pub struct Other(PathBuf, Arc<HookedStore>);

impl Other {
    pub fn set(&self, key: &str, text: &str, terms: &SecretDetails) -> Result<(), ToolError> {
        vault(&self.0, &self.1)
            .requiring_current_store()
            .set(&name(key), &value(text), terms)
    }
}

pub fn other(directory: &Path, store: &Arc<HookedStore>) -> Other {
    Other(directory.to_owned(), Arc::clone(store))
}

/// Whether somebody may change nothing now.
pub fn is_locked(directory: &Path) -> bool {
    // Nobody ever locked what is not there.
    let file = std::fs::File::open(directory.join("vars.lock"));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

pub fn kept(vault: &Vault, key: &str) -> Option<String> {
    let record = vault.get(&name(key)).ok()?;
    Some(record.value.expose().to_owned())
}

#[test]
fn a_migration_moves_all_that_is_kept_and_nothing_is_kept_beside_it() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let old = vault(root.path(), &from).requiring_current_store();
    old.set(&name("A"), &value("value-old"), &terms(None))
        .unwrap();
    // Before the lock another process is heard, and its value moves.
    let early = other(root.path(), &from);
    from.at(Call::List, move || {
        early.set("A", "value-new", &terms(None)).unwrap();
    });
    // Under it another one waits, and is told afterwards that the store is not in use.
    let late = other(root.path(), &from);
    let waiting = Arc::new(Mutex::new(None));
    let (place, directory) = (Arc::clone(&waiting), root.path().to_owned());
    to.at(Call::IsSet, move || {
        assert!(is_locked(&directory));
        let set = move || ["A", "B"].map(|key| late.set(key, "value-late", &terms(None)));
        *place.lock().unwrap() = Some(std::thread::spawn(set));
    });
    let new = vault(root.path(), &to);
    assert_eq!(old.migrate(&new).unwrap(), [name("A")]);
    let thread = waiting.lock().unwrap().take().unwrap();
    for refused in thread.join().unwrap() {
        // One that begins late sees that its name is in the other store.
        let code = refused.unwrap_err().code;
        let is_told = [ErrorCode::VaultBusy, ErrorCode::BadArguments].contains(&code);
        assert!(is_told, "{code:?}");
    }
    assert_eq!(kept(&new, "A").as_deref(), Some("value-new"));
    assert_eq!(from.list().unwrap(), []);
}

#[test]
fn a_repair_forgets_nothing_that_is_kept_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    for key in ["A", "LOST"] {
        own.set(&name(key), &value("value-of-it"), &terms(None))
            .unwrap();
    }
    store.memory.remove(&Key::of(&name("LOST"))).unwrap();
    let meanwhile = other(root.path(), &store);
    store.at(Call::List, move || {
        meanwhile.set("NEW", "value-new", &terms(None)).unwrap();
    });
    // Whoever changes something mends the index, too.
    assert_eq!(own.repair().unwrap(), (vec![], vec![]));
    assert_eq!(kept(&own, "NEW").as_deref(), Some("value-new"));
    let index = Index::read(root.path()).unwrap();
    assert_eq!(
        index.secret_names().collect::<Vec<_>>(),
        [name("A"), name("NEW")]
    );
}

#[test]
fn what_is_kept_beside_a_removal_stays() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("A"), &value("value-old"), &terms(None))
        .unwrap();
    let beside = other(root.path(), &store);
    let waiting = Arc::new(Mutex::new(None));
    let (place, directory) = (Arc::clone(&waiting), root.path().to_owned());
    store.at(Call::Remove, move || {
        assert!(is_locked(&directory));
        let set = move || beside.set("A", "value-new", &terms(None));
        *place.lock().unwrap() = Some(std::thread::spawn(set));
    });
    assert!(own.remove(&name("A")).unwrap());
    let thread = waiting.lock().unwrap().take().unwrap();
    thread.join().unwrap().unwrap();
    assert_eq!(kept(&own, "A").as_deref(), Some("value-new"));
    assert!(Index::read(root.path()).unwrap().get(&name("A")).is_some());
}

#[test]
fn a_change_goes_by_what_is_there_under_the_lock() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("A"), &value("value-old"), &terms(None))
        .unwrap();
    let narrow = Policy {
        approval: Approval::Ask,
        ..Policy::default()
    };
    let said = SecretDetails {
        note: None,
        policy: narrow.clone(),
    };
    other(root.path(), &store)
        .set("A", "value-new", &said)
        .unwrap();
    // As `--keep-value` with a note does.
    let make = |earlier: &CurrentSecret| {
        let record = own.require_record(&name("A"), earlier)?;
        Ok(Some(NewSecret {
            value: record.value.duplicate(),
            terms: SecretDetails {
                note: Some("n".to_owned()),
                policy: record.policy.clone(),
            },
        }))
    };
    assert!(own.update(&name("A"), &make).unwrap());
    let record = own.get(&name("A")).unwrap();
    assert_eq!(
        (record.value.expose(), record.policy),
        ("value-new", narrow)
    );
}

#[test]
fn only_a_name_that_nobody_has_is_new() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    let set_new = |key: &str| {
        own.update(&name(key), &|earlier: &CurrentSecret| {
            Ok(earlier.is_nothing().then(|| NewSecret {
                value: value("value-new"),
                terms: terms(None),
            }))
        })
    };
    assert_eq!(set_new("FIRST"), Ok(true));
    assert_eq!(set_new("A"), Ok(true));
    assert_eq!(set_new("A"), Ok(false));
    // In the store alone.
    let stray = value("value-stray");
    store.memory.set(&Key::of(&name("STRAY")), &stray).unwrap();
    assert_eq!(set_new("STRAY"), Ok(false));
    other(root.path(), &store)
        .set("B", "value-other", &terms(None))
        .unwrap();
    assert_eq!(set_new("B"), Ok(false));
    assert_eq!(kept(&own, "STRAY").as_deref(), Some("value-stray"));
    assert_eq!(kept(&own, "B").as_deref(), Some("value-other"));
}

#[test]
fn a_removal_that_broke_off_comes_back_with_what_was_said_of_it() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    for key in ["A", "GONE"] {
        own.set(&name(key), &value("value-of-it"), &terms(Some("a note")))
            .unwrap();
        let gone = Arc::clone(&store);
        store.at(Call::Remove, move || {
            if key == "GONE" {
                gone.memory.remove(&Key::of(&name(key))).unwrap();
            }
            panic!("killed");
        });
        let killed = std::panic::AssertUnwindSafe(|| own.remove(&name(key)).is_ok());
        assert!(std::panic::catch_unwind(killed).is_err());
    }
    let notes = || {
        let rows = own.statuses().unwrap().into_iter();
        let note = |row: SecretStatus| {
            let note = row.listed.and_then(|listed| listed.note);
            (row.name.to_string(), row.state, note)
        };
        rows.map(note).collect::<Vec<_>>()
    };
    let row = |key: &str, state| (key.to_owned(), state, Some("a note".to_owned()));
    assert_eq!(Index::read(root.path()).unwrap().names.len(), 2);
    // A program that another test starts has the lock for a moment.
    while !Index::read(root.path()).unwrap().is_whole() {
        notes();
    }
    assert_eq!(notes(), [row("A", SecretState::Kept)]);
    assert_eq!(Index::read(root.path()).unwrap().names.len(), 1);
}

#[test]
fn a_session_sees_a_change_that_broke_off_after_the_store() {
    let root = tempfile::tempdir().unwrap();
    let store = HookedStore::new(Kind::Os);
    let own = vault(root.path(), &store);
    own.set(&name("A"), &value("value-old"), &terms(None))
        .unwrap();
    let opened = Arc::clone(&store);
    let open = Box::new(move || Ok(Arc::clone(&opened) as Arc<dyn Store>));
    let secrets = Secrets::default();
    secrets.attach(Arc::new(StoreSync::new(root.path().to_owned(), open)));
    secrets.refresh(Need::Listed);
    // It looks once more in the middle, and then the other process is killed.
    let looking = secrets.clone();
    store.at(Call::Set, move || looking.refresh(Need::Listed));
    store.at(Call::IsSet, || panic!("killed"));
    let killed = std::panic::AssertUnwindSafe(|| {
        let _ = own.set(&name("A"), &value("value-new"), &terms(None));
    });
    assert!(std::panic::catch_unwind(killed).is_err());
    assert_eq!(held(&secrets, "A").as_deref(), Some("value-old"));
    secrets.refresh(Need::Listed);
    assert_eq!(held(&secrets, "A").as_deref(), Some("value-new"));
    // Whoever looks when nobody is at it any more ends it: the next look reads nothing again.
    while !Index::read(root.path()).unwrap().is_whole() {
        secrets.refresh(Need::Listed);
    }
    secrets.refresh(Need::Listed);
    store.at(Call::List, || panic!("read again"));
    secrets.refresh(Need::Listed);
}
