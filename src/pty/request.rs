//! What a session refuses before anything of a command reaches its shell.

use std::io;
use std::path::Path;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{Binding, NotInZsh};

use super::options::CommandRequest;
use super::place::may_enter;
use super::session::Session;
use super::shell;

impl Session {
    /// Refuses a command that this shell cannot run as it is meant.
    pub(super) fn check_command(&self, request: &CommandRequest) -> Result<(), ToolError> {
        if !request.bindings.is_empty() && !self.shared().kind.takes_secrets() {
            let message = format!("{} cannot take secrets", self.shared().name);
            return Err(ToolError::new(ErrorCode::UnsupportedShell, message));
        }
        for binding in &request.bindings {
            check_binding(binding)?;
            self.check_zsh(binding)?;
        }
        match &request.cwd {
            Some(directory) => check_directory(directory),
            None => Ok(()),
        }
    }

    /// zsh makes more of some values than other shells.
    fn check_zsh(&self, binding: &Binding) -> Result<(), ToolError> {
        if binding.needs_zsh && self.shared().kind != shell::Kind::Zsh {
            let message = "a brace or parenthesis is not closed";
            return Err(ToolError::new(ErrorCode::UnsafeContext, message)
                .with_hint("end the command before } with a semicolon or a new line"));
        }
        let reason = binding.not_in_zsh;
        let Some(reason) = reason.filter(|_| self.shared().kind == shell::Kind::Zsh) else {
            return Ok(());
        };
        let (message, hint) = match reason {
            NotInZsh::Backslash => (
                "echo and print of zsh read backslashes, and the value of a placeholder there holds some",
                "print it with printf '%s\\n' \"$KARYI{NAME}\", echo -E or print -r",
            ),
            NotInZsh::Code => (
                "zsh may calculate with a value where a placeholder stands, or read it as code, and the value holds characters that could be code",
                "put the value into a variable first: x=$KARYI{NAME}, or run with --shell /bin/bash",
            ),
        };
        Err(ToolError::new(ErrorCode::UnsafeNestedParse, message).with_hint(hint))
    }
}

fn check_binding(binding: &Binding) -> Result<(), ToolError> {
    let is_name = crate::secret::SecretName::parse(&binding.variable).is_some();
    let value = binding.value.expose();
    if is_name && value.len() <= limits::MAX_SECRET_BYTES && !value.contains('\0') {
        return Ok(());
    }
    let message = format!(
        "the secret for ${} does not fit a shell variable",
        binding.variable
    );
    Err(ToolError::new(ErrorCode::BadValue, message))
}

fn check_directory(directory: &Path) -> Result<(), ToolError> {
    match std::fs::metadata(directory) {
        Ok(file) if file.is_dir() => {
            may_enter(directory).map_err(|error| ToolError::from_io(directory, &error))
        }
        Ok(_) => Err(ToolError::from_io(
            directory,
            &io::ErrorKind::NotADirectory.into(),
        )),
        Err(error) => Err(ToolError::from_io(directory, &error)),
    }
}
