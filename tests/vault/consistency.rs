//! Index and store stay together, and a session follows them.

mod broken;
mod held;
mod journal;
mod many;
mod moved;
mod notes;
mod races;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use karyi::error::{ErrorCode, ToolError};
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::index::{Index, StoreChoice};
use karyi::vault::policy::Policy;
use karyi::vault::session::{Need, Origin, Secrets};
use karyi::vault::store::memory::MemoryStore;
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::sync::StoreSync;
use karyi::vault::vault::{SecretDetails, SecretState, Vault};

/// A store in memory that counts, fails on demand, and says that it lasts.
#[derive(Default)]
struct CountingStore {
    memory: MemoryStore,
    opened: AtomicUsize,
    read: AtomicUsize,
    fails: std::sync::Mutex<Option<ErrorCode>>,
    /// The key of an item that is no text.
    binary: std::sync::Mutex<Option<Key>>,
}

impl CountingStore {
    fn fail(&self, code: Option<ErrorCode>) {
        *self.fails.lock().unwrap() = code;
    }

    fn check(&self) -> Result<(), ToolError> {
        match *self.fails.lock().unwrap() {
            Some(code) => Err(ToolError::new(code, "on purpose")),
            None => Ok(()),
        }
    }

    fn read(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }
}

impl Store for CountingStore {
    fn kind(&self) -> Kind {
        Kind::Os
    }
    fn probe(&self) -> Result<(), ToolError> {
        self.check()
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.check()?;
        self.memory.list()
    }
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        self.check()?;
        self.read.fetch_add(1, Ordering::SeqCst);
        if self.binary.lock().unwrap().as_ref() == Some(key) {
            return Err(ToolError::new(ErrorCode::BadVault, "no text"));
        }
        self.memory.get(key)
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.check()?;
        self.memory.set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.check()?;
        self.memory.remove(key)
    }
}

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn value(text: &str) -> SecretValue {
    SecretValue::new(text.into())
}

fn terms(note: Option<&str>) -> SecretDetails {
    SecretDetails {
        note: note.map(str::to_owned),
        policy: Policy::default(),
    }
}

fn vault(directory: &Path, store: &Arc<CountingStore>) -> Vault {
    let chosen = StoreChoice {
        kind: Kind::Os,
        identity: None,
    };
    Vault::new(
        directory.to_owned(),
        chosen,
        Arc::clone(store) as Arc<dyn Store>,
    )
}

fn states(vault: &Vault) -> Vec<(String, SecretState)> {
    let rows = vault.statuses().unwrap();
    rows.into_iter()
        .map(|row| (row.name.to_string(), row.state))
        .collect()
}

#[test]
fn a_list_of_a_hundred_names_reads_no_value() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    for number in 0..100 {
        let text = format!("NAME_{number}");
        vault
            .set(
                &name(&text),
                &value(&format!("value-of-{number}")),
                &terms(None),
            )
            .unwrap();
    }
    let before = store.read();
    assert_eq!(vault.statuses().unwrap().len(), 100);
    assert_eq!(store.read() - before, 0);
}

#[test]
fn the_index_holds_nothing_of_a_value() {
    let root = tempfile::tempdir().unwrap();
    let vault = vault(root.path(), &Arc::new(CountingStore::default()));
    vault
        .set(
            &name("A"),
            &value("S3cr3t-T0ken"),
            &terms(Some("for tests")),
        )
        .unwrap();
    let mut text = std::fs::read_to_string(root.path().join("vars.json")).unwrap();
    for key in ["created", "updated"] {
        let at = text.find(key).unwrap() + key.len() + 4;
        text.replace_range(at..at + "2026-11-22T08:29:57Z".len(), "TIME");
    }
    let policy = "\"tools\":[\"command\",\"input\",\"url_fetch\"],\"hosts\":[],\"commands\":null,\
        \"dirs\":null,\"use\":\"session\",\"output\":\"redact\",\"write\":false,\"expires\":null,\
        \"allow_short\":false";
    let plain: String = text.split_whitespace().collect();
    assert_eq!(
        plain.replace("fortests", "for tests"),
        format!(
            "{{\"version\":1,\"generation\":2,\"store\":{{\"kind\":\"os\"}},\"names\":{{\"A\":{{\
             \"note\":\"for tests\",\"created\":\"TIME\",\"updated\":\"TIME\",\"store\":\"os\",\
             \"policy\":{{{policy}}}}}}}}}"
        )
    );
}

#[test]
fn a_note_cannot_hold_the_value() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    let result = vault.set(
        &name("A"),
        &value("S3cr3t-T0ken"),
        &terms(Some("is S3cr3t-T0ken")),
    );
    assert_eq!(result.unwrap_err().code, ErrorCode::BadArguments);
    assert_eq!(store.memory.list().unwrap(), []);
}

#[test]
fn what_breaks_in_between_is_seen_and_repaired() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    let long = |text: &str| value(&format!("{text}-long-enough"));
    for key in ["KEPT", "LOST"] {
        vault
            .set(&name(key), &long(key), &terms(Some("n")))
            .unwrap();
    }
    // Somebody else removed a value, and kept another one with a program of their own.
    store.memory.remove(&Key::of(&name("LOST"))).unwrap();
    store
        .memory
        .set(&Key::of(&name("FOUND")), &long("found"))
        .unwrap();
    let (added, removed) = vault.repair().unwrap();
    assert_eq!((added, removed), (vec![name("FOUND")], vec![name("LOST")]));
    let expected = [("FOUND", SecretState::Kept), ("KEPT", SecretState::Kept)];
    assert_eq!(
        states(&vault),
        expected.map(|(name, state)| (name.to_owned(), state))
    );
    // Whoever lists what there is mends the index as well.
    store.memory.remove(&Key::of(&name("FOUND"))).unwrap();
    while Index::read(root.path()).unwrap().names.len() > 1 {
        states(&vault);
    }
    assert_eq!(states(&vault), [("KEPT".to_owned(), SecretState::Kept)]);
    // What is damaged hinders nothing else.
    let long_ago = Key::of(&name("AAA"));
    store.memory.set(&long_ago, &long("binary")).unwrap();
    *store.binary.lock().unwrap() = Some(long_ago.clone());
    store
        .memory
        .set(&Key::of(&name("LATE")), &long("late"))
        .unwrap();
    let (added, removed) = vault.repair().unwrap();
    assert_eq!((added, removed), (vec![name("LATE")], vec![]));
    for gone in [long_ago, Key::of(&name("LATE"))] {
        store.memory.remove(&gone).unwrap();
    }
    vault.repair().unwrap();
}

#[test]
fn a_lost_index_comes_back_from_the_store_with_notes_policies_and_dates() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    let read = || Index::read(root.path()).unwrap();
    // Kept by an older version: note and dates were in the index alone.
    let date = "2024-02-03T04:05:06Z";
    let old = format!(
        r#"{{"version":1,"generation":2,"store":{{"kind":"os"}},"names":{{"A":{{"note":"old note",
        "created":"{date}","updated":"{date}","store":"os","policy":{{}}}}}}}}"#
    );
    std::fs::write(root.path().join("vars.json"), old).unwrap();
    let text = value("karyi-secret 1 {\"write\":true}\nvalue-of-a-1234");
    store.memory.set(&Key::of(&name("A")), &text).unwrap();
    let policy = vault.get(&name("A")).unwrap().policy;
    assert!(policy.write);
    let kept = SecretDetails { note: None, policy };
    vault
        .set(&name("A"), &value("value-of-a-5678"), &kept)
        .unwrap();
    vault
        .set(
            &name("B"),
            &value("value-of-b-1234"),
            &terms(Some("note b")),
        )
        .unwrap();
    vault.rename(&name("B"), &name("C")).unwrap();
    let before = read().names;
    assert_eq!(before["A"].note.as_deref(), Some("old note"));
    assert_eq!(before["A"].created.to_string(), date);
    assert_eq!(before["C"].note.as_deref(), Some("note b"));
    std::fs::remove_file(root.path().join("vars.json")).unwrap();
    vault.repair().unwrap();
    assert_eq!(read().names, before);
}

#[test]
fn a_removal_that_fails_keeps_the_name_and_can_be_done_again() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    vault
        .set(&name("A"), &value("long-enough"), &terms(None))
        .unwrap();
    store.fail(Some(ErrorCode::KeyringTimeout));
    assert_eq!(
        vault.remove(&name("A")).unwrap_err().code,
        ErrorCode::KeyringTimeout
    );
    store.fail(None);
    assert_eq!(Index::read(root.path()).unwrap().secret_names().count(), 1);
    assert_eq!(states(&vault), [("A".to_owned(), SecretState::Kept)]);
    assert!(vault.remove(&name("A")).unwrap());
    assert!(!vault.remove(&name("A")).unwrap());
    assert_eq!(states(&vault), []);
}

#[test]
fn a_store_that_fails_changes_no_index() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    store.fail(Some(ErrorCode::KeyringLocked));
    let result = vault.set(&name("A"), &value("long-enough"), &terms(None));
    assert_eq!(result.unwrap_err().code, ErrorCode::KeyringLocked);
    assert!(!root.path().join("vars.json").exists());
}

#[test]
fn a_rename_keeps_note_policy_and_value() {
    let root = tempfile::tempdir().unwrap();
    let vault = vault(root.path(), &Arc::new(CountingStore::default()));
    let policy = Policy {
        write: true,
        ..Policy::default()
    };
    let said = SecretDetails {
        note: Some("n".into()),
        policy: policy.clone(),
    };
    vault
        .set(&name("Old"), &value("long-enough"), &said)
        .unwrap();
    vault
        .set(&name("OTHER"), &value("long-enough-too"), &terms(None))
        .unwrap();
    assert_eq!(
        vault.rename(&name("Old"), &name("OTHER")).unwrap_err().code,
        ErrorCode::BadArguments
    );
    vault.rename(&name("Old"), &name("OLD")).unwrap();
    let index = Index::read(root.path()).unwrap();
    let listed = index.get(&name("OLD")).unwrap();
    assert_eq!(
        (listed.note.as_deref(), &listed.policy),
        (Some("n"), &policy)
    );
    let record = vault.get(&name("OLD")).unwrap();
    assert_eq!(
        (record.value.expose(), record.policy),
        ("long-enough", policy)
    );
    assert_eq!(
        vault.get(&name("Old")).err().unwrap().code,
        ErrorCode::UndefinedVariable
    );
}

#[test]
fn a_rename_makes_no_name_that_differs_only_in_case() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    for (key, text) in [("MID", "value-mid"), ("OTHER", "value-other")] {
        vault.set(&name(key), &value(text), &terms(None)).unwrap();
    }
    // Another program put this one there, so the index does not list it.
    let stray = value("value-stray");
    store.memory.set(&Key::of(&name("Stray")), &stray).unwrap();
    for to in ["mid", "OTHER", "MID", "STRAY"] {
        let result = vault.rename(&name("OTHER"), &name(to));
        assert_eq!(result.unwrap_err().code, ErrorCode::BadArguments, "{to}");
    }
    let result = vault.set(&name("STRAY"), &value("value-more"), &terms(None));
    assert_eq!(result.unwrap_err().code, ErrorCode::BadArguments);
    // By then it does.
    let kept = ["MID", "OTHER", "Stray"].map(|name| (name.to_owned(), SecretState::Kept));
    assert_eq!(states(&vault), kept);
}

#[test]
fn of_names_that_differ_only_in_case_one_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    for round in 0..20 {
        let spelled = [format!("same{round}"), format!("SAME{round}")];
        let kept = std::thread::scope(|scope| {
            let set = |key: &str| {
                vault(root.path(), &store).set(&name(key), &value("value-same"), &terms(None))
            };
            let running = [0, 1].map(|at: usize| {
                let key = &spelled[at];
                scope.spawn(move || set(key).is_ok())
            });
            running.map(|one| one.join().unwrap())
        });
        assert_ne!(kept[0], kept[1], "{round}");
    }
    assert_eq!(store.list().unwrap().len(), 20);
}

/// A store that is locked until somebody answers its dialogue.
#[derive(Default)]
struct LockedStore {
    memory: MemoryStore,
    /// Whether somebody answered; told when the dialogue stands there.
    answered: std::sync::Mutex<bool>,
    changed: std::sync::Condvar,
    is_asking: std::sync::atomic::AtomicBool,
}

impl LockedStore {
    fn open(&self) {
        self.is_asking.store(true, Ordering::SeqCst);
        let mut answered = self.answered.lock().unwrap();
        while !*answered {
            answered = self.changed.wait(answered).unwrap();
        }
    }

    fn answer(&self) {
        *self.answered.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl Store for LockedStore {
    fn kind(&self) -> Kind {
        Kind::Os
    }
    fn probe(&self) -> Result<(), ToolError> {
        self.open();
        Ok(())
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.open();
        self.memory.list()
    }
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        self.open();
        self.memory.get(key)
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.open();
        self.memory.set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.open();
        self.memory.remove(key)
    }
}

#[test]
fn a_dialogue_keeps_nobody_else_from_the_index() {
    let root = tempfile::tempdir().unwrap();
    let locked = Arc::new(LockedStore::default());
    let chosen = StoreChoice {
        kind: Kind::Os,
        identity: None,
    };
    let slow = Vault::new(
        root.path().to_owned(),
        chosen,
        Arc::clone(&locked) as Arc<dyn Store>,
    );
    let open = Arc::new(CountingStore::default());
    let quick = value("value-quick");
    locked.memory.set(&Key::of(&name("QUICK")), &quick).unwrap();
    std::thread::scope(|scope| {
        let set = scope.spawn(|| slow.set(&name("SLOW"), &value("value-slow"), &terms(None)));
        while !locked.is_asking.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let other = vault(root.path(), &open);
        let kept = other.set(&name("QUICK"), &value("value-quick"), &terms(None));
        locked.answer();
        assert_eq!((kept, set.join().unwrap()), (Ok(()), Ok(())));
    });
    let index = Index::read(root.path()).unwrap();
    assert_eq!(
        index.secret_names().collect::<Vec<_>>(),
        [name("QUICK"), name("SLOW")]
    );
}

#[test]
fn every_value_is_known_to_redaction_whatever_the_names_are() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(CountingStore::default());
    let vault = vault(root.path(), &store);
    for (key, text) in [
        ("MID", "value-upper"),
        ("ZED", "value-of-zed"),
        ("A", "value-of-a"),
    ] {
        vault.set(&name(key), &value(text), &terms(None)).unwrap();
    }
    store
        .memory
        .set(&Key::of(&name("mid")), &value("value-lower"))
        .unwrap();
    let secrets = session(root.path(), &store);
    for (key, text) in [("A", "given-for-a"), ("zed", "given-zed")] {
        let policy = Policy::unrestricted();
        secrets
            .insert_with(name(key), value(text), policy, Origin::Given)
            .unwrap();
    }
    secrets.refresh(Need::Listed);
    let usable = ["A", "MID", "mid", "zed", "ZED"].map(|key| held(&secrets, key));
    let expected = [
        Some("given-for-a"),
        Some("value-upper"),
        None,
        Some("given-zed"),
        None,
    ];
    assert_eq!(usable, expected.map(|value| value.map(str::to_owned)));
    for text in ["value-upper", "value-lower", "value-of-a", "value-of-zed"] {
        assert!(secrets.occur_in(text.as_bytes()), "{text}");
    }
    assert_eq!(
        secrets.source_failure().unwrap().code,
        ErrorCode::BadArguments
    );
}

fn session(directory: &Path, store: &Arc<CountingStore>) -> Secrets {
    let secrets = Secrets::default();
    let opened = Arc::clone(store);
    let open = Box::new(move || {
        opened.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::clone(&opened) as Arc<dyn Store>)
    });
    secrets.attach(Arc::new(StoreSync::new(directory.to_owned(), open)));
    secrets
}

fn held(secrets: &Secrets, key: &str) -> Option<String> {
    secrets
        .get(&name(key))
        .map(|value| value.expose().to_owned())
}
