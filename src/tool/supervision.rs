//! Part of a session in a supervisor's work: its role and the state directory.
//!
//! The role comes from whoever begins the session, never from a text. What a Planner stages becomes real when the session
//! ends well; what a Teller delegates is real at once.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_tasks::lifecycle;
use karyi_tasks::staged_work::{PlannerSession, StagedWork};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::TaskRequest;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::trigger::TriggerPlan;

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
    state: StateDirectory,
    role: SessionRole,
    name: String,
    work: Mutex<SessionWork>,
}

#[derive(Debug)]
struct SessionWork {
    /// Number of things that the Teller made.
    calls: u64,
    planner: PlannerSession,
}

impl Supervision {
    /// Begins a session in a state directory. Its name tells it from all others; one that is repeated has the same name.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open(path: &Path, role: SessionRole, name: &str) -> Result<Self, ToolError> {
        let work = SessionWork {
            calls: 0,
            planner: PlannerSession::new(name),
        };
        Ok(Self {
            state: StateDirectory::open(path)?,
            role,
            name: name.to_owned(),
            work: Mutex::new(work),
        })
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
    /// The plan waits for nothing that is there, the session has staged too much, or the system fails.
    pub fn delegate(
        &self,
        request: TaskRequest,
        plan: Option<TriggerPlan>,
    ) -> Result<TaskId, ToolError> {
        if self.role == SessionRole::Teller {
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
