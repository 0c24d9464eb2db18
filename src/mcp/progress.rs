//! Tells a client that asked for it how a long call goes: how long it has run, and what it printed
//! last.

use std::time::Instant;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::limits;
use crate::mcp::server::Asked;
use crate::vault::redact::Redacted;

/// Tells of one call; of nothing when the client did not ask.
pub struct Progress {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    since: Instant,
    ticks: Interval,
    line: String,
    sending: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins when a call begins.
    #[must_use]
    pub fn new(asked: &Asked) -> Self {
        let token = asked.meta.get_progress_token();
        let start = tokio::time::Instant::now() + limits::PROGRESS_STEP;
        let mut ticks = interval_at(start, limits::PROGRESS_STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            to: token.map(|token| (asked.peer.clone(), token)),
            since: Instant::now(),
            ticks,
            line: String::new(),
            sending: None,
        }
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Takes what was printed; its last line will be told.
    pub fn note(&mut self, text: &Redacted) {
        let last = text.as_str().lines().rfind(|line| !line.trim().is_empty());
        if let Some(last) = last {
            self.line = last
                .trim()
                .chars()
                .take(limits::MAX_PROGRESS_CHARS)
                .collect();
        }
    }

    /// Waits until it is time to tell.
    pub async fn due(&mut self) {
        match self.to.is_some() {
            true => drop(self.ticks.tick().await),
            false => std::future::pending().await,
        }
    }

    /// Tells how it goes, unless the client has not read what was told before.
    pub fn tell(&mut self) {
        let is_busy = |sending: &JoinHandle<()>| !sending.is_finished();
        let Some((peer, token)) = self.to.clone() else {
            return;
        };
        if self.sending.as_ref().is_some_and(is_busy) {
            return;
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let message = match self.line.is_empty() {
            true => format!("{seconds:.0} s"),
            false => format!("{seconds:.0} s: {}", self.line),
        };
        let told = ProgressNotificationParam::new(token, seconds).with_message(message);
        self.sending = Some(tokio::spawn(async move {
            let _ = peer.notify_progress(told).await;
        }));
    }

    /// Waits until what was told is written, so that nothing comes after the answer; not for ever,
    /// since a client may not read.
    pub async fn end(self) {
        if let Some(sending) = self.sending {
            let _ = tokio::time::timeout(limits::CANCEL_GRACE, sending).await;
        }
    }
}
