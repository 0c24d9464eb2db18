//! The registry as text: grammars, help, JSON, and what a model is told.

pub mod grammar;
pub mod help;
pub mod prompt;
