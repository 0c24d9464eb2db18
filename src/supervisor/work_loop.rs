//! The loop: looks at the state, starts sessions, and writes down how they ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_tasks::evaluation::{self, ConditionQuestion};
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle;
use karyi_tasks::listing::{self, ListOptions, ListScope};
use karyi_tasks::question;
use karyi_tasks::settle::{self, prune};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Task, TaskRole};
use karyi_tasks::teller_input::{self, TellerInput};
use serde_json::json;
use tokio::task::{Id, JoinError, JoinSet};

use crate::chat::turn::TurnLimits;
use crate::exec::cancel::Cancel;
use crate::supervisor::announcer::{Announcer, TakeNotice};
use crate::supervisor::budget::Budget;
use crate::supervisor::conversations::{Conversations, SessionKind, SessionStart};
use crate::supervisor::endings::{self, TellerPause};
use crate::supervisor::notice::Notice;
use crate::supervisor::session::{SessionResources, SessionResult, SessionWork};
use crate::supervisor::settings::{RoleLimits, SupervisorSettings};
use crate::supervisor::told;
use crate::supervisor::verdicts;
use crate::supervisor::wakes::Wakes;
use crate::tool::supervision::{SessionRole, SharedSupervision, Supervision};
use karyi_vault::redact::Redactor;

/// Time that a supervisor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Until it is stopped.
    Always,
    /// Until there is nothing to do.
    Once,
}

/// Reason for the end of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorEnd {
    /// There was nothing to do.
    Idle,
    /// It was stopped.
    Stopped,
    /// The model could not be used; what waits is still there.
    ModelFailed,
    /// The tokens of the day are used up; what waits is still there.
    TokensUsedUp,
    /// The state could not be read or written.
    Failed,
}

/// Supervisor of one state directory.
pub struct Supervisor {
    resources: SessionResources,
    settings: SupervisorSettings,
    work: PathBuf,
    announcer: Announcer,
    running: Vec<RunningSession>,
    sessions: JoinSet<SessionResult>,
    /// Ends that could not be written down yet.
    unwritten: Vec<SessionEnd>,
    teller_pause: TellerPause,
    pruned_at: Option<Instant>,
    lock: InstanceLock,
}

/// Session that runs.
struct RunningSession {
    id: Id,
    work: SessionWork,
    limit: Duration,
    cancel: Cancel,
}

/// Session that ended.
struct SessionEnd {
    work: SessionWork,
    limit: Duration,
    result: SessionResult,
}

impl Supervisor {
    /// Takes a state directory; watched paths are relative to `work`.
    ///
    /// # Errors
    /// `supervisor_running` when another process has it, or the system fails.
    pub fn new(
        state: StateDirectory,
        work: PathBuf,
        settings: SupervisorSettings,
        conversations: Arc<dyn Conversations>,
        (redactor, take): (Redactor, TakeNotice),
    ) -> Result<Self, ToolError> {
        let lock = InstanceLock::take(&state)?;
        let state = Arc::new(state.with_pauses(settings.pauses));
        let budget = Arc::new(Budget::new(Arc::clone(&state), settings.max_tokens_per_day));
        let mut announcer = Announcer::new(Arc::clone(&state), redactor, take)?;
        let settled = settle::settle(&state, &lock, Timestamp::now())?;
        announcer.settled(&settled);
        announcer.tell_user()?;
        Ok(Self {
            resources: SessionResources {
                conversations,
                state,
                budget,
            },
            teller_pause: TellerPause::new(settings.intervals.model_pause),
            settings,
            work,
            announcer,
            running: Vec::new(),
            sessions: JoinSet::new(),
            unwritten: Vec::new(),
            pruned_at: None,
            lock,
        })
    }

    /// Works until it is stopped, or until there is nothing to do.
    pub async fn run(mut self, duty: Duty, stop: Cancel) -> SupervisorEnd {
        let mut wakes = Wakes::new().unwrap_or_else(|error| {
            self.announcer.problem(&error);
            Wakes::default()
        });
        let end = loop {
            self.announcer.next_look();
            // Before the look: a change after it wakes.
            self.watch(&mut wakes);
            let wait = self.look().and_then(|wait| {
                let end = match duty {
                    Duty::Always => None,
                    Duty::Once => self.idle_end()?,
                };
                Ok((wait, end))
            });
            self.announce_broken();
            if let Some(lost) = self.lost() {
                self.announcer.problem(&lost);
                break SupervisorEnd::Failed;
            }
            let wait = match wait {
                _ if stop.is_cancelled() => break SupervisorEnd::Stopped,
                Ok((_, Some(end))) => break end,
                Ok((wait, None)) => wait,
                Err(error) => {
                    self.announcer.problem(&error);
                    if duty == Duty::Once {
                        break SupervisorEnd::Failed;
                    }
                    self.settings.intervals.tick
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = self.sessions.join_next_with_id() => self.ended(ended),
                () = wakes.next(wait) => {}
            }
        };
        self.stop_all().await;
        self.announce_broken();
        end
    }

    /// Announces the files that were set aside since the last time.
    fn announce_broken(&mut self) {
        let broken = self.resources.state.newly_broken();
        self.announcer.broken(&broken);
    }

    /// Returns the error of a directory or lock that was moved away or removed, also when another has its name now.
    fn lost(&self) -> Option<ToolError> {
        let state = &self.resources.state;
        let lost = match (state.lost(), self.lock.is_there(state)) {
            (Some(place), _) => place.display().to_string(),
            (None, false) => format!("the lock of this supervisor in {}", state.path().display()),
            (None, true) => return None,
        };
        let message = format!("expected {lost}, found that it was moved away or removed");
        Some(ToolError::new(ErrorCode::NotFound, message))
    }

    /// Watches the directories in which a change may be work.
    fn watch(&mut self, wakes: &mut Wakes) {
        let state = &self.resources.state;
        let mut paths = state.watched_paths();
        match evaluation::watched_directories(state, &self.work) {
            Ok(directories) => paths.extend(directories),
            Err(error) => self.announcer.problem(&error),
        }
        if let Err(error) = wakes.watch(paths) {
            self.announcer.problem(&error);
        }
    }

    /// Does all that can be done now; returns the time until the next look.
    fn look(&mut self) -> Result<Duration, ToolError> {
        let now = Timestamp::now();
        let state = Arc::clone(&self.resources.state);
        for end in std::mem::take(&mut self.unwritten) {
            self.write_down(end);
        }
        if let Some(answer) = question::expire(&state, now)? {
            self.announcer.question_ended(&answer);
        }
        let found = evaluation::evaluate(&state, &self.work, now)?;
        self.announcer.queued(&found.queued);
        self.end_stopped()?;
        self.prune(now)?;
        let mut wait = self.settings.intervals.tick;
        if self.may_spend(now)? {
            self.ask_judge(found.questions, now)?;
            self.start_tasks(now)?;
            if let Some(pause) = self.start_teller(now)? {
                wait = wait.min(pause);
            }
        }
        // Only a Teller says something.
        if self.count(SessionKind::Teller) > 0 {
            self.announcer.tell_user()?;
        }
        Ok(wait)
    }

    /// Tells whether tokens are left today; says once that none is.
    fn may_spend(&mut self, now: Timestamp) -> Result<bool, ToolError> {
        let is_left = self.resources.budget.left(now)? > 0;
        self.announcer.tokens(is_left, self.resources.budget.most());
        Ok(is_left)
    }

    /// Removes old results, once a day.
    fn prune(&mut self, now: Timestamp) -> Result<(), ToolError> {
        let is_due = self
            .pruned_at
            .is_none_or(|last| last.elapsed() >= limits::PRUNE_INTERVAL);
        if is_due {
            prune(&self.resources.state, now)?;
            self.pruned_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Ends the sessions of tasks that a person stopped.
    fn end_stopped(&self) -> Result<(), ToolError> {
        for session in &self.running {
            if let SessionWork::Task(role, task) = &session.work
                && lifecycle::is_stopped(&self.resources.state, *role, &task.id)?
            {
                session.cancel.cancel();
            }
        }
        Ok(())
    }

    fn count(&self, kind: SessionKind) -> usize {
        let running = self.running.iter();
        running
            .filter(|session| session.work.kind() == kind)
            .count()
    }

    /// Asks a model about conditions, in one request.
    fn ask_judge(
        &mut self,
        questions: Vec<ConditionQuestion>,
        now: Timestamp,
    ) -> Result<(), ToolError> {
        if questions.is_empty() || self.count(SessionKind::Judge) > 0 {
            return Ok(());
        }
        let text = told::judge(&self.resources.state, (now, self.settings.aging))?;
        let text = format!("{text}\n{}", verdicts::questions_text(&questions));
        let limits = RoleLimits {
            timeout: limits::VERDICT_TIMEOUT,
            steps: 1,
        };
        self.start(SessionWork::Verdicts(questions), limits, text);
        Ok(())
    }

    /// Starts a Planner and Workers for the tasks that wait.
    fn start_tasks(&mut self, now: Timestamp) -> Result<(), ToolError> {
        let places = [
            (TaskRole::Planner, SessionKind::Planner, 1),
            (TaskRole::Worker, SessionKind::Worker, self.settings.workers),
        ];
        for (role, kind, most) in places {
            while self.count(kind) < most {
                let aging = self.settings.aging;
                let state = &self.resources.state;
                let Some(task) = lifecycle::claim(state, role, aging, now)? else {
                    break;
                };
                self.start_task(role, task, now);
            }
        }
        Ok(())
    }

    fn start_task(&mut self, role: TaskRole, task: Task, now: Timestamp) {
        let usual = match role {
            TaskRole::Planner => self.settings.planner,
            TaskRole::Worker => self.settings.worker,
        };
        let limits = RoleLimits {
            timeout: task.timeout.map_or(usual.timeout, Duration::from_secs),
            ..usual
        };
        self.announcer.started(role, &task);
        let state = &self.resources.state;
        let when = (now, self.settings.aging);
        let text = told::task(state, (role, &task), &self.work, when);
        let work = SessionWork::Task(role, task);
        match text {
            Ok(text) => self.start(work, limits, text),
            Err(error) => self.write_down(SessionEnd {
                work,
                limit: limits.timeout,
                result: SessionResult::Stuck(error.message),
            }),
        }
    }

    /// Starts the Teller if something is new; returns the time until it may start.
    fn start_teller(&mut self, now: Timestamp) -> Result<Option<Duration>, ToolError> {
        let mut unwritten = self.unwritten.iter().map(|end| end.work.kind());
        if unwritten.any(|kind| kind == SessionKind::Teller) || self.count(SessionKind::Teller) > 0
        {
            return Ok(None);
        }
        let state = Arc::clone(&self.resources.state);
        let mut input = teller_input::waiting(&state)?;
        let Some(newest) = input.newest() else {
            return Ok(None);
        };
        if let Some(pause) = self.teller_pause.left() {
            return Ok(Some(pause));
        }
        let age = Duration::try_from(now.duration_since(newest)).unwrap_or(Duration::MAX);
        let debounce = self.settings.intervals.debounce;
        if input.events.is_empty() && age < debounce {
            return Ok(Some(debounce.saturating_sub(age)));
        }
        for item in &mut input.inbox {
            // A person may have typed a value, and the history keeps every message.
            item.text = self.announcer.masked(&item.text);
        }
        let text = told::teller(&state, &input, (now, self.settings.aging))?;
        teller_input::begin(&state, &input)?;
        let limits = self.settings.teller;
        self.start(SessionWork::Teller(input), limits, text);
        Ok(None)
    }

    fn start(&mut self, work: SessionWork, limits: RoleLimits, text: String) {
        let left = self.resources.budget.left(Timestamp::now());
        let start = SessionStart {
            kind: work.kind(),
            limits: TurnLimits {
                steps: limits.steps,
                tokens: left.ok(),
                time: Some(limits.timeout),
            },
            cancel: Cancel::default(),
            supervision: self.supervision(&work),
        };
        let cancel = start.cancel.clone();
        let session = self.resources.clone().run(start, text);
        self.running.push(RunningSession {
            id: self.sessions.spawn(session).id(),
            work,
            limit: limits.timeout,
            cancel,
        });
    }

    /// Begins the part of a Teller or Planner. Its name is the same when the session is repeated for the same run.
    fn supervision(&self, work: &SessionWork) -> SharedSupervision {
        let (role, name) = match work {
            SessionWork::Teller(input) => (SessionRole::Teller, input.session()?.to_string()),
            SessionWork::Task(TaskRole::Planner, task) => {
                (SessionRole::Planner, task.session_name())
            }
            SessionWork::Task(TaskRole::Worker, _) | SessionWork::Verdicts(_) => return None,
        };
        let state = Arc::clone(&self.resources.state);
        let session = Supervision::new(state, role, &name);
        Some(Arc::new(session.with_aging(self.settings.aging)))
    }

    /// Takes a session that ended.
    fn ended(&mut self, ended: Result<(Id, SessionResult), JoinError>) {
        let (id, result) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let text = "a bug in karyi ended the session".to_owned();
                (error.id(), SessionResult::Stuck(text))
            }
        };
        let Some(index) = self.running.iter().position(|session| session.id == id) else {
            return;
        };
        let RunningSession { work, limit, .. } = self.running.swap_remove(index);
        let end = SessionEnd {
            work,
            limit,
            result,
        };
        if let SessionResult::ModelFailed(reason) = &end.result {
            let kind = end.work.kind().as_str();
            let text = format!("the model of the {kind} failed: {reason}");
            let fields = json!({"role": kind, "message": reason});
            self.announcer
                .announce(Notice::problem("model_failed", text, fields));
        }
        self.write_down(end);
    }

    /// Writes down how a session ended; what cannot be written now is written later.
    fn write_down(&mut self, end: SessionEnd) {
        let written = match &end.work {
            SessionWork::Teller(input) => self.teller_ended(input, &end.result),
            SessionWork::Task(role, task) => self.task_ended(*role, task, &end),
            SessionWork::Verdicts(questions) => self.judged(questions, &end.result),
        };
        if let Err(error) = written {
            self.announcer.problem(&error);
            // A task whose file somebody took away has no result.
            if error.code != ErrorCode::NotFound {
                self.unwritten.push(end);
            }
        }
    }

    fn teller_ended(
        &mut self,
        input: &TellerInput,
        result: &SessionResult,
    ) -> Result<(), ToolError> {
        // First what may fail and is repeated then.
        self.announcer.tell_user()?;
        let failure = match result {
            // What it said stands in the history, and the next session does not repeat it.
            SessionResult::ModelFailed(_) => {
                self.teller_pause.begin();
                return Ok(());
            }
            SessionResult::TokensUsedUp | SessionResult::Cancelled => return Ok(()),
            SessionResult::TimeIsUp => Some("its time is up"),
            SessionResult::Stuck(reason) => Some(reason.as_str()),
            SessionResult::Done(_)
            | SessionResult::Asked
            | SessionResult::Planner(..)
            | SessionResult::Unreadable(_) => None,
        };
        teller_input::end(&self.resources.state, input)?;
        self.teller_pause.reset();
        if let Some(reason) = failure {
            self.teller_failed(reason);
        }
        let notice = Notice::progress("teller_ended", "the Teller is done", json!({}));
        self.announcer.announce(notice);
        Ok(())
    }

    fn teller_failed(&mut self, reason: &str) {
        let text = format!("the Teller stopped: {reason}");
        let fields = json!({"message": reason});
        self.announcer
            .announce(Notice::problem("teller_failed", text, fields));
    }

    fn task_ended(
        &mut self,
        role: TaskRole,
        task: &Task,
        end: &SessionEnd,
    ) -> Result<(), ToolError> {
        let state = &self.resources.state;
        if end.result == SessionResult::TokensUsedUp
            && !lifecycle::is_stopped(state, role, &task.id)?
        {
            return lifecycle::put_back(state, role, task);
        }
        let ending = endings::task_ending(&end.result, end.limit);
        let ending = lifecycle::unless_stopped(state, role, &task.id, ending)?;
        let (status, said) = endings::words(&ending);
        let finish = lifecycle::finish(state, role, task, ending, Timestamp::now())?;
        if let SessionResult::Unreadable(reason) = &end.result {
            let text = format!(
                "the last message of planner {} cannot be read: {reason}",
                task.id
            );
            let fields = json!({"id": task.id, "message": reason});
            self.announcer
                .announce(Notice::progress("planner_output_invalid", text, fields));
        }
        self.announcer
            .finished(role, &task.id, finish, (status, &said));
        Ok(())
    }

    fn judged(
        &mut self,
        questions: &[ConditionQuestion],
        result: &SessionResult,
    ) -> Result<(), ToolError> {
        let SessionResult::Done(answer) = result else {
            return Ok(());
        };
        let given = verdicts::read_verdicts(questions, answer);
        let is_invalid = given.is_none();
        let verdicts = given.unwrap_or_else(|| verdicts::no_verdicts(questions));
        let (state, now) = (&self.resources.state, Timestamp::now());
        let queued = evaluation::record_verdicts(state, &self.work, now, &verdicts)?;
        if is_invalid {
            let text = "the answer to the questions of conditions cannot be read, and counts as no";
            let notice = Notice::progress("verdicts_invalid", text, json!({}));
            self.announcer.announce(notice);
        }
        self.announcer.queued(&queued);
        Ok(())
    }

    /// Returns the end of a supervisor that works until there is nothing to do, if it has come.
    fn idle_end(&mut self) -> Result<Option<SupervisorEnd>, ToolError> {
        if !self.running.is_empty() || !self.unwritten.is_empty() {
            return Ok(None);
        }
        let (state, now) = (&self.resources.state, Timestamp::now());
        let queue = ListOptions {
            scope: ListScope::Queue,
            ..ListOptions::default()
        };
        let has_tasks = !listing::list(state, queue, now)?.is_empty();
        let has_news = teller_input::waiting(state)?.session().is_some();
        Ok(match (has_tasks, has_news) {
            (false, false) => Some(SupervisorEnd::Idle),
            _ if self.resources.budget.left(now)? == 0 => Some(SupervisorEnd::TokensUsedUp),
            (false, true) if self.teller_pause.left().is_some() => Some(SupervisorEnd::ModelFailed),
            _ => None,
        })
    }

    /// Ends all sessions and writes down how.
    async fn stop_all(&mut self) {
        for session in &self.running {
            session.cancel.cancel();
        }
        while let Some(ended) = self.sessions.join_next_with_id().await {
            self.ended(ended);
        }
    }
}
