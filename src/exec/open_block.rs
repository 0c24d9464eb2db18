//! Block of which calls already run while the rest of the message is read.

use crate::approval::Verdict;
use crate::exec::admission::Admission;
use crate::exec::block_run::BlockRun;
use crate::exec::consent::{self, BlockState, DecidedCall, JudgedCall};
use crate::exec::decoder::PreparedCall;
use crate::exec::run_context::RunContext;
use karyi_core::call::BlockOptions;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Block of which calls already run.
///
/// A call that the rules allow starts at its end tag. From the first call that a person must be asked about, nothing
/// starts until the end of the block; then one question is for the rest.
pub(super) struct OpenBlock {
    context: RunContext,
    admission: Admission,
    run: BlockRun,
    /// Calls that wait for the end of the block.
    held: Vec<JudgedCall>,
    held_bytes: u64,
    state: BlockState,
}

impl OpenBlock {
    /// Opens a block.
    pub(super) async fn open(context: RunContext, options: BlockOptions) -> Self {
        Self {
            admission: Admission::open(context.clone(), &[]).await,
            run: BlockRun::new(context.clone(), options),
            context,
            held: Vec::new(),
            held_bytes: 0,
            state: BlockState::default(),
        }
    }

    /// Returns the calls that run, if there are any.
    pub(super) fn running(&mut self) -> Option<&mut BlockRun> {
        Some(&mut self.run).filter(|run| !run.is_done())
    }

    /// Takes the next call: it starts, waits for the end of the block, or is refused.
    pub(super) async fn take_call(&mut self, prepared: PreparedCall) {
        while self.run.waiting() >= limits::CHANNEL_DEPTH {
            let finished = self.run.next_finished().await;
            self.run.complete(finished).await;
        }
        if !self.context.policy_gate.approvals().is_on() {
            return self.admit((prepared, Ok(()))).await;
        }
        let size = prepared.size_bytes;
        self.state.has_pending = !self.held.is_empty() || !self.run.is_done();
        let judged = consent::judge(&self.context, prepared, self.state).await;
        self.state.add(&judged.prepared.call);
        let approver = self.context.policy_gate.approvals().approver();
        let is_asked = matches!(judged.verdict, Verdict::Ask(_)) && approver.is_some();
        if self.held.is_empty() && !is_asked {
            return self.admit(judged.without_person()).await;
        }
        self.held_bytes += size;
        if self.held_bytes <= limits::MAX_HELD_BYTES as u64 {
            return self.held.push(judged);
        }
        let message = "the calls that wait for the user are too large together";
        self.admit((judged.prepared, needs_approval(message))).await;
    }

    /// Asks about the calls that wait for the end of the block, while those before them run, and starts the ones that
    /// may run.
    pub(super) async fn close(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        let context = self.context.clone();
        let mut asking = std::pin::pin!(consent::ask(&context, held));
        let decided = loop {
            if self.run.is_done() {
                break asking.await;
            }
            tokio::select! {
                biased;
                decided = &mut asking => break decided,
                finished = self.run.next_finished() => self.run.complete(finished).await,
            }
        };
        self.held_bytes = 0;
        for call in decided {
            self.admit(call).await;
        }
    }

    /// Runs the calls to completion. Those that wait for the end tag do not run without it.
    pub(super) async fn finish(mut self) {
        for call in std::mem::take(&mut self.held) {
            let message = "the block has no end, so the user was not asked about this call";
            self.admit((call.prepared, needs_approval(message))).await;
        }
        self.run.finish().await;
    }

    async fn admit(&mut self, decided: DecidedCall) {
        match self.admission.admit_decided(decided).await {
            Ok(admitted) => self.run.push_all(admitted).await,
            Err(refused) => self.run.push_refused(refused).await,
        }
    }
}

fn needs_approval(message: &str) -> Result<(), ToolError> {
    Err(ToolError::new(ErrorCode::NeedsApproval, message))
}
