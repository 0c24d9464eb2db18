//! A store that gives a part of what it holds, and one that somebody else opened first.

use super::*;
use crate::vault::store::Got;

/// A store that has no answer for one of its names.
struct Slow {
    memory: MemoryStore,
    slow: SecretName,
}

impl Store for Slow {
    fn kind(&self) -> Kind {
        Kind::Os
    }
    fn probe(&self) -> Result<(), ToolError> {
        Ok(())
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.memory.list()
    }
    fn get(&self, key: &Key) -> Got {
        match key == &Key::of(&self.slow) {
            true => Err(ToolError::new(ErrorCode::KeyringTimeout, "no answer")),
            false => self.memory.get(key),
        }
    }
    fn get_each<'a>(&'a self, keys: &'a [Key]) -> Box<dyn Iterator<Item = Got> + 'a> {
        Box::new(keys.iter().map(|key| self.get(key)))
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.memory.set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.memory.remove(key)
    }
}

#[test]
fn one_value_that_does_not_come_hides_none_of_the_others() {
    let parsed = |name: &str| SecretName::parse(name).unwrap();
    let store = Slow {
        memory: MemoryStore::default(),
        slow: parsed("B"),
    };
    for name in ["A", "B", "C"] {
        let value = SecretValue::new(format!("the-value-of-{name}"));
        store.set(&Key::of(&parsed(name)), &value).unwrap();
    }
    let store = Arc::new(store) as Arc<dyn Store>;
    let dir = tempfile::tempdir().unwrap();
    let open: Open = Box::new(move || Ok(Arc::clone(&store)));
    let (loader, secrets) = (Loader::new(dir.path().to_owned(), open), Secrets::default());
    loader.refresh(&secrets, Need::Used);
    let error = loader.lacks().first().map(|lack| lack.error.code);
    assert_eq!(error, Some(ErrorCode::KeyringTimeout));
    let shown = Redactor::new(&secrets)
        .redact_str("the-value-of-A the-value-of-C")
        .into_owned();
    assert_eq!(shown, "$KARYI{A} $KARYI{C}");
}

/// A store with a secret and an entry of another program, where that cannot be read at times, nor the key of the journal.
#[derive(Default)]
struct Lent {
    memory: MemoryStore,
    fails: Mutex<Option<ErrorCode>>,
}

impl Store for Lent {
    fn kind(&self) -> Kind {
        Kind::Os
    }
    fn probe(&self) -> Result<(), ToolError> {
        Ok(())
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.memory.list()
    }
    fn get(&self, key: &Key) -> Got {
        match *self.fails.lock().unwrap() {
            Some(ErrorCode::KeyringTimeout) if *key == Key::journal() => {
                Err(ToolError::new(ErrorCode::KeyringTimeout, "no answer"))
            }
            _ => self.memory.get(key),
        }
    }
    fn foreign(&self) -> Result<Vec<Every>, ToolError> {
        let text = SecretValue::new("what-another-program-keeps".into());
        let mut every = Every::default();
        match *self.fails.lock().unwrap() {
            Some(ErrorCode::KeyringTimeout) => {
                return Err(ToolError::new(ErrorCode::KeyringTimeout, "no answer"));
            }
            Some(code) => every.lost = Some(ToolError::new(code, "on purpose")),
            None => every.texts.push(text),
        }
        Ok(vec![every])
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.memory.set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.memory.remove(key)
    }
}

#[test]
fn what_others_keep_hides_no_secret_and_is_looked_for_again() {
    for code in [ErrorCode::KeyringTimeout, ErrorCode::KeyringUnavailable] {
        let store = Arc::new(Lent::default());
        let value = SecretValue::new("the-value-of-K".into());
        store.set(&Key::of(&name()), &value).unwrap();
        *store.fails.lock().unwrap() = Some(code);
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let dir = tempfile::tempdir().unwrap();
        let open: Open = Box::new(move || Ok(Arc::clone(&opened)));
        let loader = Loader::new(dir.path().to_owned(), open).with_pause(Duration::ZERO);
        let secrets = Secrets::default();
        let shown = || {
            Redactor::new(&secrets)
                .redact_str("the-value-of-K what-another-program-keeps")
                .into_owned()
        };
        loader.refresh(&secrets, Need::Used);
        assert_eq!(
            loader.lacks().first().map(|lack| lack.error.code),
            Some(code)
        );
        assert!(secrets.contains(&name()), "it can be used");
        assert_eq!(shown(), "$KARYI{K} what-another-program-keeps");
        *store.fails.lock().unwrap() = None;
        while !loader.lacks().is_empty() {
            loader.refresh(&secrets, Need::Used);
        }
        assert_eq!(shown(), "$KARYI{K} $KARYI{KARYI_KEYRING_1}");
    }
}

#[test]
fn a_store_that_cannot_be_read_is_not_asked_for_the_rest() {
    let store = Slow {
        memory: MemoryStore::default(),
        slow: SecretName::parse("B").unwrap(),
    };
    struct Plain(Slow, Mutex<u32>);
    impl Store for Plain {
        fn kind(&self) -> Kind {
            Kind::Os
        }
        fn probe(&self) -> Result<(), ToolError> {
            Ok(())
        }
        fn list(&self) -> Result<Vec<SecretName>, ToolError> {
            self.0.list()
        }
        fn get(&self, key: &Key) -> Got {
            *self.1.lock().unwrap() += 1;
            self.0.get(key)
        }
        fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
            self.0.set(key, text)
        }
        fn remove(&self, key: &Key) -> Result<bool, ToolError> {
            self.0.remove(key)
        }
    }
    let store = Plain(store, Mutex::default());
    let keys = ["A", "B", "C"].map(|name| Key::of(&SecretName::parse(name).unwrap()));
    let got: Vec<Option<ErrorCode>> = store
        .get_each(&keys)
        .map(|got| got.err().map(|error| error.code))
        .collect();
    let lost = Some(ErrorCode::KeyringTimeout);
    assert_eq!(got, [None, lost, lost]);
    assert_eq!(*store.1.lock().unwrap(), 2);
}

#[test]
fn what_opens_a_store_is_masked_whoever_opened_it() {
    let dir = tempfile::tempdir().unwrap();
    let open: OpenChosen = Box::new(|opening| {
        let identity = SecretValue::new("AGE-SECRET-KEY-1QQQWERTYUIOP".into());
        opening.secrets.mask_only(&name(), identity).unwrap();
        Ok(Arc::new(MemoryStore::default()))
    });
    let loader = Loader::choosing(dir.path().to_owned(), open);
    let secrets = Secrets::default();
    loader.store(&secrets).unwrap();
    let shown = Redactor::new(&secrets)
        .redact_str("AGE-SECRET-KEY-1QQQWERTYUIOP")
        .into_owned();
    assert_eq!(shown, "$KARYI{K}");
}
