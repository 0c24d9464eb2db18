//! Options of the session for the commands of karyi that the assistant starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::cli::own_program;
use crate::cli::session_args::SessionArgs;
use crate::cli::vault::VaultFlags;

/// Options of the session for the commands that it starts.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnOptions {
    cwd: Option<PathBuf>,
    tools: Vec<OsString>,
    vault: Vec<OsString>,
}

impl OwnOptions {
    /// Takes the options of a session.
    pub(super) fn of(session: &SessionArgs) -> Self {
        let VaultFlags {
            vault,
            age_identity,
            // The descriptor was read to its end.
            age_passphrase_fd: _,
        } = &session.vault;
        let mut flags: Vec<OsString> = Vec::new();
        if let Some(kind) = vault.0 {
            flags.extend(["--vault".into(), kind.as_str().into()]);
        }
        if let Some(path) = age_identity {
            flags.extend(["--age-identity".into(), path.into()]);
        }
        Self {
            cwd: session.cwd.clone(),
            tools: session.offer.as_args(),
            vault: flags,
        }
    }

    /// Returns the command with the options that it takes.
    pub(super) fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(own_program::own_program()?);
        command.args(arguments);
        command.args(match arguments.first() {
            Some(&"tools") => self.tools.as_slice(),
            Some(&("var" | "history" | "undo")) => self.vault.as_slice(),
            _ => &[],
        });
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        // The screen has the terminal, so nobody can answer.
        command.env("CI", "true").stdin(Stdio::null());
        command.kill_on_drop(true);
        Ok(command)
    }
}
