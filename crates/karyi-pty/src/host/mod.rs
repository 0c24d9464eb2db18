//! This process and its system: checks, protection of secrets, inherited state, the runtime directory.

pub(crate) mod error_hints;
pub mod guard;
pub mod health;
pub mod inherited;
pub mod runtime;
