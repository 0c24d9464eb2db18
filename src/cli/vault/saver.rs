//! Saves values the user enters during a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::location::VaultLocation;
use crate::tool::context::{Boxed, SecretSaver, blocking};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::index::{Index, StoreChoice};
use karyi_vault::session::Secrets;
use karyi_vault::store::Kind;
use karyi_vault::sync::StoreSync;
use karyi_vault::vault::{CurrentSecret, NewSecret, SecretDetails, Vault};

/// Saves values the user enters in the store of the run. When none was chosen yet that is the keyring, as for the
/// first `karyi var set`, if it can be used.
pub(super) struct StoreSaver(Arc<SaverState>);

struct SaverState {
    loader: Arc<StoreSync>,
    /// Secrets of the session, which must know the keys of the store.
    secrets: Secrets,
    place: VaultLocation,
    /// The store in use at the start.
    initial_choice: Option<StoreChoice>,
    /// True when short values, which are masked only as whole words, may be saved.
    allow_short: bool,
    /// The vault that was probed last and offered to the user.
    last_probed: Mutex<Option<Vault>>,
}

impl SaverState {
    fn probe(&self) -> Result<&'static str, ToolError> {
        let mut last_probed = self.last_probed();
        *last_probed = None;
        let index = Index::read(&self.place.directory)?;
        let (chosen, _) = self
            .place
            .chosen_or_unlisted(&index, self.initial_choice.as_ref());
        let chosen = chosen.filter(|chosen| chosen.kind.is_persistent());
        let vault = match chosen {
            Some(chosen) => {
                let store = self.loader.store(&self.secrets)?;
                let vault = self.place.joined(chosen, store);
                vault.probe()?;
                vault
            }
            // It is not unlocked for a value the user may not want to save.
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
        *last_probed = Some(vault);
        Ok(called)
    }

    // A poisoned lock only means that another thread panicked between two stores.
    fn last_probed(&self) -> MutexGuard<'_, Option<Vault>> {
        self.last_probed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreSaver {
    pub(super) fn new(
        loader: Arc<StoreSync>,
        secrets: &Secrets,
        place: VaultLocation,
        initial_choice: Option<StoreChoice>,
    ) -> Self {
        Self(Arc::new(SaverState {
            loader,
            allow_short: secrets.accepts_short(),
            secrets: secrets.clone(),
            place,
            initial_choice,
            last_probed: Mutex::default(),
        }))
    }

    pub(super) fn loader(&self) -> &StoreSync {
        &self.0.loader
    }
}

impl SecretSaver for StoreSaver {
    fn probe(&self) -> Boxed<'_, Result<&'static str, ToolError>> {
        let keeping = Arc::clone(&self.0);
        Box::pin(blocking(move || keeping.probe()))
    }

    fn save<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>> {
        let (name, value) = (name.clone(), value.duplicate());
        let (note, keeping) = (note.map(one_line), Arc::clone(&self.0));
        Box::pin(blocking(move || {
            // The user consented to this store, even if another one is in use by now.
            let last_probed = keeping.last_probed();
            let vault = last_probed.as_ref().ok_or_else(|| {
                let message = "no store was offered for the value";
                ToolError::new(ErrorCode::VaultUnavailable, message)
            })?;
            save(vault, &name, &value, note.as_deref(), keeping.allow_short)
        }))
    }
}

/// Saves a value. A new value of a secret keeps the policy its user set; a secret with an unreadable policy is left
/// unchanged.
fn save(
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

/// Returns a note by a model as one short line.
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
        let save = |text: &str| save(&vault, &name, &value(text), Some("n"), false);
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
            save("value-two").unwrap_err().code,
            ErrorCode::KeyringTimeout
        );
        assert_eq!(kept(), before);
        save("value-two").unwrap();
        assert_eq!(kept().0, Approval::Ask);
        // A record that this program cannot read stays unchanged, too.
        let newer = value("karyi-secret 2 {}\nvalue-of-a-newer-one");
        store.memory.set(&Key::of(&name), &newer).unwrap();
        assert_eq!(save("value-three").unwrap_err().code, ErrorCode::BadVault);
        assert_eq!(kept(), (Approval::Ask, newer.expose().to_owned()));
    }
}
