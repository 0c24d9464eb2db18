//! What index and store say of the secrets, and whether they agree.

use std::collections::BTreeSet;

use crate::index::{Index, IndexEntry};
use crate::store::Kind;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

/// How index and store agree about a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretState {
    /// Both know it.
    Kept,
    /// The index lists it, and the store has no value.
    MissingValue,
    /// The store has a value, and the index does not list it.
    Untracked,
    /// The index lists it for another store than the one that is used.
    Elsewhere,
    /// The store was not asked.
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

/// One line of a list of secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretStatus {
    /// Its name.
    pub name: SecretName,
    /// What the index knows of it.
    pub listed: Option<IndexEntry>,
    /// How index and store agree.
    pub state: SecretState,
}

/// Checks that a store that answers is the one the index lists: it has a name of those listed for it,
/// or none is.
///
/// # Errors
/// `vault_unavailable`: the file is gone, or the keyring is another one.
pub fn check_same_store(index: &Index, kind: Kind, held: &[SecretName]) -> Result<(), ToolError> {
    let is_of_it = |name: &SecretName| index.get(name).is_some_and(|listed| listed.store == kind);
    let listed: Vec<SecretName> = index.secret_names().filter(is_of_it).collect();
    let held: BTreeSet<&SecretName> = held.iter().collect();
    // The removal of the last one may have broken off.
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
        "bring {place} back that held them, or forget them ({count}) with `karyi var doctor --repair`"
    );
    Err(ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint))
}

/// Returns the names that the index lists for another store than one of some kind, and that store.
#[must_use]
pub fn names_in_other_stores(index: &Index, kind: Kind) -> Vec<(SecretName, Kind)> {
    let others = index.names.iter().filter(|(_, l)| l.store != kind);
    let named = others.map(|(name, listed)| Some((SecretName::parse(name)?, listed.store)));
    named.flatten().collect()
}

/// Joins what the index knows with the names that the store of some kind holds; without them the store was
/// not asked.
#[must_use]
pub fn secret_statuses(
    index: &Index,
    chosen: Option<Kind>,
    kept: Option<&[SecretName]>,
) -> Vec<SecretStatus> {
    let names: Option<BTreeSet<&SecretName>> = kept.map(|names| names.iter().collect());
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
    let names = kept.unwrap_or_default();
    let untracked = names.iter().filter(|name| index.get(name).is_none());
    rows.extend(untracked.map(|name| SecretStatus {
        name: name.clone(),
        listed: None,
        state: SecretState::Untracked,
    }));
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}
