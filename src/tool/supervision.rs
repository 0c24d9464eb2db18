//! Part of a session in a supervisor's work: its role and the state directory.
//!
//! The role comes from whoever begins the session, never from a text. What a Planner stages becomes real when the session
//! ends well; what a Teller delegates is real at once.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_tasks::lifecycle;
use karyi_tasks::staged_work::{PlannerSession, StagedWork, check_count};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, TaskRequest};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_log;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::json;

use crate::tool::schema::Property;

/// Role that has tools of the family `supervisor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRole {
    /// Talks with the user and hands work over.
    Teller,
    /// Plans work for Workers.
    Planner,
}

impl SessionRole {
    /// Returns the word of the role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Teller => "teller",
            Self::Planner => "planner",
        }
    }

    /// Tells whether the role may give an argument: those of one role have its word as the annotation `role`.
    #[must_use]
    pub fn may_give(self, argument: &Property<'_>) -> bool {
        let role = argument.annotation("role");
        role.is_none_or(|role| role == self.as_str())
    }
}

/// Returns the roles that have a tool.
#[must_use]
pub fn roles_of(tool: &str) -> &'static [SessionRole] {
    match tool {
        "delegate" | "list_tasks" | "cancel_task" => &[SessionRole::Teller, SessionRole::Planner],
        "reply" | "remember" | "ask_user" => &[SessionRole::Teller],
        "get_recent_history" | "get_history_by_time" | "search_memory" | "schedule" => {
            &[SessionRole::Planner]
        }
        _ => &[],
    }
}

/// Part of a session in a supervisor's work.
#[derive(Debug)]
pub struct Supervision {
    state: Arc<StateDirectory>,
    role: SessionRole,
    name: String,
    aging: Aging,
    work: Mutex<SessionWork>,
}

#[derive(Debug)]
struct SessionWork {
    /// Number of things that the Teller made.
    calls: u64,
    /// Number of tasks that the Teller has handed over.
    delegated: usize,
    planner: PlannerSession,
}

impl Supervision {
    /// Begins a session in a state directory. Its name tells it from all others; one that is repeated has the same name.
    #[must_use]
    pub fn new(state: Arc<StateDirectory>, role: SessionRole, name: &str) -> Self {
        let work = SessionWork {
            calls: 0,
            delegated: 0,
            planner: PlannerSession::new(name),
        };
        Self {
            state,
            role,
            name: name.to_owned(),
            aging: Aging::Off,
            work: Mutex::new(work),
        }
    }

    /// Sets the effect of waiting on the order of tasks.
    #[must_use]
    pub fn with_aging(self, aging: Aging) -> Self {
        Self { aging, ..self }
    }

    /// Checks that the role of the session has a tool.
    ///
    /// # Errors
    /// `tool_not_allowed`, which is logged in the state directory, or the system fails.
    pub fn check_tool(&self, tool: &str) -> Result<(), ToolError> {
        if self.has_tool(tool) {
            return Ok(());
        }
        let role = self.role.as_str();
        let fields = json!({"role": role, "tool": tool});
        let fields = fields.as_object().cloned().unwrap_or_default();
        task_log::log(&self.state, self.now(), "tool_not_allowed", fields)?;
        let message = format!("the role {role} has no tool {tool}");
        Err(ToolError::new(ErrorCode::ToolNotAllowed, message))
    }

    /// Tells whether the role of the session has a tool.
    #[must_use]
    pub fn has_tool(&self, tool: &str) -> bool {
        roles_of(tool).contains(&self.role)
    }

    /// Returns the role of the session.
    #[must_use]
    pub fn role(&self) -> SessionRole {
        self.role
    }

    /// Returns the state directory.
    #[must_use]
    pub fn state(&self) -> &StateDirectory {
        &self.state
    }

    /// Returns the effect of waiting on the order of tasks.
    #[must_use]
    pub fn aging(&self) -> Aging {
        self.aging
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Returns the identifier of the next thing that the session makes.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.calls += 1;
        TaskId::derived(&self.name, work.calls)
    }

    /// Hands work over: a task for the Planner, or what the Planner stages.
    ///
    /// # Errors
    /// The plan waits for nothing that is there, the session has handed too much over, or the system fails.
    pub fn delegate(
        &self,
        request: TaskRequest,
        plan: Option<TriggerPlan>,
    ) -> Result<TaskId, ToolError> {
        if self.role == SessionRole::Teller {
            self.count_delegated()?;
            return lifecycle::delegate(&self.state, self.next_id(), request, self.now());
        }
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let condition = match &plan {
            Some(TriggerPlan::Conditional(condition, _) | TriggerPlan::Once(condition)) => {
                Some(condition)
            }
            Some(TriggerPlan::Recurring(_) | TriggerPlan::Scheduled(_)) | None => None,
        };
        if let Some(condition) = condition {
            self.state.check_waits(condition, work.planner.staged())?;
        }
        work.planner.stage(request, plan, self.now())
    }

    fn count_delegated(&self) -> Result<(), ToolError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        check_count(work.delegated)?;
        work.delegated += 1;
        Ok(())
    }

    /// Drops what the session has staged; returns false when it is nothing of this identifier.
    pub fn unstage(&self, id: &TaskId) -> bool {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.planner.cancel(id)
    }

    /// Makes what was staged real, at the end of a session that ended well.
    ///
    /// # Errors
    /// The system fails.
    pub fn commit(&self) -> Result<(), ToolError> {
        lifecycle::commit(&self.state, self.take_staged(), self.now())
    }

    /// Takes what was staged out of the session.
    #[must_use]
    pub fn take_staged(&self) -> StagedWork {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::replace(&mut work.planner, PlannerSession::new(&self.name));
        ended.into_staged()
    }
}

/// Shared access of a context.
pub type SharedSupervision = Option<Arc<Supervision>>;
