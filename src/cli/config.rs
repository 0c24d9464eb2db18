//! The user's settings: `config.toml`, its keys, and the language model that it names.
//!
//! Only the user's own file counts: a project could otherwise send requests elsewhere. Of the file of a project only the
//! rules about approval are taken.

mod approval;
mod args;
mod change;
mod check;
mod command;
mod credentials;
mod editor;
mod error;
mod file;
mod import;
mod keys;
mod line_ends;
mod list;
mod model;
mod place;
mod settings;
mod supervise;
mod tools;
mod web;
mod worker_power;

pub(super) use args::ConfigArgs;
pub(super) use command::config;
pub(super) use credentials::is_credential;
pub(super) use error::SettingsError;
pub(super) use file::write as write_file;
pub(super) use import::{ImportResult, import};
pub(super) use model::{ChosenModel, KeySource, NoModel, chosen_model, model_of_setting};
pub(super) use place::read as read_file;
pub(super) use settings::Settings;
pub(super) use tools::tool_settings;
pub(super) use worker_power::WorkerPower;
