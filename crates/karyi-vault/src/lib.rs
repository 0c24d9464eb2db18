//! Names to values: the session's secrets, their way into commands and their way out of output.
//!
//! [`session::Secrets`] holds the values. [`substitute`] puts them into plain text, [`shell`] lets
//! a script refer to them without holding them, and [`redact`] takes them out of everything that
//! is shown again. [`policy`] says what a value may be used for. [`store`] keeps values beyond the
//! session, [`index`] lists them without their values, [`keep`] joins the two, and [`load`] gives a
//! session what they hold. Prompts are not here.

pub mod index;
pub mod policy;
pub mod redact;
pub mod rewriting;
pub mod session;
pub mod shell;
pub mod shell_lexer;
pub mod store;
pub mod substitute;
pub mod sync;
pub mod usage_warnings;
pub mod vault;

pub use visible::visible_bytes;

mod file_watch;
mod interpreters;
mod visible;
