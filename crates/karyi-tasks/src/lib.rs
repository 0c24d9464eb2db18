//! Tasks, triggers, questions, history and memory of a supervisor, in a directory of files.
//!
//! [`state_directory`] opens the directory; the other modules are its operations. None of them knows a tool, a model or
//! a terminal, starts a thread, or reads a clock: the time is an argument.
//!
//! - [`lifecycle`] queues, claims and finishes tasks; [`cancellation`] takes them back; [`listing`] lists them.
//! - [`staged_work`] holds what a Planner delegates until it ends well.
//! - [`evaluation`] looks at the triggers ([`trigger`]) and their conditions ([`condition`]).
//! - [`question`], [`inbox`] and [`teller_input`] carry texts between people and the Teller; [`history`] keeps them.
//! - [`memory`] remembers and searches.
//! - [`spending`] counts the tokens of a day; `file_watch` wakes a supervisor.
//! - [`settle`] completes what a killed process left; [`instance_lock`] admits one supervisor.
//!
//! ```
//! use karyi_tasks::lifecycle::{claim, delegate};
//! use karyi_tasks::state_directory::StateDirectory;
//! use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
//! use karyi_tasks::task_id::TaskId;
//!
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path();
//! let now = "2026-01-31T10:00:00Z".parse()?;
//! let state = StateDirectory::open(path)?;
//! let request = TaskRequest::new("read the news", None, None)?;
//! delegate(&state, TaskId::random()?, request, now)?;
//! let task = claim(&state, TaskRole::Planner, Aging::Off, now)?;
//! assert_eq!(task.map(|task| task.attempts), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod argument;
pub mod cancellation;
pub mod condition;
pub mod evaluation;
pub mod event;
#[cfg(target_os = "linux")]
pub mod file_watch;
pub mod history;
pub mod inbox;
pub mod inbox_item;
pub mod instance_lock;
pub mod lifecycle;
pub mod listing;
pub mod memory;
pub mod memory_index;
pub mod pauses;
pub mod question;
pub mod settle;
pub mod spending;
pub mod staged_work;
pub mod state_directory;
pub mod task;
pub mod task_id;
pub mod task_log;
pub mod task_result;
pub mod teller_input;
pub mod trigger;

pub use folder::BrokenFile;

mod folder;
mod passages;
mod state_folder;
mod watched_files;
