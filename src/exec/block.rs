//! The calls of one block: started when the plan allows, each in a task of its own.

use std::collections::HashMap;

use tokio::task::JoinSet;

use crate::exec::Event;
use crate::exec::call;
use crate::exec::intake::Job;
use crate::exec::plan::{Claim, Planner};
use crate::exec::resolve;
use crate::exec::stage::Stage;
use crate::tool::effect::Access;
use crate::tools::Call;
use karyi_core::call::{BlockOptions, OnError, Order};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Outcome;
use karyi_core::secret::SecretName;
use karyi_vault::session::{Need, Origin};

/// Returns the error of a call that the run does not come to.
pub(super) fn interrupted() -> ToolError {
    let message = "the run was interrupted before the call could start";
    ToolError::new(ErrorCode::Cancelled, message)
}

/// A call that has ended.
pub struct Ended {
    /// Its number in the block.
    number: usize,
    /// Its outcome; nothing when its task panicked.
    outcome: Option<Outcome>,
}

/// What is known of a call that runs.
struct Running {
    index: u64,
    id: String,
    tool: &'static str,
}

/// A block that runs.
pub struct BlockRun {
    stage: Stage,
    stops_on_error: bool,
    planner: Planner,
    waiting: HashMap<usize, Job>,
    running: HashMap<usize, Running>,
    tasks: JoinSet<Ended>,
    pushed: usize,
    /// Names that had a value when the block opened: a value asked for in it is for the next one.
    known: Vec<SecretName>,
    /// Calls that were refused when they were read.
    refused: HashMap<usize, ToolError>,
    /// Why later calls are not started any more.
    stopped: Option<ToolError>,
}

impl BlockRun {
    /// Starts a block.
    #[must_use]
    pub fn new(stage: Stage, options: BlockOptions) -> Self {
        let stops_on_error = options.on_error == OnError::Stop;
        let is_sequential = options.order == Order::Sequential || stops_on_error;
        let planner = if is_sequential {
            Planner::sequential()
        } else {
            Planner::overlapping()
        };
        Self {
            known: stage.context.secrets.names(),
            refused: HashMap::new(),
            stage,
            stops_on_error,
            planner,
            waiting: HashMap::new(),
            running: HashMap::new(),
            tasks: JoinSet::new(),
            pushed: 0,
            stopped: None,
        }
    }

    /// Adds the next call; it starts as soon as the plan allows.
    pub async fn push(&mut self, mut job: Job) {
        let number = self.pushed;
        self.pushed += 1;
        let checked = match self.check_names(&mut job.call).await {
            Ok(()) => {
                let permits = &self.stage.permits;
                let mut calls = [&mut job.call];
                let permitted = permits.check(&mut calls, &self.stage.context);
                permitted.await.map_err(|(_, error)| error)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = checked {
            self.refused.insert(number, error);
        }
        self.planner.push(number, job.call.effect());
        self.waiting.insert(number, job);
        self.start().await;
    }

    /// Checks that the names of a call have values, and looks into the store for one that has none.
    async fn check_names(&mut self, call: &mut Call) -> Result<(), ToolError> {
        let is_known = |name: &SecretName| self.known.contains(name);
        let result = resolve::check_names(std::iter::once(&mut *call), &is_known);
        let secrets = &self.stage.context.secrets;
        let Err(error) = result else {
            return Ok(());
        };
        if error.code != ErrorCode::UndefinedVariable || !secrets.has_source() {
            return Err(resolve::explain(error, secrets));
        }
        resolve::refresh(secrets, Need::Used).await;
        let is_known = |name: &SecretName| {
            self.known.contains(name) || secrets.origin(name) == Some(Origin::Stored)
        };
        resolve::check_names(std::iter::once(call), &is_known)
            .map_err(|error| resolve::explain(error, secrets))
    }

    /// Returns how many calls wait to be started.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.planner.waiting()
    }

    /// Whether no call runs and none waits.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.planner.is_done()
    }

    /// Waits until one running call has ended. Safe to cancel; what it returns must be given to
    /// [`Self::settle`].
    pub async fn ended(&mut self) -> Option<Ended> {
        // A task only waits for another one and cannot panic itself.
        self.tasks.join_next().await?.ok()
    }

    /// Reports a call that has ended and starts what may follow it.
    pub async fn settle(&mut self, ended: Option<Ended>) {
        let Some(Ended { number, outcome }) = ended else {
            return;
        };
        self.planner.finish(number);
        if let Some(running) = self.running.remove(&number) {
            let outcome = outcome.unwrap_or_else(|| call::panicked(running.id, running.tool));
            self.report(running.index, outcome).await;
        }
        self.start().await;
    }

    /// Runs every call to its end.
    pub async fn finish(mut self) {
        while !self.is_done() {
            let ended = self.ended().await;
            self.settle(ended).await;
        }
    }

    async fn start(&mut self) {
        loop {
            let cwd = self.stage.context.sessions.cwd();
            let resolve = |access: &Access| Claim::of(access, &cwd);
            let startable = self.planner.startable(&resolve);
            if startable.is_empty() {
                return;
            }
            for number in startable {
                if let Some(job) = self.waiting.remove(&number) {
                    self.start_one(number, job).await;
                }
            }
        }
    }

    async fn start_one(&mut self, number: usize, job: Job) {
        if let Err(error) = self.may_start(number) {
            self.planner.finish(number);
            let outcome = call::not_started(job.id, &job.call, error);
            self.report(job.index, outcome).await;
            return;
        }
        let running = Running {
            index: job.index,
            id: job.id.clone(),
            tool: job.call.spec().name,
        };
        self.running.insert(number, running);
        let call = tokio::spawn(call::run(self.stage.clone(), job));
        self.tasks.spawn(async move {
            let outcome = call.await.ok();
            Ended { number, outcome }
        });
    }

    fn may_start(&mut self, number: usize) -> Result<(), ToolError> {
        if let Some(reason) = &self.stopped {
            return Err(reason.clone());
        }
        if self.stage.cancel.is_cancelled() {
            return Err(interrupted());
        }
        self.refused.remove(&number).map_or(Ok(()), Err)
    }

    async fn report(&mut self, index: u64, outcome: Outcome) {
        if self.stops_on_error && self.stopped.is_none() && outcome.status.is_failure() {
            let message = format!(
                "call {} failed and the block says on_error=\"stop\"",
                outcome.id
            );
            self.stopped = Some(ToolError::new(ErrorCode::EarlierFailure, message));
        }
        let outcome = Box::new(outcome);
        self.stage.tell(Event::Finished { index, outcome }).await;
    }
}
