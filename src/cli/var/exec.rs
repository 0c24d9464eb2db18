//! `karyi var exec`: runs a program with secrets in its environment.
//!
//! The program takes the place of this process. What it prints is not masked: this is for a person who
//! runs a program of their own. The policy counts as it does for a command of a script, but that
//! starting the program is the agreement that `use = ask` wants.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use jiff::Timestamp;

use crate::cli::say;
use crate::cli::var::{Done, existing};
use crate::cli::vault::{self, VaultFlags};
use crate::error::{ErrorCode, ToolError};
use crate::pty::guard;

/// Exit status for a program that is not there, as of a shell.
const NOT_FOUND: u8 = 127;
/// Exit status for one that is there and cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// Runs a program.
pub(super) fn exec(flags: &VaultFlags, names: &[String], command: &[OsString]) -> Done {
    let Some((program, arguments)) = command.split_first() else {
        return Err(
            ToolError::new(ErrorCode::Usage, "there is no program to run")
                .with_hint("name it after --"),
        );
    };
    let vault = existing(flags)?;
    let cwd = std::env::current_dir().map_err(|error| {
        ToolError::from_io(".".as_ref(), &error).with_hint("start it in a directory that is there")
    })?;
    let mut command = Command::new(program);
    command.args(arguments);
    for name in names {
        let name = vault::name(name)?;
        let record = vault.get(&name)?;
        let policy = &record.policy;
        policy.check_use(&name, "command", &cwd, Timestamp::now())?;
        if !policy.is_meant_for(&file_name(program)) {
            say(&format!(
                "warning: {name} is meant for other programs than {}",
                file_name(program)
            ));
        }
        command.env(name.as_str(), record.value.expose());
    }
    // Nothing of this process is left when it works.
    guard::give_back();
    let (code, problem) = match command.exec() {
        error if error.kind() == ErrorKind::NotFound => (
            NOT_FOUND,
            "it is not there, or the interpreter of its first line is not".to_owned(),
        ),
        error => (NOT_EXECUTABLE, error.to_string()),
    };
    // Its name is not repeated: a value may stand there by mistake.
    say(&format!("the program after -- cannot be run: {problem}"));
    say("hint: name it by its path; `ls -l` of that says whether it can be run");
    Ok(ExitCode::from(code))
}

/// Returns what a policy calls a program.
fn file_name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}
