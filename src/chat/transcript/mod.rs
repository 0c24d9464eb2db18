//! Transcripts: every chat is a file of records, so that it can be listed, shown and gone on with.
//!
//! A transcript is what a chat is: [`state::ChatState`] is made of its records alone, both while the chat runs and when
//! it is resumed, so a resumed chat sends the same bytes. Nothing in a transcript is ever run. Every text is redacted.
//! The front end decides the directory.

pub mod export;
pub mod file;
pub mod record;
pub mod state;
pub mod store;
