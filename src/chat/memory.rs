//! Memory of a conversation: its state, and the transcript that is written in step with it.

use crate::chat::history::History;
use crate::chat::transcript::file::TranscriptWriter;
use crate::chat::transcript::record::Record;
use crate::chat::transcript::state::ChatState;
use karyi_model::{Effort, ModelRequest};

/// State of a conversation, saved when it has a transcript.
#[derive(Default)]
pub(super) struct Memory {
    state: ChatState,
    writer: Option<TranscriptWriter>,
    /// Reason why the chat is no longer saved, until it was told.
    problem: Option<String>,
}

impl Memory {
    /// Starts with a history, without a transcript.
    pub(super) fn new(history: History) -> Self {
        Self {
            state: ChatState::new(history),
            ..Self::default()
        }
    }

    /// Goes on with a state.
    pub(super) fn resume(state: ChatState, writer: Option<TranscriptWriter>) -> Self {
        Self {
            state,
            writer,
            problem: None,
        }
    }

    /// Replaces the start of the requests, which no transcript has.
    pub(super) fn replace_start(&mut self, start: ModelRequest) {
        self.state.replace_start(start);
    }

    /// Returns the state.
    pub(super) fn state(&self) -> &ChatState {
        &self.state
    }

    /// Returns the messages.
    pub(super) fn history(&self) -> &History {
        self.state.history()
    }

    /// Asks for another effort from the next request on.
    pub(super) fn set_effort(&mut self, effort: Option<Effort>) {
        self.state.set_effort(effort);
    }

    /// Returns the id of the chat, when it is saved.
    pub(super) fn chat_id(&self) -> Option<&str> {
        self.writer.as_ref().map(TranscriptWriter::id)
    }

    /// Writes a record and applies it. After a failure nothing more is written: a transcript with a gap would tell the
    /// model something else than what happened.
    pub(super) fn record(&mut self, record: &Record) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.write(record)
        {
            let path = writer.path().display();
            self.problem = Some(format!(
                "the chat is not saved any more: writing {path}: {error}"
            ));
            self.writer = None;
        }
        self.state.apply(record);
    }

    /// Returns, once, why the chat is no longer saved.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}
