//! The registry as text: help, JSON, and what a model is told.

pub mod help;
pub mod prompt;
