//! The tools of an assistant: files in two directories of its own, commands, pages, duties and plans.

pub mod bash;
pub mod plan_create;
pub mod read_file;
pub mod todo_update;
pub mod url_fetch;
pub mod web_search;
pub mod write_file;
