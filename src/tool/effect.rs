//! Resources a call may touch, as far as they are known before it runs.

use karyi_core::secret::Template;

/// Resources a call may touch. The executor decides from this alone which calls may overlap.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The session: the shell, its directory, and through it any file.
    Session,
    /// These paths, relative to the session's directory at the time the call starts.
    Files(Vec<Access>),
    /// Nothing another call could observe: a question to the user.
    Alone,
}

/// Access to one path and everything below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The path as written.
    pub path: Template,
    /// True for a write.
    pub is_write: bool,
}

impl Access {
    /// Returns a read access.
    #[must_use]
    pub fn read(path: &Template) -> Self {
        Self {
            path: path.clone(),
            is_write: false,
        }
    }

    /// Returns a write access.
    #[must_use]
    pub fn write(path: &Template) -> Self {
        Self {
            path: path.clone(),
            is_write: true,
        }
    }
}
