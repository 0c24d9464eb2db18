//! The process and the system a session runs on.

pub(crate) mod error_hints;
pub mod guard;
pub mod health;
pub mod inherited;
pub mod runtime;
