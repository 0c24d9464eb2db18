//! A session whose calls come one by one, each from whoever it is for: what stays between them.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::log::Logs;
use crate::exec::permit::Permits;
use crate::exec::stage::Stage;
use crate::tool::Context;
use karyi_core::head_tail::Cap;
use karyi_vault::redact::{Redacted, Redactor};

/// What stays between the calls of a session.
pub struct Workplace {
    /// What its calls may use.
    pub context: Context,
    /// Masks values in everything that leaves.
    pub redactor: Redactor,
    /// The commands that go on after their call.
    pub jobs: Jobs,
    permits: Permits,
    logs: Logs,
    cap: Cap,
}

impl Workplace {
    /// Makes a session: what its calls may use, what may use secrets, where whole outputs go, and how
    /// much of an output a result keeps.
    #[must_use]
    pub fn new(context: Context, permits: Permits, logs: Logs, cap: Cap) -> Self {
        let redactor = Redactor::new(&context.secrets);
        let sessions = Arc::clone(&context.sessions);
        Self {
            jobs: Jobs::new(sessions, logs.clone(), redactor.clone()),
            context,
            redactor,
            permits,
            logs,
            cap,
        }
    }

    /// Returns what one call needs, whose events go to `events` and which `cancel` stops.
    #[must_use]
    pub fn stage(&self, events: mpsc::Sender<Redacted<Event>>, cancel: Cancel) -> Stage {
        Stage {
            context: Context {
                cancelled: cancel.flag(),
                ..self.context.clone()
            },
            cap: self.cap,
            is_live: false,
            is_watched: false,
            has_colour: false,
            is_dry_run: false,
            events,
            cancel,
            jobs: self.jobs.clone(),
            permits: self.permits.clone(),
            redactor: self.redactor.clone(),
        }
    }

    /// Ends the session: shells, jobs, files with whole outputs.
    pub async fn close(&self) {
        self.jobs.close().await;
        self.logs.remove();
    }
}
