//! Arguments of the commands that work in a supervisor's state directory.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::state_dir::supervise_dir;
use crate::tool::supervision::SessionRole;
use karyi_core::error::ToolError;

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
}
