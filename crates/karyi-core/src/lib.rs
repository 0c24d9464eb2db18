//! Plain values, errors and limits that every karyi crate shares.
//!
//! No module but [`temporary_files`] does I/O or knows a tool. [`call`] is a tool call as the model wrote it;
//! [`outcome`] and [`error`] are its result, with exit statuses and hints; [`secret`] holds names, wiped values and
//! templates with placeholders; [`head_tail`] keeps both ends of long output; [`limits`] has every cap and timeout of
//! the program.

pub mod call;
pub mod error;
pub mod head_tail;
pub mod ids;
pub mod limits;
pub mod outcome;
pub mod secret;
#[cfg(unix)]
pub mod shell_word;
pub mod similar_names;
pub mod span;
pub mod temporary_files;
pub mod words;
