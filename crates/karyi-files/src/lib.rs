//! Reads, searches and atomically changes files, and records changes so that they can be undone.
//!
//! # Changing files
//!
//! [`edit::apply`] takes find and replace pairs for several files and changes all of them or none. It is
//! built from smaller parts:
//!
//! - [`matching`] applies pairs to one text in memory; [`closest`] explains a text that was not found.
//! - [`transaction`] locks the paths, stages the new contents, records the decision in a write-ahead log, and
//!   renames the files into place. [`recover`] completes or rolls back what a killed process left.
//! - [`journal`] stores the old contents, and [`undo`] takes changes back.
//!
//! # Reading files
//!
//! [`view`] reads a file or lists a directory, [`search`] finds patterns below a path, [`encoding`] detects
//! text encodings.
//!
//! # Paths
//!
//! [`root`] resolves paths and confines them to a directory; [`path_identity`] decides whether two paths could
//! name the same file. Limits such as file sizes and timeouts are in `karyi_core::limits`. The crate has no
//! background threads, and knows no tools. `examples/edit_and_undo.rs` is a whole program.

pub mod change;
pub mod closest;
pub mod diff;
pub mod edit;
pub mod encoding;
pub mod git_index;
pub mod journal;
pub mod kind;
pub mod line_reader;
pub mod listing;
pub mod matching;
pub mod path_identity;
pub mod recode;
pub mod recover;
pub mod risk;
pub mod root;
pub mod search;
pub mod transaction;
pub mod undo;
pub mod view;

mod attributes;
mod commit;
mod directory;
mod document;
mod image;
mod links;
mod locks;
mod match_error;
mod metadata;
mod multi_error;
mod opener;
mod parallel;
mod prefetch;
mod request;
mod secret_line_breaks;
mod similar_paths;
mod skeleton;
mod state_file;
mod trailing_blanks;
mod wal;
mod working_copy;
