//! The keyrings of macOS and Windows, as far as this system can stand in for them: what their stores answer, in memory.
//!
//! Written after the sources of apple-native-keyring-store 1.0.2 and windows-native-keyring-store 1.1.0, which
//! refuse what they do not know in the same way (`parse_attributes`).

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use karyi::error::{ErrorCode, ToolError};
use karyi::vault::store::Store;
use karyi::vault::store::os::{KeyringKind, OsStore};
use keyring_core::api::{Credential, CredentialApi, CredentialStore, CredentialStoreApi};
use keyring_core::attributes::parse_attributes;
use keyring_core::{Entry, Error, Result, mock};
use regex::Regex;

use super::contract::{Lacks, check, check_with, key, name, shown, value};

/// The most bytes the Credential Manager takes.
const MOST: usize = 2560;

/// What a keyring holds: service, user and bytes, by what tells entries apart there.
type KeyringContents = Arc<Mutex<BTreeMap<String, (String, String, Vec<u8>)>>>;

#[derive(Debug)]
struct StandIn {
    family: KeyringKind,
    held: KeyringContents,
}

#[derive(Debug)]
struct StandInEntry {
    family: KeyringKind,
    held: KeyringContents,
    service: String,
    user: String,
}

impl StandIn {
    fn of(family: KeyringKind) -> Arc<CredentialStore> {
        let held = KeyringContents::default();
        Arc::new(Self { family, held })
    }

    fn entry(&self, service: &str, user: &str) -> Entry {
        Entry::new_with_credential(Arc::new(StandInEntry {
            family: self.family,
            held: Arc::clone(&self.held),
            service: service.to_owned(),
            user: user.to_owned(),
        }))
    }

    fn search_by_service(&self, query: &HashMap<&str, &str>) -> Result<Vec<Entry>> {
        let query = parse_attributes(&["service", "user"], Some(query))?;
        let fits = |key: &str, text: &String| query.get(key).is_none_or(|wanted| wanted == text);
        let held = self.held.lock().unwrap();
        let found = held
            .values()
            .filter(|(service, user, _)| fits("service", service) && fits("user", user));
        Ok(found
            .map(|(service, user, _)| self.entry(service, user))
            .collect())
    }

    fn search_by_pattern(&self, query: &HashMap<&str, &str>) -> Result<Vec<Entry>> {
        let query = parse_attributes(&["pattern"], Some(query))?;
        let pattern = query.get("pattern").map(|text| Regex::new(text).unwrap());
        let held = self.held.lock().unwrap();
        let targets = held
            .values()
            .map(|(service, user, _)| format!("{user}.{service}"));
        let found = targets.filter(|target| pattern.as_ref().is_none_or(|p| p.is_match(target)));
        // Where the user ends is guessed.
        Ok(found
            .map(|target| match target.rsplit_once('.') {
                Some((user, service)) => self.entry(service, user),
                None => unreachable!("{target}"),
            })
            .collect())
    }
}

impl CredentialStoreApi for StandIn {
    fn vendor(&self) -> String {
        format!("a stand-in: {:?}", self.family)
    }

    fn id(&self) -> String {
        self.vendor()
    }

    fn build(&self, service: &str, user: &str, _: Option<&HashMap<&str, &str>>) -> Result<Entry> {
        assert!(!service.is_empty() && !user.is_empty());
        Ok(self.entry(service, user))
    }

    fn search(&self, query: &HashMap<&str, &str>) -> Result<Vec<Entry>> {
        match self.family {
            KeyringKind::CredentialManager => self.search_by_pattern(query),
            _ => self.search_by_service(query),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl StandInEntry {
    fn place(&self) -> String {
        let target = format!("{}.{}", self.user, self.service);
        match self.family {
            KeyringKind::CredentialManager => target.to_lowercase(),
            _ => target,
        }
    }
}

impl CredentialApi for StandInEntry {
    fn set_secret(&self, secret: &[u8]) -> Result<()> {
        if self.family == KeyringKind::CredentialManager && secret.len() > MOST {
            return Err(Error::TooLong("secret".to_owned(), MOST as u32));
        }
        let kept = (self.service.clone(), self.user.clone(), secret.to_vec());
        self.held.lock().unwrap().insert(self.place(), kept);
        Ok(())
    }

    fn get_secret(&self) -> Result<Vec<u8>> {
        let held = self.held.lock().unwrap();
        let found = held.get(&self.place()).map(|(_, _, secret)| secret.clone());
        found.ok_or(Error::NoEntry)
    }

    fn delete_credential(&self) -> Result<()> {
        let removed = self.held.lock().unwrap().remove(&self.place());
        removed.map(drop).ok_or(Error::NoEntry)
    }

    fn get_credential(&self) -> Result<Option<Arc<Credential>>> {
        self.get_secret().map(|_| None)
    }

    fn get_specifiers(&self) -> Option<(String, String)> {
        Some((self.service.clone(), self.user.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn the_keychain_keeps_values() {
    let keyring = StandIn::of(KeyringKind::Keychain);
    check(&OsStore::over(
        "karyi-contract",
        KeyringKind::Keychain,
        keyring,
    ));
}

#[test]
fn the_credential_manager_keeps_values() {
    let lacks = Lacks {
        values_longer_than: Some(MOST),
        case: true,
    };
    // The store of Windows parts the names of these services in the wrong place, or they mean more in a pattern.
    for service in ["karyi", "karyi:0123abcd", "my.app", "app(1)*"] {
        let keyring = StandIn::of(KeyringKind::CredentialManager);
        let store = OsStore::over(service, KeyringKind::CredentialManager, keyring);
        check_with(&store, &lacks);
    }
}

#[test]
fn entries_of_others_are_told_from_ours() {
    for family in [KeyringKind::Keychain, KeyringKind::CredentialManager] {
        let keyring = StandIn::of(family);
        let keep = |service: &str, user: &str, text: &str| {
            let entry = keyring.build(service, user, None).unwrap();
            entry.set_secret(text.as_bytes()).unwrap();
        };
        keep("karyi", "A", "value-1");
        keep("karyi", "the mail of a.b@c.d", "value-2");
        keep("karyi-other", "B", "value-3");
        keep("other", "karyi", "value-4");
        keep("not-karyi", "C", "value-5");
        let store = OsStore::over("karyi", family, Arc::clone(&keyring));
        assert_eq!(store.list().unwrap(), [name("A")], "{family:?}");
        let all = store.read_all().unwrap().into_iter();
        let all = all.map(|held| {
            (
                held.key.is_foreign(),
                held.text.unwrap().expose().to_owned(),
            )
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        let expected = [(false, "value-1".to_owned()), (true, "value-2".to_owned())];
        assert_eq!(all, expected, "{family:?}");
    }
}

#[test]
fn a_value_too_long_for_a_keyring_belongs_into_the_file() {
    let keyring = StandIn::of(KeyringKind::CredentialManager);
    let store = OsStore::over("karyi", KeyringKind::CredentialManager, keyring);
    store.set(&key("A"), &value("before")).unwrap();
    let long = "ä".repeat(MOST / 2);
    let error = store
        .set(&key("A"), &value(&format!("{long}x")))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::BadValue);
    assert!(error.message.contains("2560 bytes"), "{error:?}");
    assert!(error.hint.contains("--vault age"), "{error:?}");
    assert_eq!(shown(&store, "A"), Some("before".into()));
    store.set(&key("A"), &value(&long)).unwrap();
    assert_eq!(shown(&store, "A"), Some(long));
}

/// A keyring that cannot be searched.
#[derive(Debug)]
struct Blind(Arc<mock::Store>);

impl CredentialStoreApi for Blind {
    fn vendor(&self) -> String {
        self.0.vendor()
    }

    fn id(&self) -> String {
        self.0.id()
    }

    fn build(&self, service: &str, user: &str, _: Option<&HashMap<&str, &str>>) -> Result<Entry> {
        self.0.build(service, user, None)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn a_keyring_that_cannot_be_searched_is_told_before_anything_is_kept() {
    let keyring = Arc::new(Blind(mock::Store::new().unwrap()));
    let store = OsStore::over("karyi", KeyringKind::Keychain, keyring);
    let error = store.probe().unwrap_err();
    assert_eq!(error.code, ErrorCode::KeyringUnavailable);
    assert!(error.message.contains("search"), "{error:?}");
    assert_eq!(store.list().unwrap_err().code, error.code);
}

#[test]
fn what_a_keyring_fails_with_is_told_by_code() {
    let keyring = mock::Store::new().unwrap();
    let store = OsStore::over("karyi", KeyringKind::Keychain, keyring.clone());
    assert!(!store.remove(&key("A")).unwrap(), "no entry");
    store.set(&key("A"), &value("value-1")).unwrap();
    let fail = |error: Error| {
        let entry = keyring.build("karyi", "A", None).unwrap();
        let entry: &mock::Cred = entry.as_any().downcast_ref().unwrap();
        entry.set_error(error);
    };
    fn reason() -> Box<std::io::Error> {
        Box::new(std::io::Error::other("on purpose"))
    }
    type Fails = fn() -> Error;
    let ambiguous: Fails = || Error::Ambiguous(Vec::new());
    let locked: Fails = || Error::NoStorageAccess(reason());
    let broken: Fails = || Error::PlatformFailure(reason());
    let cases = [
        (ambiguous, ErrorCode::BadVault, "remove all but one"),
        (locked, ErrorCode::KeyringLocked, ""),
        (broken, ErrorCode::KeyringUnavailable, ""),
    ];
    for (make, code, hint) in cases {
        let told = |error: ToolError| {
            assert_eq!(error.code, code);
            assert!(error.hint.contains(hint), "{error:?}");
        };
        fail(make());
        told(store.get(&key("A")).err().unwrap());
        fail(make());
        told(store.set(&key("A"), &value("value-2")).unwrap_err());
        fail(make());
        told(store.remove(&key("A")).unwrap_err());
        assert_eq!(shown(&store, "A"), Some("value-1".into()));
    }
}

#[test]
fn an_entry_that_cannot_be_read_hides_no_other_one() {
    let keyring = mock::Store::new().unwrap();
    let store = OsStore::over("karyi", KeyringKind::SecretService, keyring.clone());
    let keep = |user: &str, text: &str| {
        let entry = keyring.build("karyi", user, None).unwrap();
        entry.set_secret(text.as_bytes()).unwrap();
        entry
    };
    let (first, _) = (keep("a b", "value-1"), keep("c d", "value-2"));
    let fail = |error: Error| {
        let entry: &mock::Cred = first.as_any().downcast_ref().unwrap();
        entry.set_error(error);
    };
    let read = || {
        let all = store.read_all().unwrap().into_iter();
        let mut texts: Vec<_> = all
            .map(|held| held.text.map(|text| text.expose().to_owned()))
            .map(|text| text.map_err(|error| error.code.as_str().to_owned()))
            .collect();
        texts.sort();
        texts
    };
    let second = || Ok("value-2".to_owned());
    let lost = |code: ErrorCode| Err(code.as_str().to_owned());
    let reason = || Box::new(std::io::Error::other("on purpose"));
    fail(Error::PlatformFailure(reason()));
    assert_eq!(read(), [second(), lost(ErrorCode::KeyringUnavailable)]);
    fail(Error::NoStorageAccess(reason()));
    assert_eq!(read(), [second(), lost(ErrorCode::KeyringLocked)]);
    // It went after it was found.
    fail(Error::NoEntry);
    assert_eq!(read(), [second()]);
    assert_eq!(read(), [Ok("value-1".to_owned()), second()]);
}
