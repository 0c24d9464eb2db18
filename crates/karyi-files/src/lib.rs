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
pub mod journal;
pub mod kind;
pub mod lines;
pub mod listing;
pub mod matching;
pub mod place;
pub mod recode;
pub mod recover;
pub mod risk;
pub mod root;
pub mod search;
pub mod tracked;
pub mod transaction;
pub mod undo;
pub mod view;

mod attributes;
mod commit;
mod directory;
mod document;
mod draft;
mod dress;
mod early;
mod exact;
mod image;
mod intent;
mod links;
mod locks;
mod missing;
mod own_file;
mod pair;
mod several;
mod skeleton;
mod target;
mod trailing;
mod unmatched;
mod wanted;
