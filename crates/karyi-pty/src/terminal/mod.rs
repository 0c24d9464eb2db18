//! The terminal and the FIFOs of one shell, and how the shell is spawned.

pub mod bootstrap;
pub(crate) mod directory;
pub(crate) mod fast_path;
pub mod key;
pub(crate) mod live_shell;
pub(crate) mod mark_fifo;
pub(crate) mod marks;
pub(crate) mod output_hints;
mod procfs_handles;
pub(crate) mod script_file;
pub(crate) mod spawn;
