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

impl Parts {
    /// Returns how the chat goes on later; nothing when nothing was said in it, or it is not saved.
    pub(super) fn how_to_go_on(&self) -> Option<String> {
        let chat = &self.conversation;
        let id = chat
            .chat_id()
            .filter(|_| chat.state().history().turn_count() > 0)?;
        Some(format!("`karyi --resume {id}` goes on with this chat"))
    }
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
