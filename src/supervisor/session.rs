//! One session of a model: its one turn, from the first message to how it ended.

use std::sync::Arc;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_model::{ModelErrorKind, Usage};
use karyi_tasks::evaluation::ConditionQuestion;
use karyi_tasks::question;
use karyi_tasks::staged_work::StagedWork;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Task, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::teller_input::TellerInput;

use crate::chat::conversation::Conversation;
use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::turn::{Prompt, TurnEnd};
use crate::exec::cancel::Cancel;
use crate::supervisor::budget::Budget;
use crate::supervisor::conversations::{Conversations, SessionKind, SessionStart};
use crate::supervisor::planner_end::PlannerEnd;

/// Work that a session was started for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SessionWork {
    /// Deals with what is new.
    Teller(TellerInput),
    /// Works on a claimed task.
    Task(TaskRole, Task),
    /// Decides questions.
    Verdicts(Vec<ConditionQuestion>),
}

impl SessionWork {
    pub(super) fn kind(&self) -> SessionKind {
        match self {
            Self::Teller(_) => SessionKind::Teller,
            Self::Task(TaskRole::Planner, _) => SessionKind::Planner,
            Self::Task(TaskRole::Worker, _) => SessionKind::Worker,
            Self::Verdicts(_) => SessionKind::Judge,
        }
    }
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SessionResult {
    /// It ended by itself, with the text of the last message.
    Done(String),
    /// A Planner ended by itself, and has staged this.
    Planner(PlannerEnd, StagedWork),
    /// The last message of a Planner could not be read twice, for this reason.
    Unreadable(String),
    /// The Teller has asked a question.
    Asked,
    /// The tokens of the day are used up.
    TokensUsedUp,
    /// The model could not be used, for this reason.
    ModelFailed(String),
    /// Its time is up.
    TimeIsUp,
    /// It was ended from outside.
    Cancelled,
    /// It came to another limit or did not get on, for this reason.
    Stuck(String),
}

/// Resources that all sessions share.
#[derive(Clone)]
pub(super) struct SessionResources {
    pub(super) conversations: Arc<dyn Conversations>,
    pub(super) state: Arc<StateDirectory>,
    pub(super) budget: Arc<Budget>,
}

/// Text for a Planner whose last message cannot be read.
const READ_AGAIN: &str = "Your last message cannot be read: ";

impl SessionResources {
    /// Runs a session whose first message is `text`.
    pub(super) async fn run(self, start: SessionStart, text: String) -> SessionResult {
        let began = self.conversations.begin(start.clone()).await;
        match began {
            Ok(mut chat) => {
                let result = self.talk(&mut chat, &start, &text).await;
                chat.close().await;
                result
            }
            Err(error) => {
                SessionResult::Stuck(format!("{}: {}", error.code.as_str(), error.message))
            }
        }
    }

    async fn talk(
        &self,
        chat: &mut Conversation,
        start: &SessionStart,
        text: &str,
    ) -> SessionResult {
        let result = self.turn(chat, start, text).await;
        let SessionResult::Done(message) = result else {
            return result;
        };
        if start.kind != SessionKind::Planner {
            return SessionResult::Done(message);
        }
        let unreadable = match PlannerEnd::read(&message) {
            Ok(end) => return planned(end, start),
            Err(unreadable) => unreadable.0,
        };
        let again = format!("{READ_AGAIN}{unreadable}. Write it again.\n");
        match self.turn(chat, start, &again).await {
            SessionResult::Done(message) => match PlannerEnd::read(&message) {
                Ok(end) => planned(end, start),
                Err(unreadable) => SessionResult::Unreadable(unreadable.0),
            },
            other => other,
        }
    }

    async fn turn(
        &self,
        chat: &mut Conversation,
        start: &SessionStart,
        text: &str,
    ) -> SessionResult {
        let mut observer = SessionObserver::new(self, start);
        let report = chat
            .turn_until(Prompt::of(text), &start.cancel, &mut observer)
            .await;
        // Answers that the server did not count are estimated.
        observer.spend(report.tokens.saturating_sub(observer.tokens));
        match report.end {
            _ if observer.has_asked => SessionResult::Asked,
            TurnEnd::Done => SessionResult::Done(report.answer),
            TurnEnd::Tokens => SessionResult::TokensUsedUp,
            _ if observer.is_used_up => SessionResult::TokensUsedUp,
            TurnEnd::Time => SessionResult::TimeIsUp,
            TurnEnd::Cancelled => SessionResult::Cancelled,
            TurnEnd::Steps => {
                SessionResult::Stuck(format!("its {} steps are used up", start.limits.steps))
            }
            TurnEnd::AnswerLength => {
                SessionResult::Stuck("its answer is longer than the model's limit".to_owned())
            }
            TurnEnd::Refused(reason) => SessionResult::Stuck(reason),
            // The model works: another session would get the same answer.
            TurnEnd::ModelFailed(error) if error.kind == ModelErrorKind::NoAnswer => {
                SessionResult::Stuck(error.message.clone())
            }
            TurnEnd::ModelFailed(error) => {
                SessionResult::ModelFailed(format!("{}: {}", error.code(), error.message))
            }
        }
    }
}

fn planned(end: PlannerEnd, start: &SessionStart) -> SessionResult {
    let staged = start.supervision.as_ref();
    let staged = staged.map(|session| session.take_staged());
    SessionResult::Planner(end, staged.unwrap_or_default())
}

/// Counts tokens after each answer, and ends the session of a Teller that has asked.
struct SessionObserver<'a> {
    resources: &'a SessionResources,
    cancel: Cancel,
    /// Question that was open before; nothing for a session that cannot ask.
    open_before: Option<Option<TaskId>>,
    tokens: u64,
    has_asked: bool,
    is_used_up: bool,
}

impl<'a> SessionObserver<'a> {
    fn new(resources: &'a SessionResources, start: &SessionStart) -> Self {
        let may_ask = start.kind == SessionKind::Teller;
        Self {
            open_before: may_ask.then(|| open_question(&resources.state).unwrap_or_default()),
            resources,
            cancel: start.cancel.clone(),
            tokens: 0,
            has_asked: false,
            is_used_up: false,
        }
    }

    fn spend(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        // What could not be written counts until the supervisor ends.
        let is_left = self.resources.budget.spend(tokens, Timestamp::now());
        if is_left.is_ok_and(|is_left| !is_left) {
            self.is_used_up = true;
        }
    }

    fn step_ended(&mut self, usage: Usage) {
        let Usage { input, output, .. } = usage;
        self.spend(
            input
                .unwrap_or_default()
                .saturating_add(output.unwrap_or_default()),
        );
        if let Some(before) = &self.open_before
            && let Ok(Some(now)) = open_question(&self.resources.state)
            && before.as_ref() != Some(&now)
        {
            self.has_asked = true;
        }
        if self.has_asked || self.is_used_up {
            // No further request; the calls of this answer have ended.
            self.cancel.interrupt();
        }
    }
}

impl Observer for SessionObserver<'_> {
    fn event(&mut self, event: &ChatEvent<'_>) {
        if let ChatEvent::StepEnded(usage) = event {
            self.step_ended(*usage);
        }
    }
}

fn open_question(state: &StateDirectory) -> Result<Option<TaskId>, ToolError> {
    Ok(question::pending(state)?.map(|open| open.question_id))
}
