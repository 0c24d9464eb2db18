//! Conversations with a model that plays a script: real shells, real files, no network.

mod answers;
mod breaks;
mod harness;
mod interruptions;
mod secrets;
mod summaries;
mod transcripts;
