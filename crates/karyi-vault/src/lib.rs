//! Secrets for programs that run scripts written by language models.
//!
//! A script refers to a secret by a placeholder, `$KARYI{NAME}`. The model never sees the value:
//!
//! - [`session::Secrets`] holds the values of one session in wiped memory.
//! - [`shell`] rewrites a script so that it reads its secrets from variables; [`substitute`] inserts them into plain
//!   text.
//! - [`redact`] masks every value, in any usual encoding, in everything that is shown, logged or sent.
//! - [`policy`] restricts the tools, hosts, programs and directories of a secret; [`usage_warnings`] reports doubtful
//!   uses.
//! - [`store`] saves values in the keyring of the system or in an age file, [`index`] lists them without their values,
//!   [`vault`] changes both together, and [`sync`] loads them into a running session.
//!
//! The features `os` and `age`, on by default, select the stores. Prompts and the command line are not part of this
//! crate.

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
