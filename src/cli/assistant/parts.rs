//! The conversation of the assistant, and the start of each one.

use crate::chat::answer_run::AnswerRunner;
use crate::chat::conversation::Conversation;
use crate::cli::assistant::project::Project;
use karyi_model::ModelRequest;

/// The conversation, and a runner for calls of the user, which need no consent.
pub(super) struct Parts {
    pub(super) conversation: Conversation,
    pub(super) own: AnswerRunner,
}

/// Start of each conversation.
#[derive(Debug, Default)]
pub(super) struct Opening {
    pub(super) request: ModelRequest,
    /// Tokens of the model's context.
    pub(super) window: Option<u64>,
    /// Notes, skills and commands of the project.
    pub(super) project: Project,
}
