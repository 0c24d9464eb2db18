//! Reading, matching, writing and searching files.
//!
//! [`matching`] and [`closest`] work on text alone; [`transaction`] changes several files or none and
//! records it in the [`journal`], from which [`undo`] takes it back; [`edit`] is made of both. [`view`],
//! [`listing`] and [`search`] read; [`root`] says which file a path means and whether it may be
//! touched, [`place`] whether two paths could mean the same one. Nothing here knows a tool, and
//! nothing runs in the background.

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
mod missing;
mod multi_error;
mod opener;
mod parallel;
mod prefetch;
mod request;
mod skeleton;
mod state_file;
mod trailing;
mod verbatim;
mod wal;
mod working_copy;
