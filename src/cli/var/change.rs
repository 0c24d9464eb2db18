//! `karyi var rm`, `rename` and `migrate`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use crate::cli::say;
use crate::cli::var::args::Target;
use crate::cli::var::{Done, existing, place};
use crate::cli::vault::{self, StoreName, VaultFlags};
use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::Vault;
use crate::vault::store::{Key, Kind};

/// Removes secrets.
pub(super) fn remove(flags: &VaultFlags, names: &[String]) -> Done {
    let names: Vec<SecretName> = names
        .iter()
        .map(|name| vault::name(name))
        .collect::<Result<BTreeSet<_>, _>>()?
        .into_iter()
        .collect();
    let vault = existing(flags).map_err(|error| match error.code {
        // Where nothing is kept no name is there either.
        ErrorCode::UndefinedVariable => absent(&names, ""),
        _ => error,
    })?;
    let is_any_store = flags.vault == StoreName::Auto;
    check_removable(&vault, is_any_store, &names)?;
    let mut removed: Vec<&str> = Vec::new();
    for name in &names {
        let done = remove_one(&vault, is_any_store, name);
        let told = done.map_err(|error| match names.len() {
            1 => error,
            _ => ToolError {
                message: format!("{}; {}", error.message, so_far(&removed)),
                ..error
            },
        })?;
        say(&told);
        removed.push(name.as_str());
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what of several things was done before one failed.
fn so_far(removed: &[&str]) -> String {
    match removed {
        [] => "nothing was removed".to_owned(),
        removed => format!("removed before that: {}", removed.join(", ")),
    }
}

/// Checks that every name can be removed, before one of them is.
fn check_removable(
    vault: &Vault,
    is_any_store: bool,
    names: &[SecretName],
) -> Result<(), ToolError> {
    let held = vault.store().list()?;
    // Whoever names a store means what that one holds, and not another value of the name.
    let elsewhere = |name: &&SecretName| is_any_store || !held.contains(name);
    let mut elsewhere = names.iter().filter(elsewhere);
    elsewhere.try_for_each(|name| vault.check_place(name))?;
    let mut missing: Vec<SecretName> = Vec::new();
    for name in names.iter().filter(|name| !held.contains(name)) {
        if !vault.is_listed(name)? {
            missing.push(name.clone());
        }
    }
    match missing.len() {
        0 => Ok(()),
        count if count == names.len() => Err(absent(&missing, "")),
        _ => Err(ToolError {
            hint: "see `karyi var list`; without them the others are removed".into(),
            ..absent(&missing, "; nothing was removed")
        }),
    }
}

/// Returns the error for names that no secret has.
fn absent(names: &[SecretName], more: &str) -> ToolError {
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    let message = format!("there is no secret called {}{more}", names.join(", "));
    ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi var list`")
}

/// Removes one, and says what was done.
fn remove_one(vault: &Vault, is_any_store: bool, name: &SecretName) -> Result<String, ToolError> {
    let own = vault.store().kind();
    if !is_any_store && let Some(other) = vault.remove_copy(name)? {
        return Ok(format!(
            "removed from the store {own}; {name} is still kept in the store {other}"
        ));
    }
    // When it went meanwhile, it is gone all the same.
    vault.remove(name)?;
    Ok(format!("{name} is removed from the store {own}"))
}

/// Gives a secret another name.
pub(super) fn rename(flags: &VaultFlags, from: &str, to: &str) -> Done {
    let (from, to) = (vault::name(from)?, vault::name(to)?);
    existing(flags)?.rename(&from, &to)?;
    say(&format!("{from} is called {to} now"));
    Ok(ExitCode::SUCCESS)
}

/// Moves everything of the store that is used, or of one that is named, into another store.
pub(super) fn migrate(flags: &VaultFlags, target: Target) -> Done {
    let from = existing(flags)?;
    if !from.store().kind().is_persistent() {
        let message = format!("the store {} keeps nothing to move", from.store().kind());
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("name the store to move from: --vault os or --vault age"));
    }
    let to = VaultFlags {
        vault: match target {
            Target::Os => StoreName::Os,
            Target::Age => StoreName::Age,
        },
        ..flags.clone()
    };
    let place = place(&to)?;
    let index = Index::read(&place.directory)?;
    let Some(chosen) = place
        .chosen(&index)
        .filter(|chosen| chosen.kind != from.store().kind())
    else {
        return match flags.vault {
            StoreName::Auto => finish(flags, &from),
            _ => Err(already(from.store().kind())),
        };
    };
    let chosen = place.with_identity(chosen)?;
    let names = from.migrate(&place.vault(chosen.clone()))?;
    say(&format!(
        "moved {} to the store {}",
        names.len(),
        chosen.kind
    ));
    Ok(ExitCode::SUCCESS)
}

/// Moves what a migration into the store in use left in the other one, which both may hold alike.
fn finish(flags: &VaultFlags, used: &Vault) -> Done {
    let own = used.store().kind();
    let (vault, kind) = match own {
        Kind::Age => (StoreName::Os, Kind::Os),
        _ => (StoreName::Age, Kind::Age),
    };
    let place = place(&VaultFlags {
        vault,
        ..flags.clone()
    })?;
    let Some(old) = place.chosen(&Index::read(&place.directory)?) else {
        return Err(already(own));
    };
    let had_file = kind == Kind::Age && place.has_age_file();
    let old = place.vault(old);
    let names = old.store().list();
    let names = names.map_err(|error| unseen(own, kind, &error))?;
    if names.is_empty() && !had_file && old.store().get(&Key::journal())?.is_none() {
        return Err(already(own));
    }
    let count = old.migrate(used)?.len();
    say(&format!(
        "moved {count} to the store {own}; nothing is left in the store {kind}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a migration into the store in use.
fn already(own: Kind) -> ToolError {
    let message = format!("the secrets are in the store {own} already");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("name another store with --to, or the one to move from with --vault")
}

/// Returns the error for a store that may have what a migration left, and cannot be looked into.
fn unseen(own: Kind, other: Kind, error: &ToolError) -> ToolError {
    let message = format!(
        "the secrets are in the store {own} already; whether copies are left in the store {other} could not be \
         seen: {}: {}",
        error.code.as_str(),
        error.message
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(&error.hint)
}
