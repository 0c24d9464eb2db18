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
//!
//! # A front end with many turns
//!
//! ```text
//! let mut chat = Conversation::new(model, runner, History::new(request), limits, cancel).with_window(window);
//! let store = ChatStore::new(directory, redactor);
//! chat.enter_chat(ChatState::new(history), Some(store.create(&cwd, "model")?));    // a new chat, saved
//! let (transcript, writer) = store.resume(&id)?;                                   // or one to go on with
//! chat.enter_chat(ChatState::replay(request, &transcript), Some(writer));
//!
//! let cancel = chat.turn_cancel();               // kept by the front end: Esc calls cancel.cancel()
//! let report = chat.turn_until(Prompt::of(text), &cancel, &mut observer).await;
//! ```
//!
//! A turn that is cancelled by its own switch ends within a moment: the model is not asked any further, the command that
//! runs gets INT, TERM and KILL, one second apart, and its call the status `killed`; a job of an earlier call gets
//! Ctrl+C. The shell, its directory and other jobs live on, and the next turn tells the model what ran. The switch of the
//! conversation ends the session as well.
//!
//! `rename`, `rewind`, `compact`, `undo_compaction` and `tell` (a text for the model that the user did not type) work
//! between turns; [`transcript::state::ChatState`] has the plan, title, tokens and cost.

mod answer_end;
pub mod answer_run;
mod call_results;
pub mod compaction;
pub mod context_use;
pub mod conversation;
pub mod example;
mod guards;
pub mod history;
mod memory;
pub mod notes;
pub mod observer;
mod recorder;
pub mod steering;
mod time_limit;
pub mod transcript;
pub mod turn;
