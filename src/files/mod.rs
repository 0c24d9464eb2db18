//! Reading, matching, writing and searching files.
//!
//! [`matching`] and [`closest`] work on text alone; [`edit`] changes several files or none;
//! [`view`], [`listing`] and [`search`] read; [`root`] says which file a path means and whether it
//! may be touched. Nothing here knows a tool, and nothing runs in the background.

pub mod closest;
pub mod edit;
pub mod kind;
pub mod listing;
pub mod matching;
pub mod root;
pub mod search;
pub mod tracked;
pub mod view;

mod commit;
mod document;
mod target;
