//! Creates the key of the undo journal. It is stored like a value: under the lock of the index, so that a migration
//! includes it, and with a new generation, so that running sessions learn to mask it.

use std::path::Path;
use std::sync::Arc;

use crate::index::StoreChoice;
use crate::store::Store;
use crate::store::journal_key::{self, JournalKey};
use crate::vault::Vault;
use karyi_core::error::ToolError;

/// Returns the key of the undo journal, created at the first use. Returns `None` when the store is not persistent, or
/// is not the one in use and is empty. `directory` is that of the index.
///
/// # Errors
/// Errors of the store or the file system; `vault_busy` when another process holds the lock of the index.
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
        // Two processes must not create two keys.
        if let Some(key) = journal_key::stored_key(store.as_ref())? {
            return Ok(Some(key));
        }
        let index = locked.index().clone();
        let is_used = |used: &StoreChoice| used.kind == kind;
        // After a migration away from this store its key would never be used.
        if !index.store.as_ref().is_none_or(is_used) && store.list()?.is_empty() {
            return Ok(None);
        }
        locked
            .change_store(index, || journal_key::create(store.as_ref()))
            .map(Some)
    })
}
