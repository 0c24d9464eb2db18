//! Stores that return only a part of their entries, and opening a store.

use super::*;
use crate::store::GetResult;

/// Store that fails for one of its names.
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
    fn get(&self, key: &Key) -> GetResult {
        match key == &Key::of(&self.slow) {
            true => Err(ToolError::new(ErrorCode::KeyringTimeout, "no answer")),
            false => self.memory.get(key),
        }
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
    let open: OpenStore = Box::new(move || Ok(Arc::clone(&store)));
    let (sync, secrets) = (
        StoreSync::new(dir.path().to_owned(), open),
        Secrets::default(),
    );
    sync.refresh(&secrets, Need::Used);
    let error = sync.load_issues().first().map(|issue| issue.error.code);
    assert_eq!(error, Some(ErrorCode::KeyringTimeout));
    let shown = Redactor::new(&secrets)
        .redact_str("the-value-of-A the-value-of-C")
        .into_owned();
    assert_eq!(shown, "$KARYI{A} $KARYI{C}");
}

#[test]
fn keys_of_a_store_are_always_masked() {
    let dir = tempfile::tempdir().unwrap();
    let open: OpenChosenStore = Box::new(|opening| {
        let identity = SecretValue::new("AGE-SECRET-KEY-1QQQWERTYUIOP".into());
        opening.secrets.mask_only(&name(), identity).unwrap();
        Ok(Arc::new(MemoryStore::default()))
    });
    let sync = StoreSync::for_chosen(dir.path().to_owned(), open);
    let secrets = Secrets::default();
    sync.store(&secrets).unwrap();
    let shown = Redactor::new(&secrets)
        .redact_str("AGE-SECRET-KEY-1QQQWERTYUIOP")
        .into_owned();
    assert_eq!(shown, "$KARYI{K}");
}
