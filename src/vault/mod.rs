//! Names to values: the session's secrets, their way into commands and their way out of output.
//!
//! [`session::Secrets`] holds the values. [`substitute`] puts them into plain text, [`shell`] lets
//! a script refer to them without holding them, and [`redact`] takes them out of everything that
//! is shown again. Stores that outlive the session, policies and prompts are not here.

pub mod redact;
pub mod session;
pub mod shell;
pub mod substitute;

mod programs;
mod script;
mod words;
