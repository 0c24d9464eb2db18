//! Lock of a state directory for one supervisor.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};

use karyi_core::error::{ErrorCode, ToolError};

use crate::state_directory::StateDirectory;

/// Name of the file; it holds the process id of the supervisor.
const FILE: &str = "supervisor.lock";

/// Lock that one process has until it ends.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
}

impl InstanceLock {
    /// Takes the lock.
    ///
    /// # Errors
    /// `supervisor_running` naming the process that has it, or the system fails.
    pub fn take(state: &StateDirectory) -> Result<Self, ToolError> {
        let mut file = state.root.open_or_create(FILE)?;
        let mut locked = file.try_lock();
        // Whoever only looks lets go at once.
        while matches!(locked, Err(TryLockError::WouldBlock)) && !is_held(state, &file)? {
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Without it the message is shorter.
                let _ = file.take(20).read_to_string(&mut pid);
                let path = state.path().display();
                let message = format!("{path}: a supervisor works here, process {}", pid.trim());
                return Err(ToolError::new(ErrorCode::SupervisorRunning, message));
            }
            Err(TryLockError::Error(error)) => return Err(state.root.error(FILE, &error)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| state.root.error(FILE, &error))?;
        Ok(Self { file })
    }

    /// Returns true when a supervisor works in the directory.
    ///
    /// # Errors
    /// The system fails.
    pub fn is_taken(state: &StateDirectory) -> Result<bool, ToolError> {
        match state.root.open_existing(FILE)? {
            Some((file, _)) => is_held(state, &file),
            None => Ok(false),
        }
    }

    /// Tells whether its file is still in its place: without it another supervisor may begin.
    #[must_use]
    pub fn is_there(&self, state: &StateDirectory) -> bool {
        state.root.leads_to(FILE, &self.file)
    }
}

/// Returns true when a supervisor holds the lock. It holds it alone, while a look like this shares it for a moment.
fn is_held(state: &StateDirectory, file: &File) -> Result<bool, ToolError> {
    match file.try_lock_shared() {
        Ok(()) => match file.unlock() {
            Ok(()) => Ok(false),
            Err(error) => Err(state.root.error(FILE, &error)),
        },
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(state.root.error(FILE, &error)),
    }
}
