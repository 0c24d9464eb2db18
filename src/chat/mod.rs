//! A conversation with a model that acts.
//!
//! ```text
//! user text ─ request ─ answer ─┬─ prose: shown as it arrives
//!                 ▲             └─ calls: run as soon as their end is certain ─ report ─┐
//!                 └─────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A [`conversation::Conversation`] asks until an answer has no call, and has no terminal: an [`observer::Observer`]
//! shows what happens. Only the text of an answer runs, never its reasoning, a report or what the user wrote.

pub mod answer_run;
mod call_results;
pub mod conversation;
pub mod example;
mod guards;
pub mod history;
pub mod observer;
pub mod turn;
