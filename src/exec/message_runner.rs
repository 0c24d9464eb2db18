//! Runs one message, from its first byte to its last result.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::admission::{Admission, AdmittedCall, RefusedCalls};
use crate::exec::block_run::BlockRun;
use crate::exec::call_run;
use crate::exec::cancel::Cancel;
use crate::exec::decoder::{DecodedItem, MessageDecoder, MessageProgress, PreparedCall};
use crate::exec::open_block::OpenBlock;
use crate::exec::policy_gate::UnknownName;
use crate::exec::resolve;
use crate::exec::run_context::RunContext;
use karyi_core::call::BlockOptions;
use karyi_core::error::{Code, Diagnostic, ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::JobNews;
use karyi_core::secret::SecretName;
use karyi_core::span::Position;
use karyi_vault::redact::Redacted;
use karyi_vault::session::{LoadIssue, LoadIssueKind, listed};
use karyi_vault::substitute;

/// The moment when the first call of a message may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// After the whole message was read and nothing in it was refused.
    Whole,
    /// As soon as the call itself is complete.
    Stream,
}

/// Bytes of a message, or the failure to read the rest of it.
pub type Chunk = Result<Vec<u8>, Unreadable>;

/// The rest of a message cannot be read, so the part before it is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// A decoded block that has not run yet.
struct Block {
    options: BlockOptions,
    calls: Vec<PreparedCall>,
}

/// Runs the messages of one session, one after another.
pub struct MessageRunner {
    run: RunContext,
    /// Warnings about stored values that were already emitted.
    emitted_warnings: Mutex<BTreeSet<String>>,
    /// True when a planned call of a dry run would change something, so that later ones find other files.
    has_changes: AtomicBool,
}

/// Tools that change nothing.
const READERS: [&str; 2] = ["read", "get_value"];

impl MessageRunner {
    /// Creates a runner.
    #[must_use]
    pub fn new(run: RunContext) -> Self {
        Self {
            run,
            emitted_warnings: Mutex::default(),
            has_changes: AtomicBool::new(false),
        }
    }

    /// Replaces the cancellation of the calls that follow, as for the next turn of a conversation.
    pub fn replace_cancel(&mut self, cancel: Cancel) {
        self.run.replace_cancel(cancel);
    }

    /// Decodes a message and runs its calls. Returns how far it was read once every call has its result.
    pub async fn run_message(
        &self,
        mut decoder: MessageDecoder,
        chunks: mpsc::Receiver<Chunk>,
        pace: Pace,
    ) -> MessageProgress {
        for name in self.run.policy_gate.unknown() {
            let warning = Box::new(unknown_name_warning(name));
            self.run.emit(Event::Warning(warning)).await;
        }
        match pace {
            Pace::Whole => self.run_whole(&mut decoder, chunks).await,
            Pace::Stream => self.run_streaming(&mut decoder, chunks).await,
        }
        decoder.progress()
    }

    /// Runs a standalone call, possibly beside others. Returns once it has its result. A one-time value
    /// goes to the first such call that uses it.
    pub async fn run_call(&self, mut prepared: PreparedCall) {
        let names = resolve::names(&mut prepared.call);
        let claimed = self.run.context.secrets.claim_once(&names);
        let block = Block {
            options: BlockOptions::default(),
            calls: vec![prepared],
        };
        match claimed {
            Ok(_claim) => self.run_block(block, &mut Vec::new()).await,
            Err(taken) => {
                let errors = HashMap::from([(0, substitute::undefined(&taken))]);
                let calls = block.calls;
                self.report_refused(RefusedCalls { calls, errors }).await;
            }
        }
    }

    /// Emits an event about the message as a whole.
    pub async fn emit(&self, event: Event) {
        self.run.emit(event).await;
    }

    /// Emits the state of the jobs.
    pub async fn emit_jobs(&self) {
        let news = self.run.jobs.news().await;
        self.emit_job_news(news).await;
    }

    /// Closes the sessions and emits the final state of the jobs.
    pub async fn close(&self) {
        let news = self.run.jobs.close().await;
        self.emit_job_news(news).await;
    }

    async fn emit_job_news(&self, news: Vec<JobNews>) {
        let omitted = self.run.jobs.take_omitted();
        self.run.emit(Event::Jobs { news, omitted }).await;
    }

    async fn run_whole(&self, decoder: &mut MessageDecoder, mut chunks: mpsc::Receiver<Chunk>) {
        let mut blocks = Vec::new();
        let mut size_bytes = 0;
        let mut decoded = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut chunks).await {
            let Ok(chunk) = chunk else {
                return self.run.emit(Event::Unreadable).await;
            };
            decoder.feed(&chunk, &mut decoded);
            size_bytes += self.collect(&mut decoded, &mut blocks).await;
            if size_bytes > limits::MAX_HELD_BYTES as u64 {
                self.run.emit(Event::Refused(Box::new(too_large()))).await;
                return;
            }
        }
        decoder.finish(&mut decoded);
        if !self.run.cancel.is_cancelled() {
            decoded.extend(decoder.why_nothing());
        }
        self.collect(&mut decoded, &mut blocks).await;
        if decoder.is_refused() || self.run.cancel.is_cancelled() {
            return;
        }
        let mut promised = Vec::new();
        for block in blocks {
            self.run.context.secrets.begin_block();
            self.run_block(block, &mut promised).await;
        }
    }

    /// Returns the next bytes; cancellation ends the message.
    async fn next_chunk(&self, chunks: &mut mpsc::Receiver<Chunk>) -> Option<Chunk> {
        tokio::select! {
            biased;
            () = self.run.cancel.cancelled() => None,
            chunk = chunks.recv() => chunk,
        }
    }

    /// Collects decoded items into blocks; returns the size of their calls in bytes.
    async fn collect(&self, decoded: &mut Vec<DecodedItem>, blocks: &mut Vec<Block>) -> u64 {
        let mut bytes = 0;
        for item in decoded.drain(..) {
            match item {
                DecodedItem::BlockOpened(options) => {
                    let calls = Vec::new();
                    blocks.push(Block { options, calls });
                }
                DecodedItem::Call(prepared) => {
                    bytes += prepared.size_bytes;
                    if let Some(block) = blocks.last_mut() {
                        block.calls.push(*prepared);
                    }
                }
                DecodedItem::BlockClosed => {}
                DecodedItem::Prose(text) => self.run.emit(Event::Prose(text)).await,
                DecodedItem::DraftsEnded => blocks.clear(),
                DecodedItem::Warning(diagnostic) => self.run.emit(Event::Warning(diagnostic)).await,
                DecodedItem::Refused(diagnostic) => self.run.emit(Event::Refused(diagnostic)).await,
            }
        }
        bytes
    }

    /// Runs one block. In a dry run, the values it asks for count as defined for the blocks after it.
    async fn run_block(&self, block: Block, promised: &mut Vec<SecretName>) {
        let admission = Admission::open(self.run.clone(), promised).await;
        let admitted = admission.admit(block.calls).await;
        // The store may have become readable meanwhile.
        self.warn_of_load_issues().await;
        let calls = match admitted {
            Ok(calls) => calls,
            Err(refused) => return self.report_refused(refused).await,
        };
        if self.run.is_dry_run {
            return self.report_dry_run(calls, promised).await;
        }
        let mut block_run = BlockRun::new(self.run.clone(), block.options);
        block_run.push_all(calls).await;
        block_run.finish().await;
    }

    /// Warns once about stored values that could not be loaded: an unknown value is not masked.
    async fn warn_of_load_issues(&self) {
        let lacks = self.run.context.secrets.load_issues().into_iter();
        // After the user cancelled a question no output follows that would need masking.
        for lack in lacks.filter(|lack| lack.error.code != ErrorCode::Cancelled) {
            let warning = Box::new(load_issue_warning(&lack));
            if self.is_new(&warning.message) {
                self.run.emit(Event::Warning(warning)).await;
            }
        }
    }

    fn is_new(&self, message: &str) -> bool {
        // A poisoned lock only means that another thread panicked between two changes.
        let mut emitted = self
            .emitted_warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        emitted.insert(message.to_owned())
    }

    /// Reports a block without running it.
    async fn report_dry_run(&self, calls: Vec<AdmittedCall>, promised: &mut Vec<SecretName>) {
        for call in calls {
            let prepared = call.into_inner();
            promised.extend(prepared.call.provides());
            let index = prepared.index;
            let changes = !READERS.contains(&prepared.call.spec().name);
            let is_current = !self.has_changes.fetch_or(changes, Ordering::Relaxed);
            let outcome = call_run::planned(&self.run, prepared, is_current).await;
            let outcome = outcome.map(Box::new);
            self.run.emit(Event::Finished { index, outcome }).await;
        }
    }

    /// Reports a block that does not run: some calls are refused, the others skipped.
    async fn report_refused(&self, refused: RefusedCalls) {
        let RefusedCalls { calls, mut errors } = refused;
        let first = errors.keys().min().and_then(|at| calls.get(*at));
        let skipped = block_refused(first.map_or("", |prepared| &prepared.id));
        for (at, prepared) in calls.into_iter().enumerate() {
            let error = errors.remove(&at).unwrap_or_else(|| skipped.clone());
            let (index, id) = (prepared.index, prepared.id);
            let outcome = call_run::not_started(&self.run, id, &prepared.call, error);
            let outcome = outcome.map(Box::new);
            self.run.emit(Event::Finished { index, outcome }).await;
        }
    }

    async fn run_streaming(&self, decoder: &mut MessageDecoder, mut chunks: mpsc::Receiver<Chunk>) {
        let mut block: Option<OpenBlock> = None;
        let mut decoded = Vec::new();
        // A value may arrive in pieces.
        let mut prose = self.run.context.redactor.second_stream();
        decoder.run_at_once();
        loop {
            let chunk = self.next_while_running(&mut chunks, &mut block).await;
            let is_cut_off = matches!(chunk, Some(Err(Unreadable)))
                || chunk.is_none() && self.run.cancel.is_interrupted();
            match &chunk {
                Some(Ok(bytes)) => decoder.feed(bytes, &mut decoded),
                Some(Err(Unreadable)) => self.run.emit(Event::Unreadable).await,
                // What the user cut off is not repaired.
                None if self.run.cancel.has_spared_session() => {}
                None => {
                    decoder.finish(&mut decoded);
                    let is_whole = !self.run.cancel.is_interrupted();
                    decoded.extend(decoder.why_nothing().filter(|_| is_whole));
                }
            }
            for item in decoded.drain(..) {
                match item {
                    DecodedItem::Prose(text) => self.emit_prose(|out| prose.push(&text, out)).await,
                    item => {
                        self.emit_prose(|out| prose.flush(out)).await;
                        self.handle(item, &mut block).await;
                    }
                }
            }
            match chunk {
                Some(Ok(_)) => {}
                _ if is_cut_off => break self.emit_prose(|out| prose.finish_cut(out)).await,
                _ => break self.emit_prose(|out| prose.finish(out)).await,
            }
        }
        if let Some(block) = block {
            block.finish().await;
        }
    }

    /// Waits for the next bytes while calls run; cancellation ends the message.
    async fn next_while_running(
        &self,
        chunks: &mut mpsc::Receiver<Chunk>,
        block: &mut Option<OpenBlock>,
    ) -> Option<Chunk> {
        loop {
            let Some(run) = block.as_mut().and_then(OpenBlock::running) else {
                return self.next_chunk(chunks).await;
            };
            let finished = tokio::select! {
                chunk = self.next_chunk(chunks) => return chunk,
                finished = run.next_finished() => finished,
            };
            run.complete(finished).await;
        }
    }

    /// Emits prose that a stream lets out.
    async fn emit_prose(&self, pass: impl FnOnce(&mut Redacted)) {
        let mut text = Redacted::default();
        pass(&mut text);
        if !text.as_str().is_empty() {
            self.run.emit(Event::Prose(text.into_string())).await;
        }
    }

    /// Handles one decoded item while calls run. A new block starts when the block before it is done.
    async fn handle(&self, item: DecodedItem, block: &mut Option<OpenBlock>) {
        match item {
            DecodedItem::BlockOpened(options) => {
                if let Some(last) = block.take() {
                    last.finish().await;
                }
                self.run.context.secrets.begin_block();
                *block = Some(OpenBlock::open(self.run.clone(), options).await);
            }
            DecodedItem::Call(prepared) => {
                if let Some(block) = block {
                    block.take_call(*prepared).await;
                    // The store may have become readable meanwhile.
                    self.warn_of_load_issues().await;
                }
            }
            DecodedItem::BlockClosed => {
                if let Some(block) = block {
                    block.close().await;
                    self.warn_of_load_issues().await;
                }
            }
            // Prose was masked and emitted before.
            DecodedItem::DraftsEnded | DecodedItem::Prose(_) => {}
            DecodedItem::Warning(diagnostic) => self.run.emit(Event::Warning(diagnostic)).await,
            DecodedItem::Refused(diagnostic) => self.run.emit(Event::Refused(diagnostic)).await,
        }
    }
}

/// Returns the error of a call in a block of which another call was refused.
fn block_refused(id: &str) -> ToolError {
    let message = format!("call {id} was refused, so nothing of its block was run");
    ToolError::new(ErrorCode::BlockRefused, message)
}

fn load_issue_warning(lack: &LoadIssue) -> Diagnostic {
    let (code, message) = describe_load_issue(lack);
    let hint = &lack.error.hint;
    let hint = format!("{hint}; --require-vault runs nothing without them");
    run_diagnostic(code, message, hint)
}

/// Returns the code and the message of a problem with stored values.
#[must_use]
pub fn describe_load_issue(lack: &LoadIssue) -> (Code, String) {
    let error = &lack.error;
    let mut cause = format!("{}: {}", error.code.as_str(), error.message);
    if !lack.names.is_empty() {
        let names = listed(&lack.names);
        cause.push_str(&format!(" ({names})"));
    }
    match lack.kind {
        LoadIssueKind::Unread => {
            let message = format!("values in the store are not known and not masked: {cause}");
            (Code::RedactionIncomplete, message)
        }
        LoadIssueKind::Elsewhere => {
            let message = format!("values are not known and not masked: {}", error.message);
            (Code::RedactionIncomplete, message)
        }
        LoadIssueKind::Unusable => {
            let message = format!("values in the store cannot be used, and are masked: {cause}");
            (Code::UnusableSecret, message)
        }
    }
}

fn unknown_name_warning(name: &UnknownName) -> Diagnostic {
    let message = name.to_string();
    let hint = "correct the name if `karyi var list` shows a similar one; the entry also applies to a secret \
                that is added under this name later";
    run_diagnostic(Code::UnknownSecret, message, hint.into())
}

fn too_large() -> Diagnostic {
    let message = format!(
        "the calls of the message are larger than {} bytes",
        limits::MAX_HELD_BYTES
    );
    let hint = "run it with --stream, so that each call starts as soon as it is read";
    run_diagnostic(Code::TooLarge, message, hint.into())
}

/// Returns a diagnostic about the whole run.
fn run_diagnostic(code: Code, message: String, hint: String) -> Diagnostic {
    Diagnostic {
        code,
        position: Position::START,
        is_in_json: false,
        message,
        hint,
        excerpt: None,
    }
}
