//! Conversations for the sessions of a supervisor, made by the front end that knows models, shells and secrets.

use crate::chat::conversation::Conversation;
use crate::chat::turn::TurnLimits;
use crate::exec::cancel::Cancel;
use crate::tool::context::Boxed;
use crate::tool::supervision::SharedSupervision;
use karyi_core::error::ToolError;

/// Work that a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// Talks with the user.
    Teller,
    /// Plans a task.
    Planner,
    /// Carries a task out.
    Worker,
    /// Decides questions of conditions.
    Judge,
}

impl SessionKind {
    /// Returns the word in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Teller => "teller",
            Self::Planner => "planner",
            Self::Worker => "worker",
            Self::Judge => "judge",
        }
    }

    /// Returns the text that teaches the role.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Teller => include_str!("../../docs/roles/teller.md"),
            Self::Planner => include_str!("../../docs/roles/planner.md"),
            Self::Worker => include_str!("../../docs/roles/worker.md"),
            Self::Judge => include_str!("../../docs/roles/judge.md"),
        }
    }
}

/// Facts of a session that begins.
#[derive(Clone)]
pub struct SessionStart {
    /// Work of the session.
    pub kind: SessionKind,
    /// Limits of its one turn.
    pub limits: TurnLimits,
    /// Ends the session with all its processes.
    pub cancel: Cancel,
    /// Part of a Teller or Planner in the work of the supervisor.
    pub supervision: SharedSupervision,
}

/// Maker of conversations.
pub trait Conversations: Send + Sync {
    /// Begins a conversation with the tools of its role.
    fn begin(&self, start: SessionStart) -> Boxed<'_, Result<Conversation, ToolError>>;
}
