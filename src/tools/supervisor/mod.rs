//! The tools of a supervisor's Teller and Planner: work, triggers, questions, history and memory.

pub mod ask_user;
pub mod cancel_task;
pub mod condition_argument;
pub mod delegate;
pub mod get_history_by_time;
pub mod get_recent_history;
pub mod list_tasks;
pub mod messages;
pub mod remember;
pub mod reply;
pub mod role_check;
pub mod schedule;
pub mod search_memory;
