//! The notebook of a person's duties: `TODO.md` and `TODO.DONE.md`, and the contacts that they name.
//!
//! Everything here takes paths and texts. The two files change together in one transaction, and every line that is no
//! entry stays where it is. No language model is asked here.

pub mod contacts;
pub mod reference;
pub mod todo_entry;
pub mod todo_file;
pub mod todo_match;
pub mod todo_store;
