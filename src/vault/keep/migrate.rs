//! Moves everything into another store.

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::Vault;
use crate::vault::keep::rows::check_agreement;
use crate::vault::store::{Key, record};

impl Vault {
    /// Checks that another store has nothing else under the names of this one: it would be lost.
    fn check_apart(&self, to: &Self, names: &[SecretName]) -> Result<(), ToolError> {
        let there = to.store.list()?;
        for name in names.iter().filter(|name| there.contains(name)) {
            let key = Key::of(name);
            let (own, theirs) = (self.store.get(&key)?, to.store.get(&key));
            let is_same = match (&own, &theirs) {
                (Some(own), Ok(Some(theirs))) => own.expose() == theirs.expose(),
                _ => false,
            };
            if !is_same {
                let (own, theirs) = (self.store.kind(), to.store.kind());
                let message =
                    format!("the stores {own} and {theirs} both hold a {name}, and not the same");
                let hint =
                    format!("remove one: `karyi var rm {name} --vault {own}` or --vault {theirs}");
                return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint));
            }
        }
        Ok(())
    }

    /// Copies everything into another store, makes that the chosen one, and removes it here. Returns
    /// the names.
    ///
    /// # Errors
    /// What the stores or the system say. What was copied before stays in both.
    pub fn migrate(&self, to: &Self) -> Result<Vec<SecretName>, ToolError> {
        to.probe()?;
        let names = self.store.list()?;
        let index = Index::read(&self.directory)?;
        check_agreement(&index, self.chosen.kind, &names)?;
        self.check_apart(to, &names)?;
        for name in &names {
            let record = self.get(name)?;
            let text = record::join(&record.value, &record.policy)?;
            to.store.set(&Key::of(name), &text)?;
            let back = to.get(name)?;
            if back.value.expose() != record.value.expose() || back.policy != record.policy {
                let message = format!("the store {} gives {name} back changed", to.store.kind());
                return Err(ToolError::new(ErrorCode::BadVault, message));
            }
        }
        // The key that runs used until now goes on; that of a store that was not in use replaces none.
        let was_used = index.store.is_none_or(|used| used.kind == self.chosen.kind);
        let moves_key = was_used || to.store.get(&Key::journal())?.is_none();
        let journal = Some(Key::journal()).filter(|_| moves_key);
        if let Some(journal) = &journal
            && let Some(key) = self.store.get(journal)?
        {
            to.store.set(journal, &key)?;
        }
        Index::change(&self.directory, |index| {
            index.generation += 1;
            index.store = Some(to.chosen.clone());
            for name in &names {
                if let Some(listed) = index.names.get_mut(name.as_str()) {
                    listed.store = to.chosen.kind;
                }
            }
            Ok(())
        })?;
        for key in names.iter().map(Key::of).chain(journal) {
            self.store.remove(&key)?;
        }
        Ok(names)
    }
}
