//! Makes the key of the undo journal. It is kept like a value: under the lock of the index, so that no migration leaves
//! it behind, and with a new generation, so that every session learns that there is one to be masked.

use std::path::Path;
use std::sync::Arc;

use crate::index::StoreChoice;
use crate::store::Store;
use crate::store::journal_key::{self, JournalKey};
use crate::vault::Vault;
use karyi_core::error::ToolError;

/// Returns the key of the undo journal that a store keeps, made at the first time; nothing when the store does not
/// last, or is not the one in use and holds nothing. `directory` is that of the index.
///
/// # Errors
/// What the store or the system says; `vault_busy` when another process keeps the index locked.
pub fn journal_key(
    directory: &Path,
    chosen: StoreChoice,
    store: &Arc<dyn Store>,
) -> Result<Option<JournalKey>, ToolError> {
    let kind = chosen.kind;
    if !kind.is_persistent() {
        return Ok(None);
    }
    let vault = Vault::new(directory.to_owned(), chosen, Arc::clone(store));
    vault.with_lock(|locked| {
        // Two processes that make one at the same time must not use two.
        if let Some(key) = journal_key::stored_key(store.as_ref())? {
            return Ok(Some(key));
        }
        let index = locked.index().clone();
        let is_used = |used: &StoreChoice| used.kind == kind;
        // Where everything was moved away nobody would look for it.
        if !index.store.as_ref().is_none_or(is_used) && store.list()?.is_empty() {
            return Ok(None);
        }
        locked
            .change_store(index, || journal_key::create(store.as_ref()))
            .map(Some)
    })
}
