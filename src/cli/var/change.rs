//! `karyi var rm`, `rename` and `migrate`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use crate::cli::say;
use crate::cli::var::{CommandResult, existing, place};
use crate::cli::vault::{self, StoreName, VaultFlags};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;
use karyi_vault::index::Index;
use karyi_vault::store::{Key, Kind};
use karyi_vault::vault::Vault;

/// Removes secrets; all names are checked before any is removed.
pub(super) fn remove(flags: &VaultFlags, names: &[String]) -> CommandResult {
    let names = names.iter().map(|name| vault::name(name));
    let names: Vec<SecretName> = names
        .collect::<Result<BTreeSet<_>, _>>()?
        .into_iter()
        .collect();
    let vault = existing(flags).map_err(|error| match error.code {
        // Without a store no name exists.
        ErrorCode::UndefinedVariable => absent(&names, names.len()),
        _ => error,
    })?;
    // A named store means its own value, not another value of the name.
    let is_any_store = flags.vault.0.is_none();
    let held = vault.store().list()?;
    let mut missing = Vec::new();
    for name in &names {
        if is_any_store || !held.contains(name) {
            vault.check_other_stores(name)?;
        }
        if !held.contains(name) && !vault.is_listed(name)? {
            missing.push(name.clone());
        }
    }
    if !missing.is_empty() {
        return Err(absent(&missing, names.len()));
    }
    let own = vault.store().kind();
    for name in &names {
        let copy = match is_any_store {
            true => None,
            false => vault.remove_copy(name)?,
        };
        match copy {
            Some(other) => say(&format!(
                "removed from the store {own}; {name} is still in the store {other}"
            )),
            None => {
                // Removed by another process meanwhile: that is success.
                vault.remove(name)?;
                say(&format!("{name} is removed from the store {own}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for names without a secret, out of `count` names to remove.
fn absent(names: &[SecretName], count: usize) -> ToolError {
    let (more, hint) = match names.len() == count {
        true => ("", "see `karyi var list`"),
        false => (
            "; nothing was removed",
            "see `karyi var list`; without them the others are removed",
        ),
    };
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    let message = format!("there is no secret called {}{more}", names.join(", "));
    ToolError::new(ErrorCode::NotFound, message).with_hint(hint)
}

/// Renames a secret.
pub(super) fn rename(flags: &VaultFlags, from: &str, to: &str) -> CommandResult {
    let (from, to) = (vault::name(from)?, vault::name(to)?);
    existing(flags)?.rename(&from, &to)?;
    say(&format!("{from} is now called {to}"));
    Ok(ExitCode::SUCCESS)
}

/// Moves all secrets of the store in use, or of a named one, into another store. When the target is in use,
/// only the leftovers of an interrupted migration are removed.
pub(super) fn migrate(flags: &VaultFlags, target: Kind) -> CommandResult {
    let from = existing(flags)?;
    let kind = from.store().kind();
    if !kind.is_persistent() {
        let message = format!("the store {kind} has nothing to move");
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("name the store to move from: --vault os or --vault age"));
    }
    let is_used = kind == target;
    if is_used && flags.vault.0.is_some() {
        return Err(already(kind));
    }
    let other = match is_used {
        true => other_than(kind),
        false => target,
    };
    let place = place(&VaultFlags {
        vault: StoreName(Some(other)),
        ..flags.clone()
    })?;
    let Some(chosen) = place.chosen(&Index::read(&place.directory)?) else {
        return Err(already(kind));
    };
    if is_used {
        let had_file = other == Kind::Age && place.has_age_file();
        return finish(&from, &place.vault(chosen), had_file);
    }
    let chosen = place.with_identity(chosen)?;
    let count = from.migrate(&place.vault(chosen))?.len();
    say(&format!("moved {count} to the store {target}"));
    Ok(ExitCode::SUCCESS)
}

/// Completes an interrupted migration: removes what the other store still holds.
fn finish(used: &Vault, old: &Vault, had_file: bool) -> CommandResult {
    let (own, other) = (used.store().kind(), old.store().kind());
    let names = old.store().list();
    let names = names.map_err(|error| unseen(own, other, &error))?;
    if names.is_empty() && !had_file && old.store().get(&Key::journal())?.is_none() {
        return Err(already(own));
    }
    let count = old.migrate(used)?.len();
    say(&format!(
        "moved {count} to the store {own}; nothing is left in the store {other}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a store that may hold leftovers and cannot be read.
fn unseen(own: Kind, other: Kind, error: &ToolError) -> ToolError {
    let message = format!(
        "the secrets are in the store {own} already; whether copies are left in the store {other} could not be \
         seen: {}: {}",
        error.code.as_str(),
        error.message
    );
    let hint = match other {
        Kind::Age => {
            format!("name what opens it: `karyi var migrate --to {own} --age-identity FILE`")
        }
        _ => format!(
            "if copies may be left there, start the keyring and repeat `karyi var migrate --to {own}`"
        ),
    };
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Returns the error for a migration into the store in use.
fn already(own: Kind) -> ToolError {
    let message = format!("the secrets are in the store {own} already");
    let hint = format!(
        "move them into the other one with `karyi var migrate --to {}`",
        other_than(own)
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

fn other_than(kind: Kind) -> Kind {
    match kind {
        Kind::Os => Kind::Age,
        Kind::Age | Kind::Memory | Kind::Env => Kind::Os,
    }
}
