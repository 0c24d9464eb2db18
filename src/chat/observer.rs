//! Events of a conversation, for whoever shows them. All texts are redacted.

use karyi_model::{Retry, Usage};

use crate::exec::Event;

/// Event of a conversation.
#[derive(Debug)]
pub enum ChatEvent<'a> {
    /// A request goes to the model: the number of the step, from 1.
    Request(u64),
    /// An attempt failed, and the request is sent again.
    Retry(&'a Retry),
    /// Piece of the model's reasoning.
    Reasoning(&'a str),
    /// Piece of the answer outside blocks.
    Text(&'a str),
    /// Event of a call, or a diagnostic of a block.
    Call(&'a Event),
    /// The answer has ended, and so have its calls: the tokens of the step.
    StepEnded(Usage),
}

/// Shows the events of a conversation.
pub trait Observer: Send {
    /// Shows an event.
    fn event(&mut self, event: &ChatEvent<'_>);
}
