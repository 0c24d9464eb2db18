//! Keeps values the user gives during a run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::ToolError;
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::tool::context::{Boxed, Keeper, blocking};
use crate::vault::index::Chosen;
use crate::vault::keep::{Earlier, Terms, Vault, Wanted};
use crate::vault::load::Loader;
use crate::vault::store::Kind;

/// Keeps values the user gives during a run in the store of the run.
pub(super) struct StoreKeeper {
    pub(super) loader: Arc<Loader>,
    pub(super) directory: PathBuf,
    pub(super) chosen: Chosen,
    /// Whether the store was chosen since it is the one in use.
    pub(super) follows: bool,
    /// Whether values may be kept of which only whole words are masked.
    pub(super) allow_short: bool,
}

impl StoreKeeper {
    /// Does something with the vault, off the thread that everything else runs on.
    fn with(
        &self,
        work: impl FnOnce(&Vault) -> Result<(), ToolError> + Send + 'static,
    ) -> Boxed<'_, Result<(), ToolError>> {
        let loader = Arc::clone(&self.loader);
        let (directory, chosen) = (self.directory.clone(), self.chosen.clone());
        let follows = self.follows;
        Box::pin(blocking(move || {
            let vault = Vault::new(directory, chosen, loader.store()?);
            work(&if follows { vault.following() } else { vault })
        }))
    }
}

impl Keeper for StoreKeeper {
    fn store(&self) -> &'static str {
        match self.chosen.kind {
            Kind::Os => "the keyring",
            Kind::Age | Kind::Memory | Kind::Env => "the encrypted file",
        }
    }

    fn probe(&self) -> Boxed<'_, Result<(), ToolError>> {
        self.with(Vault::probe)
    }

    fn keep<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>> {
        let (name, value) = (name.clone(), value.duplicate());
        let (note, allow_short) = (note.map(one_line), self.allow_short);
        self.with(move |vault| keep(vault, &name, &value, note.as_deref(), allow_short))
    }
}

/// Keeps a value. A secret that gets a new one keeps the policy its user gave it; one whose policy cannot be read is
/// left to its user.
fn keep(
    vault: &Vault,
    name: &SecretName,
    value: &SecretValue,
    note: Option<&str>,
    allow_short: bool,
) -> Result<(), ToolError> {
    let make = |earlier: &Earlier| {
        if let Some(damage) = &earlier.damage {
            return Err(damage.clone());
        }
        let mut policy = earlier.policy.clone().unwrap_or_default();
        policy.allow_short |= allow_short;
        Ok(Some(Wanted {
            value: value.duplicate(),
            terms: Terms {
                note: note.map(str::to_owned),
                policy,
            },
        }))
    };
    vault.update(name, &make).map(drop)
}

/// Returns a note that a model wrote as one short line.
fn one_line(note: &str) -> String {
    let words: Vec<&str> = note.split_whitespace().collect();
    let line = words.join(" ").replace(char::is_control, " ");
    line.chars().take(limits::MAX_NOTE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::vault::index::Index;
    use crate::vault::policy::{Approval, Policy};
    use crate::vault::store::memory::MemoryStore;
    use crate::vault::store::{Key, Store};

    /// A store whose values cannot be read for a time.
    #[derive(Default)]
    struct Slow {
        memory: MemoryStore,
        is_slow: std::sync::atomic::AtomicBool,
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
        fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
            match self
                .is_slow
                .swap(false, std::sync::atomic::Ordering::SeqCst)
            {
                true => Err(ToolError::new(ErrorCode::KeyringTimeout, "on purpose")),
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
    fn a_policy_that_cannot_be_read_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(Slow::default());
        let chosen = Chosen {
            kind: Kind::Os,
            identity: None,
        };
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let vault = Vault::new(root.path().to_owned(), chosen, opened);
        let name = SecretName::parse("A").unwrap();
        let value = |text: &str| SecretValue::new(text.into());
        let policy = Policy {
            approval: Approval::Ask,
            ..Policy::default()
        };
        let terms = Terms { note: None, policy };
        vault.set(&name, &value("value-one"), &terms).unwrap();
        let keep = |text: &str| keep(&vault, &name, &value(text), Some("n"), false);
        let kept = || {
            let index = Index::read(root.path()).unwrap();
            let text = store.memory.get(&Key::of(&name)).unwrap().unwrap();
            (
                index.get(&name).unwrap().policy.approval,
                text.expose().to_owned(),
            )
        };
        let before = kept();
        store
            .is_slow
            .store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(
            keep("value-two").unwrap_err().code,
            ErrorCode::KeyringTimeout
        );
        assert_eq!(kept(), before);
        keep("value-two").unwrap();
        assert_eq!(kept().0, Approval::Ask);
        // A record that this program cannot read stays as it is, too.
        let newer = value("karyi-secret 2 {}\nvalue-of-a-newer-one");
        store.memory.set(&Key::of(&name), &newer).unwrap();
        assert_eq!(keep("value-three").unwrap_err().code, ErrorCode::BadVault);
        assert_eq!(kept(), (Approval::Ask, newer.expose().to_owned()));
    }
}
