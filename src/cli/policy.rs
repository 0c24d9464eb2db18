//! `karyi policy`, and the approvals of a session: the rules of `config.toml`, of the project, and those that the user
//! has stored with the answer "always".

mod args;
mod command;
mod project;
mod store;
mod trust;

pub(super) use args::PolicyArgs;
pub(super) use command::policy;
pub(super) use project::approvals;
pub(super) use trust::is_trusted;
