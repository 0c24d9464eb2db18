//! The tools of this machine for callers of the server: each call in a shell of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::capped::Cap;
use crate::error::{ErrorCode, ToolError};
use crate::exec::cancel::Cancel;
use crate::exec::intake::Job;
use crate::exec::jobs::Jobs;
use crate::exec::log::Logs;
use crate::exec::permit::Permits;
use crate::exec::stage::Stage;
use crate::exec::{Event, call};
use crate::files::root::Root;
use crate::files::transaction::Recorder;
use crate::limits;
use crate::outcome::{Outcome, Status};
use crate::pty::{HoldsSecret, SessionOptions};
use crate::render::wire;
use crate::service::running::{LocalTools, Running};
use crate::tool::Context;
use crate::tool::context::{Boxed, Consent, Prompter, Question, Reply, Request};
use crate::tool::sessions::{JobFiles, Sessions};
use crate::tools::Call;
use crate::vault::redact::{Redacted, Redactor};
use crate::vault::session::Secrets;

/// Nobody can be asked: over a network there is no person at hand.
pub struct Nobody;

impl Prompter for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async { Reply::Unavailable })
    }

    fn agree<'a>(&'a self, _: &'a Request) -> Boxed<'a, Consent> {
        Box::pin(async { Consent::Unavailable })
    }
}

/// Makes what a call may use: a shell that is started when it is needed, and no secrets.
#[must_use]
pub fn context(session: &SessionOptions, root: &Arc<Root>) -> Context {
    let secrets = Secrets::default();
    let known = secrets.clone();
    let mut session = session.clone();
    session.secrets = HoldsSecret::new(move |bytes| known.are_in(bytes));
    Context {
        sessions: Arc::new(Sessions::new(session)),
        terminal: None,
        root: Arc::clone(root),
        secrets,
        prompter: Arc::new(Nobody),
        keeper: None,
        command_timeout: None,
        sink: Arc::new(|| Box::new(|_| {})),
        rest: Arc::new(|| Box::new(|_| {})),
        job_files: JobFiles::default(),
        recorder: Recorder::default(),
        cancelled: Arc::default(),
        site: None,
    }
}

/// Runs each call in a shell of its own.
pub struct FreshShells {
    /// How the shells are started.
    pub session: SessionOptions,
    /// Where files may be touched.
    pub root: Arc<Root>,
    /// Where whole outputs go while a call runs.
    pub output: PathBuf,
}

/// Ends a call that nobody waits for any more.
struct Owned(Cancel);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl LocalTools for FreshShells {
    fn run(&self, call: Call, deadline: Instant) -> Running {
        let cancel = Cancel::default();
        let left = deadline.saturating_duration_since(Instant::now());
        let context = Context {
            cancelled: cancel.flag(),
            command_timeout: Some(left),
            ..context(&self.session, &self.root)
        };
        let logs = Logs::new(
            self.output.clone(),
            limits::OUTPUT_FILE_BYTES,
            false,
            context.job_files.clone(),
        );
        Box::pin(async move {
            let owned = Owned(cancel.clone());
            let (sender, outcome) = oneshot::channel();
            // It goes on after this future is dropped until its shell has ended.
            tokio::spawn(async move {
                let outcome = alone(context, logs, cancel, call).await;
                let _ = sender.send(outcome);
            });
            let outcome = outcome.await;
            drop(owned);
            let broken = |_| ToolError::new(ErrorCode::Internal, "the tool stopped unexpectedly");
            fields(outcome.map_err(broken)?)
        })
    }
}

async fn alone(context: Context, logs: Logs, cancel: Cancel, call: Call) -> Outcome {
    let redactor = Redactor::new(&context.secrets);
    let (events, mut received) = mpsc::channel::<Redacted<Event>>(limits::CHANNEL_DEPTH);
    let drain = tokio::spawn(async move { while received.recv().await.is_some() {} });
    let jobs = Jobs::new(Arc::clone(&context.sessions), logs, redactor.clone());
    let stage = Stage {
        context,
        cap: Cap::default(),
        is_live: false,
        has_colour: false,
        is_dry_run: false,
        events,
        cancel,
        jobs: jobs.clone(),
        permits: Permits::default(),
        redactor,
    };
    let job = Job {
        index: 0,
        id: "1".into(),
        call,
        repairs: Vec::new(),
        held_bytes: 0,
    };
    let outcome = call::run(stage, job).await;
    jobs.close().await;
    drain.abort();
    outcome
}

fn fields(outcome: Outcome) -> Result<serde_json::Map<String, serde_json::Value>, ToolError> {
    match (&outcome.error, outcome.status) {
        (Some(error), Status::Error | Status::Refused | Status::Skipped) => Err(error.clone()),
        _ => {
            let mut fields = wire::result(&outcome);
            for name in ["id", "tool"] {
                fields.shift_remove(name);
            }
            Ok(fields)
        }
    }
}
