//! The tools of an assistant: files in two directories of its own, commands, pages, duties and plans.

pub mod bash;
pub mod read_file;
pub mod write_file;
