//! Plain values that every karyi crate shares: places in a text, limits, calls, errors, outcomes and secrets.

pub mod call;
pub mod capped;
pub mod error;
pub mod ids;
pub mod limits;
pub mod outcome;
pub mod secret;
#[cfg(unix)]
pub mod shell_word;
pub mod similar_names;
pub mod span;
pub mod temporary_files;
