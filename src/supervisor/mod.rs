//! Work that goes on while nobody watches: sessions of models over a directory of tasks.
//!
//! ```text
//! karyi tell ─ inbox ─ Teller ─ delegate ─ planner/queue ─ Planner ─ staged work ─ worker/queue ─ Workers
//!                 ▲                                          │ triggers ─ conditions ─┘        │
//!                 └────────────────────── events ◀───────────┴────────────── results ◀─────────┘
//! ```
//!
//! [`work_loop::Supervisor`] is the loop: it claims tasks, starts sessions, and writes down how they ended. The state is
//! in files (`karyi-tasks`), so the loop may be killed at any instant. It has no terminal and no environment: whoever
//! starts it passes the [`conversations::Conversations`] and takes its [`notice::Notice`]s.

pub mod announcer;
pub mod budget;
pub mod conversations;
mod endings;
pub mod notice;
pub mod planner_end;
mod session;
pub mod settings;

pub mod told;
pub mod verdicts;
mod wakes;
pub mod work_loop;
