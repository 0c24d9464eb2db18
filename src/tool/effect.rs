//! Resources a call may touch, as far as they are known before it runs.

use karyi_core::secret::Template;

/// Resources a call may touch. The executor decides from this alone which calls may overlap.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The session: the shell, its directory, and through it any file.
    Session,
    /// These paths; those of the session are relative to its directory at the time the call starts.
    Files(Vec<Access>),
    /// Something that is not on this machine, or a program of its own, and perhaps files.
    Outside {
        /// True when the call may change it.
        is_write: bool,
        /// The files.
        files: Vec<Access>,
    },
    /// Nothing another call could observe: a question to the user.
    Alone,
}

impl Effect {
    /// Returns the files that the call names.
    #[must_use]
    pub fn files(&self) -> &[Access] {
        match self {
            Self::Files(files) | Self::Outside { files, .. } => files,
            Self::Session | Self::Alone => &[],
        }
    }
}

/// Directory that a path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathBase {
    /// The session's directory.
    Session,
    /// The assistant's directory of files that may be removed.
    Cache,
    /// The assistant's directory of lasting files.
    State,
}

/// Access to one path and everything below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Directory that the path is relative to.
    pub base: PathBase,
    /// The path, as written below the base.
    pub path: Template,
    /// True for a write.
    pub is_write: bool,
}

impl Access {
    /// Returns a read access.
    #[must_use]
    pub fn read(path: &Template) -> Self {
        Self {
            base: PathBase::Session,
            path: path.clone(),
            is_write: false,
        }
    }

    /// Returns a write access.
    #[must_use]
    pub fn write(path: &Template) -> Self {
        Self {
            base: PathBase::Session,
            path: path.clone(),
            is_write: true,
        }
    }
}
