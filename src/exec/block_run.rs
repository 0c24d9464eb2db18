//! Runs the calls of one block: starts each in its own task when the planner allows it.

use std::collections::HashMap;

use tokio::task::JoinSet;

use crate::exec::Event;
use crate::exec::admission::{AdmittedCall, RefusedCalls};
use crate::exec::call_run;
use crate::exec::cancel::Cancel;
use crate::exec::decoder::PreparedCall;
use crate::exec::directory_change::{DirectoryChange, has_relative_path};
use crate::exec::interruption::not_started_error;
use crate::exec::plan::{Claim, Planner};
use crate::exec::run_context::RunContext;
use crate::tool::Effect;
use crate::tool::effect::Access;
use crate::tools::Call;
use karyi_core::call::{BlockOptions, OnError, Order};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Outcome;
use karyi_vault::redact::Redacted;

/// A call that has finished.
pub struct FinishedCall {
    /// Its number in the block.
    number: usize,
    /// Its outcome; `None` when its task panicked.
    outcome: Option<Redacted<Outcome>>,
}

/// Metadata of a running call.
struct RunningCall {
    index: u64,
    id: String,
    tool: &'static str,
    change: Option<DirectoryChange>,
}

/// A running block.
pub struct BlockRun {
    run: RunContext,
    stops_on_error: bool,
    planner: Planner,
    waiting: HashMap<usize, (PreparedCall, Cancel)>,
    /// Id of the call that was added last, and the switch that says that the next one types into it.
    last: Option<(String, Cancel)>,
    running: HashMap<usize, RunningCall>,
    tasks: JoinSet<FinishedCall>,
    pushed: usize,
    /// Calls that were refused.
    refused: HashMap<usize, ToolError>,
    /// The reason why no call with a relative path is started.
    lost_directory: Option<ToolError>,
    /// The reason why no further call is started.
    stopped: Option<ToolError>,
}

impl BlockRun {
    /// Starts a block.
    #[must_use]
    pub fn new(run: RunContext, options: BlockOptions) -> Self {
        let stops_on_error = options.on_error == OnError::Stop;
        let is_sequential = options.order == Order::Sequential || stops_on_error;
        let planner = if is_sequential {
            Planner::sequential()
        } else {
            Planner::overlapping()
        };
        Self {
            refused: HashMap::new(),
            run,
            stops_on_error,
            planner,
            waiting: HashMap::new(),
            last: None,
            running: HashMap::new(),
            tasks: JoinSet::new(),
            pushed: 0,
            lost_directory: None,
            stopped: None,
        }
    }

    /// Adds the next calls; each starts as soon as the planner allows it.
    pub async fn push_all(&mut self, calls: Vec<AdmittedCall>) {
        for call in calls {
            self.push(call.into_inner()).await;
        }
    }

    /// Adds calls of which some were refused; these are reported in their turn.
    pub async fn push_refused(&mut self, refused: RefusedCalls) {
        let first = self.pushed;
        let errors = refused.errors.into_iter();
        self.refused
            .extend(errors.map(|(at, error)| (first + at, error)));
        for call in refused.calls {
            self.push(call).await;
        }
    }

    async fn push(&mut self, prepared: PreparedCall) {
        let number = self.pushed;
        self.pushed += 1;
        self.planner.push(number, prepared.call.effect());
        let hand_over = self.announce(&prepared);
        self.waiting.insert(number, (prepared, hand_over));
        self.start().await;
    }

    /// Tells the call before that this one types into it, if it does; returns the switch of this one.
    fn announce(&mut self, prepared: &PreparedCall) -> Cancel {
        let call = &prepared.call;
        let types = matches!(call.effect(), Effect::Session) && !call.spec().starts_job;
        let hand_over = Cancel::default();
        let last = (prepared.id.clone(), hand_over.clone());
        if let Some((id, earlier)) = self.last.replace(last)
            && types
            && call.job().is_none_or(|job| job == id)
        {
            earlier.cancel();
        }
        hand_over
    }

    /// Returns the number of calls that wait to be started.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.planner.waiting()
    }

    /// Returns true when no call runs and none waits.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.planner.is_done()
    }

    /// Waits until one running call has finished. Cancel-safe; pass the result to [`Self::complete`].
    pub async fn next_finished(&mut self) -> Option<FinishedCall> {
        // The task only awaits another one and cannot panic itself.
        self.tasks.join_next().await?.ok()
    }

    /// Reports a finished call and starts the calls that waited for it.
    pub async fn complete(&mut self, finished: Option<FinishedCall>) {
        let Some(FinishedCall { number, outcome }) = finished else {
            return;
        };
        self.planner.finish(number);
        if let Some(running) = self.running.remove(&number) {
            let panicked = || call_run::panicked(&self.run, running.id, running.tool);
            let outcome = outcome.unwrap_or_else(panicked);
            if let Some(change) = running.change {
                self.lost_directory = change.has_failed(outcome.get()).then(|| {
                    let message = format!(
                        "the `cd` of call {} failed, so this call was not run",
                        outcome.get().id
                    );
                    ToolError::new(ErrorCode::CdFailed, message)
                });
            }
            self.report(running.index, outcome).await;
        }
        self.start().await;
    }

    /// Runs all calls to completion.
    pub async fn finish(mut self) {
        while !self.is_done() {
            let finished = self.next_finished().await;
            self.complete(finished).await;
        }
    }

    async fn start(&mut self) {
        loop {
            let cwd = self.run.context.sessions.cwd();
            let directories = &self.run.context.settings.directories;
            let resolve =
                |access: &Access| Claim::of(access, directories.directory(access.base, &cwd));
            let startable = self.planner.startable(&resolve);
            if startable.is_empty() {
                return;
            }
            for number in startable {
                if let Some((prepared, hand_over)) = self.waiting.remove(&number) {
                    self.start_one(number, prepared, hand_over).await;
                }
            }
        }
    }

    async fn start_one(&mut self, number: usize, prepared: PreparedCall, hand_over: Cancel) {
        if let Err(error) = self.may_start(number, &prepared.call) {
            self.planner.finish(number);
            let outcome = call_run::not_started(&self.run, prepared.id, &prepared.call, error);
            self.report(prepared.index, outcome).await;
            return;
        }
        let running = RunningCall {
            index: prepared.index,
            id: prepared.id.clone(),
            tool: prepared.call.spec().name,
            change: DirectoryChange::of(&prepared.call, &self.run.context.sessions.cwd()),
        };
        self.running.insert(number, running);
        let call = tokio::spawn(call_run::run(self.run.clone(), prepared, hand_over));
        self.tasks.spawn(async move {
            let outcome = call.await.ok();
            FinishedCall { number, outcome }
        });
    }

    fn may_start(&mut self, number: usize, call: &Call) -> Result<(), ToolError> {
        if let Some(reason) = &self.stopped {
            return Err(reason.clone());
        }
        if self.run.cancel.is_interrupted() {
            return Err(not_started_error());
        }
        if let Some(reason) = &self.lost_directory
            && has_relative_path(call)
        {
            return Err(reason.clone());
        }
        self.refused.remove(&number).map_or(Ok(()), Err)
    }

    async fn report(&mut self, index: u64, outcome: Redacted<Outcome>) {
        if self.stops_on_error && self.stopped.is_none() && outcome.get().status.is_failure() {
            let message = format!(
                "call {} failed and the block says on_error=\"stop\"",
                outcome.get().id
            );
            self.stopped = Some(ToolError::new(ErrorCode::EarlierFailure, message));
        }
        let outcome = outcome.map(Box::new);
        self.run.emit(Event::Finished { index, outcome }).await;
    }
}
