//! The user's settings: `config.toml`, its keys, and the language model that it names.
//!
//! Only the user's own file is read, never one of a project: a project could otherwise send requests elsewhere.

mod args;
mod change;
mod check;
mod command;
mod editor;
mod error;
mod file;
mod keys;
mod list;
mod model;
mod place;
mod settings;

pub(super) use args::ConfigArgs;
pub(super) use command::config;
pub(super) use model::{ChosenModel, KeySource, NoModel, chosen_model};
pub(super) use settings::Settings;
