//! Texts derived from the registry: grammars, help, JSON and the model's prompt.

pub mod grammar;
pub mod help;
pub mod prompt;
