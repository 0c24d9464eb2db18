//! What a call may touch, as far as it can be known before it runs.

use karyi_core::secret::Template;

/// What a call may touch. From this alone the executor decides which calls may overlap.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The session: the shell, its directory, and through it any file.
    Session,
    /// These paths, relative to the session's directory when the call's turn comes.
    Files(Vec<Access>),
    /// Nothing that another call could see: a question to the user.
    Alone,
}

/// Access to one path and everything below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The path as written.
    pub path: Template,
    /// Whether it is changed.
    pub is_write: bool,
}

impl Access {
    /// Makes an access that only looks.
    #[must_use]
    pub fn read(path: &Template) -> Self {
        Self {
            path: path.clone(),
            is_write: false,
        }
    }

    /// Makes an access that changes.
    #[must_use]
    pub fn write(path: &Template) -> Self {
        Self {
            path: path.clone(),
            is_write: true,
        }
    }
}
