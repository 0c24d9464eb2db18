//! One message from its first byte to its last result.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::block::{BlockRun, interrupted};
use crate::exec::call;
use crate::exec::intake::{Incoming, Intake, Job};
use crate::exec::permit::Unknown;
use crate::exec::resolve;
use crate::exec::stage::Stage;
use crate::tools::Call;
use karyi_core::call::BlockOptions;
use karyi_core::error::{Code, Diagnostic, ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::JobNews;
use karyi_core::secret::SecretName;
use karyi_core::span::Position;
use karyi_vault::session::{LoadIssue, LoadIssueKind, Need, listed};
use karyi_vault::substitute;

/// When the first call of a message may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When the whole message was read and nothing in it was refused.
    Whole,
    /// As soon as its own end is decided.
    Stream,
}

/// Some bytes of a message, or the news that the rest of it cannot be read.
pub type Chunk = Result<Vec<u8>, Unreadable>;

/// The rest of a message cannot be read: what came before it means nothing then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// A block that was read and not yet run.
struct Block {
    options: BlockOptions,
    jobs: Vec<Job>,
}

/// Runs the messages of one session, one after another.
pub struct Runner {
    stage: Stage,
    /// What was told of stored values that are not known or cannot be used.
    told: Mutex<BTreeSet<String>>,
}

impl Runner {
    /// Makes a runner.
    #[must_use]
    pub fn new(stage: Stage) -> Self {
        Self {
            stage,
            told: Mutex::default(),
        }
    }

    /// Reads a message and runs its calls. Returns once every call has its result.
    pub async fn message(&self, intake: Intake, chunks: mpsc::Receiver<Chunk>, pace: Pace) {
        for found in self.stage.permits.unknown() {
            let warning = Box::new(unknown(found));
            self.stage.tell(Event::Warning(warning)).await;
        }
        match pace {
            Pace::Whole => self.whole(intake, chunks).await,
            Pace::Stream => self.stream(intake, chunks).await,
        }
    }

    /// Runs a call of its own, beside which others may run. Returns once it has its result. A value
    /// that is there once is for the next such call that uses it.
    pub async fn call(&self, mut job: Job) {
        let names = resolve::names(&mut job.call);
        let claimed = self.stage.context.secrets.claim_once(&names);
        let block = Block {
            options: BlockOptions::default(),
            jobs: vec![job],
        };
        match claimed {
            Ok(_claim) => self.run_block(block, &mut Vec::new()).await,
            Err(taken) => {
                let refused = HashMap::from([(0, substitute::undefined(&taken))]);
                self.refuse(block, refused).await;
            }
        }
    }

    /// Tells an event of the message as a whole.
    pub async fn tell(&self, event: Event) {
        self.stage.tell(event).await;
    }

    /// Tells what the jobs do.
    pub async fn jobs(&self) {
        let news = self.stage.jobs.news().await;
        self.tell_jobs(news).await;
    }

    /// Ends the sessions and tells what became of the jobs.
    pub async fn close(&self) {
        let news = self.stage.jobs.close().await;
        self.tell_jobs(news).await;
    }

    async fn tell_jobs(&self, news: Vec<JobNews>) {
        let omitted = self.stage.jobs.take_omitted();
        self.stage.tell(Event::Jobs { news, omitted }).await;
    }

    async fn whole(&self, mut intake: Intake, mut chunks: mpsc::Receiver<Chunk>) {
        let mut blocks = Vec::new();
        let mut held_bytes = 0;
        let mut incoming = Vec::new();
        while let Some(chunk) = self.next(&mut chunks).await {
            let Ok(chunk) = chunk else {
                return self.stage.tell(Event::Unreadable).await;
            };
            intake.feed(&chunk, &mut incoming);
            held_bytes += self.collect(&mut incoming, &mut blocks).await;
            if held_bytes > limits::MAX_HELD_BYTES as u64 {
                self.stage.tell(Event::Refused(Box::new(too_large()))).await;
                return;
            }
        }
        intake.finish(&mut incoming);
        self.collect(&mut incoming, &mut blocks).await;
        if intake.is_refused() || self.stage.cancel.is_cancelled() {
            return;
        }
        let mut promised = Vec::new();
        for block in blocks {
            self.block(block, &mut promised).await;
        }
    }

    /// Waits for the next bytes; a wish to stop is the end.
    async fn next(&self, chunks: &mut mpsc::Receiver<Chunk>) -> Option<Chunk> {
        tokio::select! {
            biased;
            () = self.stage.cancel.cancelled() => None,
            chunk = chunks.recv() => chunk,
        }
    }

    /// Keeps what came; returns how many bytes of calls that is.
    async fn collect(&self, incoming: &mut Vec<Incoming>, blocks: &mut Vec<Block>) -> u64 {
        let mut bytes = 0;
        for item in incoming.drain(..) {
            match item {
                Incoming::BlockOpened(options) => {
                    let jobs = Vec::new();
                    blocks.push(Block { options, jobs });
                    self.stage.tell(Event::BlockOpened).await;
                }
                Incoming::Job(job) => {
                    bytes += job.held_bytes;
                    if let Some(block) = blocks.last_mut() {
                        block.jobs.push(*job);
                    }
                }
                Incoming::BlockClosed => {}
                Incoming::Warning(diagnostic) => self.stage.tell(Event::Warning(diagnostic)).await,
                Incoming::Refused(diagnostic) => self.stage.tell(Event::Refused(diagnostic)).await,
            }
        }
        bytes
    }

    /// Runs one block. In a dry run the values it asks for are promised to the blocks after it.
    async fn block(&self, block: Block, promised: &mut Vec<SecretName>) {
        self.stage.context.secrets.begin_block();
        self.run_block(block, promised).await;
    }

    async fn run_block(&self, mut block: Block, promised: &mut Vec<SecretName>) {
        let secrets = &self.stage.context.secrets;
        let is_known = |name: &SecretName| secrets.contains(name) || promised.contains(name);
        resolve::refresh(secrets, Need::Listed).await;
        let mut checked = check_names(&mut block, &is_known);
        if checked.is_err() && secrets.has_source() {
            resolve::refresh(secrets, Need::Used).await;
            checked = check_names(&mut block, &is_known);
        }
        // What was not known at first may be known by now.
        self.tell_lacks().await;
        if self.stage.cancel.is_cancelled() {
            return self.skip(block).await;
        }
        if let Err(error) = checked {
            let refused = faulty(&mut block, &is_known, &error)
                .map(|(at, error)| (at, resolve::explain(error, secrets)))
                .collect();
            return self.refuse(block, refused).await;
        }
        let mut calls: Vec<&mut Call> = block.jobs.iter_mut().map(|job| &mut job.call).collect();
        let permitted = self.stage.permits.check(&mut calls, &self.stage.context);
        if let Err((at, error)) = permitted.await {
            return self.refuse(block, HashMap::from([(at, error)])).await;
        }
        if self.stage.is_dry_run {
            promised.extend(block.jobs.iter().filter_map(|job| job.call.provides()));
            return self.describe(block).await;
        }
        let mut run = BlockRun::new(self.stage.clone(), block.options);
        for job in block.jobs {
            run.push(job).await;
        }
        run.finish().await;
    }

    /// Warns once of stored values that are lacking: what is not known is not masked.
    async fn tell_lacks(&self) {
        let lacks = self.stage.context.secrets.load_issues().into_iter();
        // After a question at which the user ended the run nothing is shown that could have to be masked.
        for lack in lacks.filter(|lack| lack.error.code != ErrorCode::Cancelled) {
            let warning = Box::new(lacking(&lack));
            if self.is_new(&warning.message) {
                self.stage.tell(Event::Warning(warning)).await;
            }
        }
    }

    fn is_new(&self, message: &str) -> bool {
        // A poisoned lock only means that another thread panicked between two changes.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(message.to_owned())
    }

    /// Tells what a block would do.
    async fn describe(&self, block: Block) {
        for job in block.jobs {
            let error = ToolError::new(ErrorCode::DryRun, "nothing is run");
            let mut outcome = Box::new(call::not_started(job.id, &job.call, error));
            outcome
                .fields
                .insert("title".into(), call::title(&job.call).into());
            outcome.repairs = job.repairs;
            let index = job.index;
            self.stage.tell(Event::Finished { index, outcome }).await;
        }
    }

    /// Reports a block of which nothing runs: some calls are refused, and so the others are skipped.
    async fn refuse(&self, block: Block, mut refused: HashMap<usize, ToolError>) {
        let first = refused.keys().min().and_then(|at| block.jobs.get(*at));
        let skipped = not_alone(first.map_or("", |job| &job.id));
        for (at, job) in block.jobs.into_iter().enumerate() {
            let error = refused.remove(&at).unwrap_or_else(|| skipped.clone());
            let outcome = Box::new(call::not_started(job.id, &job.call, error));
            let index = job.index;
            self.stage.tell(Event::Finished { index, outcome }).await;
        }
    }

    /// Reports a block of which nothing runs since the run is to end.
    async fn skip(&self, block: Block) {
        let refused = (0..block.jobs.len()).map(|at| (at, interrupted()));
        self.refuse(block, refused.collect()).await;
    }

    async fn stream(&self, mut intake: Intake, mut chunks: mpsc::Receiver<Chunk>) {
        let mut run: Option<BlockRun> = None;
        let mut incoming = Vec::new();
        loop {
            let chunk = self.next_while_running(&mut chunks, &mut run).await;
            match &chunk {
                Some(Ok(bytes)) => intake.feed(bytes, &mut incoming),
                Some(Err(Unreadable)) => self.stage.tell(Event::Unreadable).await,
                None => intake.finish(&mut incoming),
            }
            for item in incoming.drain(..) {
                self.arrive(item, &mut run).await;
            }
            if !matches!(chunk, Some(Ok(_))) {
                break;
            }
        }
        if let Some(run) = run {
            run.finish().await;
        }
    }

    /// Waits for the next bytes and lets running calls go on meanwhile; a wish to stop is the end.
    async fn next_while_running(
        &self,
        chunks: &mut mpsc::Receiver<Chunk>,
        run: &mut Option<BlockRun>,
    ) -> Option<Chunk> {
        loop {
            let Some(run) = run.as_mut().filter(|run| !run.is_done()) else {
                return self.next(chunks).await;
            };
            let ended = tokio::select! {
                chunk = self.next(chunks) => return chunk,
                ended = run.ended() => ended,
            };
            run.settle(ended).await;
        }
    }

    /// Takes one thing that was read while calls run. A new block starts when the one before it is
    /// done.
    async fn arrive(&self, item: Incoming, run: &mut Option<BlockRun>) {
        match item {
            Incoming::BlockOpened(options) => {
                if let Some(last) = run.take() {
                    last.finish().await;
                }
                self.stage.context.secrets.begin_block();
                resolve::refresh(&self.stage.context.secrets, Need::Listed).await;
                *run = Some(BlockRun::new(self.stage.clone(), options));
                self.stage.tell(Event::BlockOpened).await;
            }
            Incoming::Job(job) => {
                if let Some(run) = run {
                    while run.waiting() >= limits::CHANNEL_DEPTH {
                        let ended = run.ended().await;
                        run.settle(ended).await;
                    }
                    run.push(*job).await;
                    // That may have looked into the store for its names.
                    self.tell_lacks().await;
                }
            }
            Incoming::BlockClosed => {}
            Incoming::Warning(diagnostic) => self.stage.tell(Event::Warning(diagnostic)).await,
            Incoming::Refused(diagnostic) => self.stage.tell(Event::Refused(diagnostic)).await,
        }
    }
}

fn check_names(block: &mut Block, is_known: &dyn Fn(&SecretName) -> bool) -> Result<(), ToolError> {
    let calls = block.jobs.iter_mut().map(|job| &mut job.call);
    resolve::check_names(calls, is_known)
}

/// Returns the calls that use a name without a value, or no name, by their places. Each of the former
/// has the error of the block, which lists all names, when that is about names.
fn faulty<'a>(
    block: &'a mut Block,
    is_known: &'a dyn Fn(&SecretName) -> bool,
    of_block: &'a ToolError,
) -> impl Iterator<Item = (usize, ToolError)> + 'a {
    let jobs = block.jobs.iter_mut().enumerate();
    jobs.filter_map(move |(at, job)| {
        let own = resolve::check_names(std::iter::once(&mut job.call), is_known).err()?;
        let is_listed = own.code == of_block.code && own.code == ErrorCode::UndefinedVariable;
        Some((at, if is_listed { of_block.clone() } else { own }))
    })
}

/// Returns the error of a call in a block of which another one was refused.
fn not_alone(id: &str) -> ToolError {
    let message = format!("call {id} was refused, so nothing of its block was run");
    ToolError::new(ErrorCode::BlockRefused, message)
}

fn lacking(lack: &LoadIssue) -> Diagnostic {
    let (code, message) = lack_in_words(lack);
    let hint = &lack.error.hint;
    let hint = format!("{hint}; --require-vault runs nothing without them");
    of_the_run(code, message, hint)
}

/// Says what is lacking of stored values.
#[must_use]
pub fn lack_in_words(lack: &LoadIssue) -> (Code, String) {
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

fn unknown(found: &Unknown) -> Diagnostic {
    let message = found.to_string();
    let hint = "correct the name if `karyi var list` has another one; it counts for a secret that comes \
                under it";
    of_the_run(Code::UnknownSecret, message, hint.into())
}

fn too_large() -> Diagnostic {
    let message = format!(
        "the calls of the message are larger than {} bytes",
        limits::MAX_HELD_BYTES
    );
    let hint = "run it with --stream, so that each call starts as soon as it is read";
    of_the_run(Code::TooLarge, message, hint.into())
}

/// Makes a diagnostic about the whole run.
fn of_the_run(code: Code, message: String, hint: String) -> Diagnostic {
    Diagnostic {
        code,
        position: Position::START,
        is_in_json: false,
        message,
        hint,
        excerpt: None,
    }
}
