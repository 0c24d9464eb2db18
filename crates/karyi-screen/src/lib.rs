//! The screen of a program that talks: history scrolls away as ordinary lines, and a live region below is redrawn.
//!
//! ```text
//! model text ─ markdown ─┐
//! results ─ card, diff ──┴─ styled lines ─ live_region ─ one write per frame ─ terminal
//! terminal ─ keys ─ input_box ─ text
//! ```
//!
//! Nothing here reads the environment or opens a terminal: sizes, texts and outputs are given. Hostile text is made
//! visible before it is laid out ([`safe_text`]).

pub mod card;
pub mod choice_list;
pub mod diff;
pub mod frame_clock;
mod highlight;
pub mod input_box;
pub mod keys;
pub mod live_region;
pub mod markdown;
pub mod safe_text;
pub mod status_line;
pub mod styled_line;
pub mod terminal_guard;
pub mod theme;
