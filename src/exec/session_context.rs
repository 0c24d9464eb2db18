//! State shared by the calls of a session that arrive one at a time, each from its own client.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::output_log::OutputLogs;
use crate::exec::policy_gate::PolicyGate;
use crate::exec::run_context::RunContext;
use crate::tool::Context;
use karyi_core::head_tail::Cap;
use karyi_vault::redact::Redacted;

/// State shared by the calls of a session.
pub struct SessionContext {
    /// Resources the tools may use.
    pub context: Context,
    /// Commands that outlive their call.
    pub jobs: Jobs,
    policy_gate: PolicyGate,
    logs: OutputLogs,
    cap: Cap,
}

impl SessionContext {
    /// Creates a session. `cap` limits the output a result shows; `logs` takes whole outputs.
    #[must_use]
    pub fn new(context: Context, policy_gate: PolicyGate, logs: OutputLogs, cap: Cap) -> Self {
        let sessions = Arc::clone(&context.sessions);
        Self {
            jobs: Jobs::new(sessions, logs.clone(), context.redactor.clone()),
            context,
            policy_gate,
            logs,
            cap,
        }
    }

    /// Returns the context of one call, which sends its events to `events` and stops with `cancel`.
    #[must_use]
    pub fn run_context(&self, events: mpsc::Sender<Redacted<Event>>, cancel: Cancel) -> RunContext {
        RunContext {
            context: Context {
                cancelled: cancel.flag(),
                ..self.context.clone()
            },
            cap: self.cap,
            is_live: false,
            is_watched: false,
            has_colour: false,
            has_keyboard: false,
            is_dry_run: false,
            events,
            cancel,
            jobs: self.jobs.clone(),
            policy_gate: self.policy_gate.clone(),
        }
    }

    /// Ends the session: closes shells and jobs, removes output files.
    pub async fn close(&self) {
        self.jobs.close().await;
        self.logs.remove();
    }
}
