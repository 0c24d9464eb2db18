//! Keeps values the user gives during a run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::ToolError;
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::tool::context::{Boxed, Keeper, blocking};
use crate::vault::index::Chosen;
use crate::vault::keep::{Terms, Vault};
use crate::vault::load::Loader;
use crate::vault::policy::Policy;
use crate::vault::store::Kind;

/// Keeps values the user gives during a run in the store of the run.
pub(super) struct StoreKeeper {
    pub(super) loader: Arc<Loader>,
    pub(super) directory: PathBuf,
    pub(super) chosen: Chosen,
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
        Box::pin(blocking(move || {
            work(&Vault::new(directory, chosen, loader.store()?))
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
        self.with(move |vault| {
            // A secret that gets a new value keeps the policy its user gave it.
            let mut policy = vault
                .get(&name)
                .map_or_else(|_| Policy::default(), |old| old.policy);
            policy.allow_short |= allow_short;
            vault.set(&name, &value, &Terms { note, policy })
        })
    }
}

/// Returns a note that a model wrote as one short line.
fn one_line(note: &str) -> String {
    let words: Vec<&str> = note.split_whitespace().collect();
    let line = words.join(" ").replace(char::is_control, " ");
    line.chars().take(limits::MAX_NOTE_CHARS).collect()
}
