//! Checks a command before anything of it reaches the shell.

use std::io;
use std::path::Path;

use karyi_core::error::{ErrorCode, ToolError};

use crate::session::Session;
use crate::session::options::CommandRequest;
use crate::terminal::directory::may_enter;

impl Session {
    /// Returns an error for a command that this shell cannot run as requested.
    pub(crate) fn check_command(&self, request: &CommandRequest) -> Result<(), ToolError> {
        if !request.bindings.is_empty() && !self.shared().dialect.takes_secrets() {
            let message = format!("{} cannot take secrets", self.shared().name);
            return Err(ToolError::new(ErrorCode::UnsupportedShell, message));
        }
        match &request.cwd {
            Some(directory) => check_directory(directory),
            None => Ok(()),
        }
    }
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
