//! `karyi var exec`: runs a program with secrets in its environment.
//!
//! The program takes the place of this process. What it prints is not masked: this is for a person who
//! runs a program of their own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use jiff::Timestamp;

use crate::cli::var::{Done, existing};
use crate::cli::vault::{self, VaultFlags};
use crate::error::{ErrorCode, ToolError};

/// Runs a program.
pub(super) fn exec(flags: &VaultFlags, names: &[String], command: &[OsString]) -> Done {
    let Some((program, arguments)) = command.split_first() else {
        return Err(
            ToolError::new(ErrorCode::Usage, "there is no program to run")
                .with_hint("name it after --"),
        );
    };
    let vault = existing(flags)?;
    let mut command = Command::new(program);
    command.args(arguments);
    for name in names {
        let name = vault::name(name)?;
        let record = vault.get(&name)?;
        if record
            .policy
            .expires
            .is_some_and(|end| end <= Timestamp::now())
        {
            let message = format!("{name} has expired");
            return Err(ToolError::new(ErrorCode::SecretExpired, message));
        }
        command.env(name.as_str(), record.value.expose());
    }
    // Nothing of this process is left when it works.
    let error = command.exec();
    Err(ToolError::from_io(program.as_ref(), &error))
}
