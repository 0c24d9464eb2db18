//! `karyi var rm`, `rename` and `migrate`.

use std::process::ExitCode;

use crate::cli::say;
use crate::cli::var::args::Target;
use crate::cli::var::{Done, existing, place};
use crate::cli::vault::{self, StoreName, VaultFlags};
use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;

/// Removes secrets.
pub(super) fn remove(flags: &VaultFlags, names: &[String]) -> Done {
    let names: Vec<SecretName> = names
        .iter()
        .map(|name| vault::name(name))
        .collect::<Result<_, _>>()?;
    let vault = existing(flags)?;
    if flags.vault == StoreName::Auto {
        names.iter().try_for_each(|name| vault.check_place(name))?;
    }
    let mut missing = Vec::new();
    for name in &names {
        // Whoever names a store means what that one holds, and not another value of the name.
        if flags.vault != StoreName::Auto
            && let Some(other) = vault.remove_copy(name)?
        {
            let own = vault.store().kind();
            say(&format!(
                "removed from the store {own}; {name} is still kept in the store {other}"
            ));
            continue;
        }
        if !vault.remove(name)? {
            missing.push(name.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!("there is no secret called {}", missing.join(", "));
    Err(ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi var list`"))
}

/// Gives a secret another name.
pub(super) fn rename(flags: &VaultFlags, from: &str, to: &str) -> Done {
    let (from, to) = (vault::name(from)?, vault::name(to)?);
    existing(flags)?.rename(&from, &to)?;
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
    let chosen = place.chosen(&Index::read(&place.directory)?);
    let Some(chosen) = chosen.filter(|chosen| chosen.kind != from.store().kind()) else {
        let message = format!(
            "the secrets are in the store {} already",
            from.store().kind()
        );
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("name another store with --to, or the one to move from with --vault"));
    };
    let names = from.migrate(&place.vault(chosen.clone()))?;
    say(&format!(
        "moved {} to the store {}",
        names.len(),
        chosen.kind
    ));
    Ok(ExitCode::SUCCESS)
}
