//! Keeps values the user gives during a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::place::Place;
use crate::tool::context::{Boxed, Keeper, blocking};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::index::{Index, StoreChoice};
use karyi_vault::session::Secrets;
use karyi_vault::store::Kind;
use karyi_vault::sync::StoreSync;
use karyi_vault::vault::{CurrentSecret, NewSecret, SecretDetails, Vault};

/// Keeps values the user gives during a run in the store of the run. Where none was chosen yet that is the keyring, as
/// for the first `karyi var set`, when it can be used.
pub(super) struct StoreKeeper(Arc<Keeping>);

struct Keeping {
    loader: Arc<StoreSync>,
    /// Those of the session, which are to know what opens the store.
    secrets: Secrets,
    place: Place,
    /// The store that was in use at the start.
    settled: Option<StoreChoice>,
    /// Whether values may be kept of which only whole words are masked.
    allow_short: bool,
    /// The vault that was tried last and offered to the user.
    offered: Mutex<Option<Vault>>,
}

impl Keeping {
    fn probe(&self) -> Result<&'static str, ToolError> {
        let mut offered = self.offered();
        *offered = None;
        let index = Index::read(&self.place.directory)?;
        let (chosen, _) = self.place.chosen_or_unlisted(&index, self.settled.as_ref());
        let chosen = chosen.filter(|chosen| chosen.kind.is_persistent());
        let vault = match chosen {
            Some(chosen) => {
                let store = self.loader.store(&self.secrets)?;
                let vault = self.place.joined(chosen, store);
                vault.probe()?;
                vault
            }
            // Nobody is asked to unlock it for what may not be wanted.
            None => {
                let vault = self.place.quiet().vault(StoreChoice::os());
                vault.probe().map_err(|error| {
                    let message = format!("the keyring cannot be used ({})", error.code.as_str());
                    ToolError::new(error.code, message)
                        .with_hint("`karyi var set NAME --vault age` chooses a file for values")
                })?;
                vault
            }
        };
        let called = match vault.store().kind() {
            Kind::Os => "the keyring",
            Kind::Age | Kind::Memory | Kind::Env => "the encrypted file",
        };
        *offered = Some(vault);
        Ok(called)
    }

    // A poisoned lock only means that another thread panicked between two stores.
    fn offered(&self) -> MutexGuard<'_, Option<Vault>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreKeeper {
    pub(super) fn new(
        loader: Arc<StoreSync>,
        secrets: &Secrets,
        place: Place,
        settled: Option<StoreChoice>,
    ) -> Self {
        Self(Arc::new(Keeping {
            loader,
            allow_short: secrets.accepts_short(),
            secrets: secrets.clone(),
            place,
            settled,
            offered: Mutex::default(),
        }))
    }

    pub(super) fn loader(&self) -> &StoreSync {
        &self.0.loader
    }
}

impl Keeper for StoreKeeper {
    fn probe(&self) -> Boxed<'_, Result<&'static str, ToolError>> {
        let keeping = Arc::clone(&self.0);
        Box::pin(blocking(move || keeping.probe()))
    }

    fn keep<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>> {
        let (name, value) = (name.clone(), value.duplicate());
        let (note, keeping) = (note.map(one_line), Arc::clone(&self.0));
        Box::pin(blocking(move || {
            // What the user agreed to, whatever is in use by now.
            let offered = keeping.offered();
            let vault = offered.as_ref().ok_or_else(|| {
                let message = "no store was offered for the value";
                ToolError::new(ErrorCode::VaultUnavailable, message)
            })?;
            keep(vault, &name, &value, note.as_deref(), keeping.allow_short)
        }))
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
    let make = |earlier: &CurrentSecret| {
        if let Some(damage) = &earlier.damage {
            return Err(damage.clone());
        }
        let mut policy = earlier.policy.clone().unwrap_or_default();
        policy.allow_short |= allow_short;
        Ok(Some(NewSecret {
            value: value.duplicate(),
            terms: SecretDetails {
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
    use karyi_vault::policy::{Approval, Policy};
    use karyi_vault::store::memory::MemoryStore;
    use karyi_vault::store::{Key, Store};

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
        let chosen = StoreChoice {
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
        let terms = SecretDetails { note: None, policy };
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
