//! Makes the key of the undo journal. It is kept like a value: under the lock of the index, so that no migration leaves
//! it behind, and with a new generation, so that every session learns that there is one to be masked.

use std::path::Path;
use std::sync::Arc;

use crate::error::ToolError;
use crate::vault::index::{Chosen, Index};
use crate::vault::keep::Vault;
use crate::vault::store::Store;
use crate::vault::store::journal::{self, JournalKey};

/// Returns the key of the undo journal that a store keeps, made at the first time; nothing when the store does not
/// last, or is not the one in use and holds nothing. `directory` is that of the index.
///
/// # Errors
/// What the store or the system says; `vault_busy` when another process keeps the index locked.
pub fn journal_key(
    directory: &Path,
    store: &Arc<dyn Store>,
) -> Result<Option<JournalKey>, ToolError> {
    let kind = store.kind();
    if !kind.is_persistent() {
        return Ok(None);
    }
    let identity = None;
    let chosen = Chosen { kind, identity };
    Vault::new(directory.to_owned(), chosen, Arc::clone(store)).made_journal_key()
}

impl Vault {
    fn made_journal_key(&self) -> Result<Option<JournalKey>, ToolError> {
        // Before a key is made up for a store that gets none.
        if self.is_left(&Index::read(&self.directory)?)? {
            return Ok(None);
        }
        self.unlock()?;
        self.locked(|own, locked| {
            let store = own.store.as_ref();
            // Two processes that make one at the same time must not use two.
            if let Some(key) = journal::kept_key(store)? {
                return Ok(Some(key));
            }
            let index = locked.index().clone();
            if own.is_left(&index)? {
                return Ok(None);
            }
            // Of a lost index none is made up: a file without one is told of.
            match index == Index::default() {
                true => journal::make(store),
                false => locked.around(index.clone(), index, || journal::make(store)),
            }
            .map(Some)
        })
    }

    /// Whether everything was moved away from the store, perhaps since this run began: nobody would look for the key
    /// there.
    fn is_left(&self, index: &Index) -> Result<bool, ToolError> {
        let used = index.store.as_ref();
        let is_left = used.is_some_and(|used| used.kind != self.chosen.kind);
        Ok(is_left && self.store.list()?.is_empty())
    }
}
