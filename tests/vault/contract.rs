//! One table of checks that every store passes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use karyi::error::ErrorCode;
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::store::age::{AgeKey, AgeStore};
use karyi::vault::store::env::EnvStore;
use karyi::vault::store::journal_key;
use karyi::vault::store::memory::MemoryStore;
use karyi::vault::store::os::{OsStore, UserPresence};
use karyi::vault::store::{Key, Kind, Store};

use super::bus::{Bus, Provider};
use super::home::Home;
use crate::harness::skip;

/// How long a call may take on a busy machine.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Tells this binary, started again on a private bus, to check the keyring there.
const IN_KEYRING: &str = "KARYI_TEST_KEYRING";

pub fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::of(&name(text))
}

pub fn value(text: &str) -> SecretValue {
    SecretValue::new(text.into())
}

/// What values look like at their worst.
fn values() -> Vec<String> {
    let long = "x\n".repeat(30 << 10);
    let texts = [
        "plain-value",
        "it's \"a\" $HOME `id` $(touch pwn);touch pwn #\\",
        "-----BEGIN KEY-----\nline\n-----END KEY-----\n",
        "密码🔑pass-1234",
        " two  spaces ",
        "\t\r\n\x01\x7f",
        "karyi-secret 1 {}\nx",
        "$KARYI{OTHER}",
        "=&?%00",
    ];
    let mut values: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    values.push(long);
    values
}

pub fn shown(store: &dyn Store, name: &str) -> Option<String> {
    let text = store.get(&key(name)).unwrap();
    text.map(|text| text.expose().to_owned())
}

/// What the store of a system cannot do.
#[derive(Default)]
pub struct Lacks {
    /// It takes no values of more bytes.
    pub values_longer_than: Option<usize>,
    /// It takes names that differ only in case for the same: karyi keeps one of them at a time.
    pub case: bool,
}

/// Checks a store that can be written; it must be empty.
pub fn check(store: &dyn Store) {
    check_with(store, &Lacks::default());
}

/// Checks such a store, but for what it lacks.
pub fn check_with(store: &dyn Store, lacks: &Lacks) {
    store.probe().unwrap();
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(shown(store, "A"), None);
    assert!(!store.remove(&key("A")).unwrap());

    for text in values() {
        if lacks
            .values_longer_than
            .is_some_and(|most| text.len() > most)
        {
            let refused = store.set(&key("A"), &value(&text)).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadValue);
            continue;
        }
        store.set(&key("A"), &value(&text)).unwrap();
        assert_eq!(shown(store, "A"), Some(text));
    }
    assert_eq!(store.list().unwrap(), [name("A")]);

    let small = if lacks.case { "b" } else { "a" };
    for other in [small, "_x9", "Z", &"L".repeat(64)] {
        store
            .set(&key(other), &value(&format!("of {other}")))
            .unwrap();
    }
    let mut names = vec![
        name("A"),
        name(small),
        name("_x9"),
        name("Z"),
        name(&"L".repeat(64)),
    ];
    names.sort();
    assert_eq!(store.list().unwrap(), names);
    assert_eq!(shown(store, small), Some(format!("of {small}")));

    let key = journal_key::create(store).unwrap();
    assert_eq!(journal_key::stored_key(store).unwrap(), Some(key));
    assert_eq!(store.list().unwrap(), names);

    for name in &names {
        assert!(store.remove(&Key::of(name)).unwrap());
        assert!(!store.remove(&Key::of(name)).unwrap());
    }
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn memory_keeps_values() {
    check(&MemoryStore::default());
}

fn age_store(path: &Path, make: impl Fn() -> AgeKey + Send + Sync + 'static) -> AgeStore {
    AgeStore::new(path.to_owned(), Arc::new(move |_| Ok(make())))
}

#[test]
fn a_file_with_a_passphrase_keeps_values() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("vault.age");
    let make = |text: &'static str| move || AgeKey::with_work(&value(text), 4);
    check(&age_store(&path, make("pass phrase")));

    age_store(&path, make("pass phrase"))
        .set(&key("A"), &value("kept-1"))
        .unwrap();
    assert_eq!(
        shown(&age_store(&path, make("pass phrase")), "A"),
        Some("kept-1".into())
    );
    let wrong = age_store(&path, make("another")).get(&key("A"));
    assert_eq!(wrong.err().unwrap().code, ErrorCode::WrongKey);
    let text = std::fs::read(&path).unwrap();
    assert!(!text.windows(6).any(|part| part == b"kept-1"));
}

#[test]
fn a_file_for_an_identity_keeps_values() {
    let home = Home::new();
    let path = home.path().join("vault.age");
    let identity = home.identity();
    let make = move || AgeKey::identity(&identity, None).unwrap();
    check(&age_store(&path, make.clone()));
    age_store(&path, make)
        .set(&key("A"), &value("kept-1"))
        .unwrap();

    let other = Home::new().identity();
    assert!(AgeKey::identity(&other, None).is_err(), "its home is gone");
    let other = Home::new();
    let wrong = other.identity();
    let store = age_store(&path, move || AgeKey::identity(&wrong, None).unwrap());
    assert_eq!(store.list().unwrap_err().code, ErrorCode::WrongKey);
}

#[test]
fn a_file_for_an_ssh_key_keeps_values() {
    if !super::bus::is_there("ssh-keygen") {
        return skip("no ssh-keygen");
    }
    let root = tempfile::tempdir().unwrap();
    for (kind, passphrase) in [("ed25519", ""), ("rsa", ""), ("ed25519", "pass-1")] {
        let file = root.path().join(format!("{kind}{passphrase}"));
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", passphrase, "-f"])
            .arg(&file)
            .status()
            .unwrap();
        assert!(made.success());
        let given = (!passphrase.is_empty()).then_some(passphrase);
        let path = file.with_extension("age");
        let open = file.clone();
        check(&age_store(&path, move || {
            AgeKey::identity(&open, given.map(value).as_ref()).unwrap()
        }));
        if given.is_some() {
            let error = AgeKey::identity(&file, None).err().unwrap();
            assert_eq!(error.code, ErrorCode::WrongKey);
        }
    }
}

#[test]
fn the_age_program_reads_the_file() {
    if !super::bus::is_there("age") {
        return skip("no age");
    }
    let home = Home::new();
    let path = home.path().join("vault.age");
    let identity = home.identity();
    let store = age_store(&path, move || AgeKey::identity(&identity, None).unwrap());
    store.set(&key("A"), &value("kept-1")).unwrap();
    let output = Command::new("age")
        .args(["--decrypt", "--identity"])
        .args([home.identity(), path])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "karyi-vault 1\nA\0kept-1\0"
    );
}

#[test]
fn a_damaged_file_is_told_and_kept() {
    let home = Home::new();
    let path = home.path().join("vault.age");
    let identity = home.identity();
    let make = move || AgeKey::identity(&identity, None).unwrap();
    age_store(&path, make.clone())
        .set(&key("A"), &value("kept-1"))
        .unwrap();
    let whole = std::fs::read(&path).unwrap();
    let store = age_store(&path, make);
    for cut in [0, 1, 20, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let read = store.get(&key("A")).err().unwrap().code;
        let written = store.set(&key("B"), &value("kept-2")).err().unwrap().code;
        assert_eq!(
            (read, written),
            (ErrorCode::BadVault, ErrorCode::BadVault),
            "{cut}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), whole[..cut]);
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(shown(&store, "A"), Some("kept-1".into()));
}

#[test]
fn a_file_that_could_not_be_read_again_is_not_written() {
    let home = Home::new();
    let path = home.path().join("vault.age");
    let identity = home.identity();
    let store = age_store(&path, move || AgeKey::identity(&identity, None).unwrap());
    store.set(&key("A"), &value("kept-1")).unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = store.set(&key("B"), &value(&"x".repeat(17 << 20)));
    assert_eq!(refused.unwrap_err().code, ErrorCode::BadValue);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(shown(&store, "A"), Some("kept-1".into()));
    assert_eq!(store.list().unwrap(), [name("A")]);
}

#[test]
fn nobody_waits_for_whoever_types_the_passphrase() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("vault.age");
    let lock = path.with_extension("lock");
    let make = move |_| {
        let lock = std::fs::File::open(&lock).unwrap();
        lock.try_lock().unwrap();
        Ok(AgeKey::with_work(&value("pass phrase"), 4))
    };
    let make = Arc::new(make);
    let store = || AgeStore::new(path.clone(), make.clone());
    let new = store();
    new.probe().unwrap();
    new.set(&key("A"), &value("kept-1")).unwrap();
    store().probe().unwrap();
    assert_eq!(shown(&store(), "A"), Some("kept-1".into()));
    // Where nothing can be locked it can still be read.
    std::fs::remove_file(path.with_extension("lock")).unwrap();
    std::fs::create_dir(path.with_extension("lock")).unwrap();
    let make = move |_| Ok(AgeKey::with_work(&value("pass phrase"), 4));
    let reader = AgeStore::new(path.clone(), Arc::new(make));
    assert_eq!(shown(&reader, "A"), Some("kept-1".into()));
}

#[test]
fn whoever_only_reads_leaves_the_directory_as_it_is() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("vault.age");
    let store = || age_store(&path, || AgeKey::with_work(&value("pass phrase"), 4));
    store().set(&key("A"), &value("kept-1")).unwrap();
    set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let mode = || metadata(root.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(shown(&store(), "A"), Some("kept-1".into()));
    assert_eq!(mode(), 0o755);
    store().probe().unwrap();
    assert_eq!(mode(), 0o700);
}

#[test]
fn two_processes_write_one_file() {
    let home = Home::new();
    let path = home.path().join("vault.age");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (path, identity) = (path.clone(), home.identity());
            scope.spawn(move || {
                let store = age_store(&path, move || AgeKey::identity(&identity, None).unwrap());
                let text = format!("N{number}");
                store.set(&key(&text), &value(&text)).unwrap();
            });
        }
    });
    let identity = home.identity();
    let store = age_store(&path, move || AgeKey::identity(&identity, None).unwrap());
    assert_eq!(store.list().unwrap().len(), 8);
}

#[test]
fn the_environment_is_read_only() {
    let pairs = [("B", "value-2"), ("A", "value-1"), ("B", "value-3")];
    let pairs = pairs.map(|(text, of)| (name(text), value(of)));
    let store = EnvStore::new(pairs.into());
    store.probe().unwrap();
    assert_eq!(store.list().unwrap(), [name("A"), name("B")]);
    assert_eq!(shown(&store, "B"), Some("value-2".into()));
    assert_eq!(shown(&store, "C"), None);
    let refused = store.set(&key("A"), &value("value-4")).unwrap_err().code;
    assert_eq!(refused, ErrorCode::VaultReadOnly);
    assert_eq!(
        store.remove(&key("A")).unwrap_err().code,
        ErrorCode::VaultReadOnly
    );
    assert_eq!(journal_key::stored_key(&store).unwrap(), None);
}

#[test]
fn the_keyring_keeps_values() {
    if std::env::var_os(IN_KEYRING).is_some() {
        let store = OsStore::with_deadline("karyi-contract", UserPresence::Absent, LIMIT);
        assert_eq!(store.kind(), Kind::Os);
        return check(&store);
    }
    let home = Home::new();
    let Some(bus) = Bus::start(home.path(), Provider::Unlocked) else {
        return;
    };
    let own = std::env::current_exe().unwrap();
    let output = home
        .command(
            &own,
            &["vault::contract::the_keyring_keeps_values", "--exact"],
        )
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .env(IN_KEYRING, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
