//! Events of a conversation, for whoever shows them. All texts are redacted.

use karyi_model::{Retry, Usage};
use karyi_vault::redact::Redacted;

use crate::exec::Event;
use crate::tool::plan_board::PlanStep;

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
    /// The model has replaced its plan.
    Plan(&'a [PlanStep]),
    /// A text that the user wrote during the turn goes to the model with the next request.
    Joined(&'a str),
    /// The answer has ended, and so have its calls: the tokens of the step.
    StepEnded(Usage),
    /// The model is asked to sum the conversation up.
    CompactionStarted,
    /// This summary has taken the place of the messages so far.
    Compacted(&'a str),
    /// Something that the user should know, such as that the chat is not saved any more.
    Note(&'a str),
}

/// Shows the events of a conversation.
pub trait Observer: Send {
    /// Shows an event.
    fn event(&mut self, event: &ChatEvent<'_>);
}

/// Shows the reasoning that a stream lets out.
pub(super) fn show_reasoning(show: impl FnOnce(&ChatEvent<'_>), pass: impl FnOnce(&mut Redacted)) {
    let mut text = Redacted::default();
    pass(&mut text);
    if !text.as_str().is_empty() {
        show(&ChatEvent::Reasoning(text.as_str()));
    }
}
