//! `karyi var get` and `karyi var export`: the two commands that print values, on a terminal only.

use std::io::IsTerminal;
use std::process::ExitCode;

use zeroize::Zeroizing;

use crate::cli::print;
use crate::cli::var::{Done, dotenv, existing};
use crate::cli::vault::{self, VaultFlags};
use crate::error::{ErrorCode, ToolError};

/// Prints one value.
pub(super) fn get(flags: &VaultFlags, name: &str) -> Done {
    let name = vault::name(name)?;
    let vault = existing(flags)?;
    check_terminal()?;
    let record = vault.get(&name)?;
    let line = Zeroizing::new(format!("{}\n", record.value.expose()));
    Ok(print(&line))
}

/// Prints all values.
pub(super) fn export(flags: &VaultFlags) -> Done {
    let vault = existing(flags)?;
    check_terminal()?;
    for name in vault.store().list()? {
        let record = vault.get(&name)?;
        let code = print(&dotenv::line(name.as_str(), record.value.expose()));
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Values are for eyes: what is redirected ends in a file or in a program's memory.
fn check_terminal() -> Result<(), ToolError> {
    if std::io::stdout().is_terminal() {
        return Ok(());
    }
    let message = "values are printed on a terminal only, and standard output is none";
    Err(ToolError::new(ErrorCode::PermissionDenied, message)
        .with_hint("give a program its values with `karyi var exec NAME -- CMD`"))
}
