//! Status of each secret: agreement of index and store.

use std::collections::BTreeSet;

use crate::index::{Index, IndexEntry};
use crate::store::Kind;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

/// Agreement of index and store about a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretState {
    /// Both have it.
    Kept,
    /// The index lists it, and the store has no value.
    MissingValue,
    /// The store has a value, and the index does not list it.
    Untracked,
    /// The index lists it for another store than the chosen one.
    Elsewhere,
    /// The store was not read.
    Unknown,
}

impl SecretState {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::MissingValue => "missing value",
            Self::Untracked => "untracked",
            Self::Elsewhere => "other store",
            Self::Unknown => "unknown",
        }
    }
}

/// Status of one secret.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretStatus {
    /// Name.
    pub name: SecretName,
    /// Entry of the index.
    pub listed: Option<IndexEntry>,
    /// Agreement of index and store.
    pub state: SecretState,
}

/// Checks that a store is the one of the index: it holds at least one name listed for it, or none is listed.
///
/// # Errors
/// `vault_unavailable` when the file is missing or the keyring is another one.
pub fn check_same_store(index: &Index, kind: Kind, held: &[SecretName]) -> Result<(), ToolError> {
    let is_of_it = |name: &SecretName| index.get(name).is_some_and(|listed| listed.store == kind);
    let listed: Vec<SecretName> = index.secret_names().filter(is_of_it).collect();
    let held: BTreeSet<&SecretName> = held.iter().collect();
    // The removal of the last name may have been interrupted.
    let may_be_gone = listed.len() <= usize::from(!index.is_whole());
    if may_be_gone || listed.iter().any(|name| held.contains(name)) {
        return Ok(());
    }
    let count = listed.len();
    let message = format!(
        "the index lists names in the store {kind} ({count} of them), and the store has none"
    );
    let place = match kind {
        Kind::Age => "the file vault.age",
        Kind::Os | Kind::Memory | Kind::Env => "the keyring",
    };
    let hint = format!(
        "restore {place} that held them, or remove them ({count}) from the index with `karyi var doctor --repair`"
    );
    Err(ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint))
}

/// Returns the names that the index lists for other kinds of store, with that kind.
#[must_use]
pub fn names_in_other_stores(index: &Index, kind: Kind) -> Vec<(SecretName, Kind)> {
    let others = index.names.iter().filter(|(_, l)| l.store != kind);
    let named = others.map(|(name, listed)| Some((SecretName::parse(name)?, listed.store)));
    named.flatten().collect()
}

/// Combines the index with the names in the store; `None` means that the store was not read.
#[must_use]
pub fn secret_statuses(
    index: &Index,
    chosen: Option<Kind>,
    stored: Option<&[SecretName]>,
) -> Vec<SecretStatus> {
    let names: Option<BTreeSet<&SecretName>> = stored.map(|names| names.iter().collect());
    let state = |name: &SecretName, store: Kind| match &names {
        _ if chosen.is_some_and(|kind| kind != store) => SecretState::Elsewhere,
        Some(names) if names.contains(name) => SecretState::Kept,
        Some(_) => SecretState::MissingValue,
        None => SecretState::Unknown,
    };
    let listed = index.secret_names().filter_map(|name| {
        let listed = index.get(&name)?.clone();
        let state = state(&name, listed.store);
        Some(SecretStatus {
            name,
            listed: Some(listed),
            state,
        })
    });
    let mut rows: Vec<SecretStatus> = listed.collect();
    let names = stored.unwrap_or_default();
    let untracked = names.iter().filter(|name| index.get(name).is_none());
    rows.extend(untracked.map(|name| SecretStatus {
        name: name.clone(),
        listed: None,
        state: SecretState::Untracked,
    }));
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}
