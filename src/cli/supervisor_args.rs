//! Arguments of the commands that work in a supervisor's state directory.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::state_dir::supervise_dir;
use crate::tool::supervision::SessionRole;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_tasks::state_directory::StateDirectory;

/// Role that a run plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RoleName {
    /// Talks with the user and hands work over
    Teller,
    /// Plans work for Workers
    Planner,
}

impl From<RoleName> for SessionRole {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Teller => Self::Teller,
            RoleName::Planner => Self::Planner,
        }
    }
}

/// State directory of a supervisor.
#[derive(Debug, Args, Default)]
pub(super) struct StateDirArgs {
    /// Directory with the tasks of a supervisor [default: supervise/default in karyi's state directory]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state_dir: Option<PathBuf>,
}

impl StateDirArgs {
    /// Returns the directory.
    ///
    /// # Errors
    /// None is given, and karyi has no state directory.
    pub(super) fn path(&self) -> Result<PathBuf, ToolError> {
        match &self.state_dir {
            Some(path) => Ok(path.clone()),
            None => supervise_dir(),
        }
    }

    /// Opens the directory, which was used before.
    ///
    /// # Errors
    /// `not_found` when it was not, or the system does not allow it.
    pub(super) fn open_used(&self) -> Result<StateDirectory, ToolError> {
        let path = self.path()?;
        match path.join("planner/queue").metadata() {
            Ok(_) => StateDirectory::open(&path),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let message = format!(
                    "expected the state directory of a supervisor, found that none has used {}",
                    path.display()
                );
                let hint =
                    "give the `--state-dir` of `karyi supervise`, or begin with `karyi tell`";
                Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint))
            }
            Err(error) => Err(ToolError::from_io(&path, &error)),
        }
    }
}
