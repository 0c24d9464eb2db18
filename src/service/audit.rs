//! Audit trail of calls: ledger records and intents, log lines, metrics, spans.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::service::audit_record::{CallDetails, CallOutcome, record};
use crate::service::caller::Caller;
use crate::service::deadline;
use crate::service::log::{Log, LogLine};
use crate::service::metrics::Metrics;
use crate::service::principal::Principal;
use crate::service::rate_limit::RefusalLimiter;
use crate::service::rejection::Rejection;
use crate::service::spans::SpanSender;
use karyi_core::ids;
use karyi_core::limits;
use karyi_store::ledger::Record;
use karyi_store::{Ledger, Pending, StoreError};

/// Writes everything that is recorded about calls.
pub struct AuditTrail {
    ledger: Arc<dyn Ledger>,
    log: Log,
    spans: Option<SpanSender>,
    refusals: RefusalLimiter<Record<'static>>,
    metrics: Metrics,
    /// True if the last write to the ledger failed.
    is_failing: AtomicBool,
}

impl AuditTrail {
    /// Creates the audit trail of a server.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>, log: Log, spans: Option<SpanSender>) -> Self {
        Self {
            ledger,
            log,
            spans,
            refusals: RefusalLimiter::new(limits::MAX_REFUSALS_RECORDED),
            metrics: Metrics::default(),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Records a rejection and returns it.
    pub async fn refuse(
        &self,
        caller: &Caller,
        principal: Option<&Principal>,
        details: &CallDetails,
        rejection: Rejection,
    ) -> Rejection {
        let mut details = details.clone();
        if details.request_type.is_empty() {
            details.request_type = "tool_call";
        }
        let outcome = CallOutcome {
            error_type: Some(rejection.error_type.into()),
            error: Some(rejection.detail.clone()),
            http_status: rejection.status,
            latency_ms: caller.latency_ms(),
            ..CallOutcome::default()
        };
        let name = principal.map_or("unauthenticated", |principal| principal.id.as_str());
        let row = record(caller, principal, &details, &outcome).into_owned();
        let due = self.refusals.decide(name, Instant::now(), row);
        let by = match rejection.error_type {
            // The ledger was already waited for.
            Rejection::UNAUDITED => caller.answer_by(),
            _ => with_grace(caller.answer_by()),
        };
        if let Some((last, count)) = due.suppressed {
            self.write_suppressed(last, count, by).await;
        }
        if let Some(row) = due.own {
            self.write(&row, by).await;
            self.log_call("tool_call_error", caller, &details, &outcome);
        }
        self.send_span(caller, &details, &outcome);
        rejection
    }

    /// Records the suppressed rejections of callers who have been silent until `until`.
    pub async fn record_suppressed(&self, until: Instant) {
        for (last, count) in self.refusals.overdue(until) {
            self.write_suppressed(last, count, None).await;
        }
    }

    /// Writes one record for many rejections of one caller; `last` is the latest of them.
    async fn write_suppressed(&self, last: Record<'_>, count: u64, by: Option<Instant>) {
        let call_id = ids::new_id().map_or(last.call_id, Into::into);
        let row = Record {
            call_id,
            count: Some(count),
            ..last
        };
        self.write(&row, by).await;
        self.log.write(&LogLine {
            event: "flood_recorded",
            call_id: Some(&row.call_id),
            http_status: row.http_status,
            error_type: row.error_type.as_deref(),
            message: Some(&format!("{count} refused requests in one record")),
            ..LogLine::default()
        });
    }

    /// Records the outcome of a call that reached its tool.
    pub async fn finish(
        &self,
        caller: &Caller,
        principal: &Principal,
        details: &CallDetails,
        outcome: &CallOutcome,
    ) {
        let status = if outcome.error_type.is_some() {
            "error"
        } else {
            "success"
        };
        if details.tool_version.is_some() {
            self.metrics
                .count_call(&details.tool_name, status, outcome.latency_ms);
        }
        if outcome.is_replay {
            self.metrics.replays.inc();
        }
        if caller.is_gone.load(Ordering::Relaxed) {
            self.metrics.disconnects.inc();
        }
        self.record_request(caller, principal, details, outcome)
            .await;
        let event = if outcome.error_type.is_some() {
            "tool_call_error"
        } else {
            "tool_call_success"
        };
        self.log_call(event, caller, details, outcome);
        self.send_span(caller, details, outcome);
    }

    /// Records a request.
    pub async fn record_request(
        &self,
        caller: &Caller,
        principal: &Principal,
        details: &CallDetails,
        outcome: &CallOutcome,
    ) {
        let make = || record(caller, Some(principal), details, outcome);
        // `keep` turns the record into text before it waits, so the record need not live longer.
        let stored = self.ledger.append(&make());
        match in_time(stored, with_grace(caller.answer_by())).await {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(error) => self.report_failure(&make(), &error),
        }
    }

    /// Writes a record; a failure is logged.
    async fn write(&self, record: &Record<'_>, by: Option<Instant>) {
        match in_time(self.ledger.append(record), by).await {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(error) => self.report_failure(record, &error),
        }
    }

    /// Writes records that had to wait, if there are any.
    pub async fn catch_up(&self) {
        // The failure was logged when they were queued.
        if self.ledger.backlog() > 0 && self.ledger.flush().await.is_ok() {
            self.is_failing.store(false, Ordering::Relaxed);
        }
    }

    /// Writes waiting records for as long as shutdown allows, logs how many are lost, and returns
    /// that number.
    pub async fn flush(&self) -> usize {
        let limit = Instant::now() + limits::LATE_RECORDS_TIMEOUT;
        loop {
            self.catch_up().await;
            let late = self.ledger.backlog();
            if late == 0 {
                return 0;
            }
            if Instant::now() >= limit {
                let message = format!("{late} records could not be written before the end");
                self.log.write(&LogLine {
                    event: "records_lost",
                    message: Some(&message),
                    ..LogLine::default()
                });
                return late;
            }
            tokio::time::sleep(limits::LATE_RECORDS_PAUSE).await;
        }
    }

    fn report_failure(&self, record: &Record<'_>, error: &StoreError) {
        self.is_failing.store(true, Ordering::Relaxed);
        self.metrics.ledger_failures.inc();
        self.log.write(&LogLine {
            event: "ledger_write_failed",
            trace_id: Some(&record.trace_id),
            tool_name: Some(&record.tool_name),
            call_id: Some(&record.call_id),
            message: Some(&error.to_string()),
            ..LogLine::default()
        });
    }

    /// Records that a call is about to change something; without this record it must not.
    ///
    /// # Errors
    /// 503 if the ledger cannot be written.
    pub async fn record_intent(
        &self,
        caller: &Caller,
        principal: &Principal,
        details: &CallDetails,
    ) -> Result<(), Rejection> {
        let outcome = CallOutcome {
            error_type: Some("Started".into()),
            latency_ms: caller.latency_ms(),
            ..CallOutcome::default()
        };
        let intent = record(caller, Some(principal), details, &outcome);
        // An intent that is written too late is removed again.
        let stored = in_time(
            self.ledger.record_intent(&intent),
            with_grace(caller.answer_by()),
        )
        .await;
        stored.map_err(|error| {
            self.report_failure(&intent, &error);
            let detail = "the ledger cannot be written now, so nothing was changed";
            Rejection::audit_unavailable(detail).with_retry_after(1)
        })
    }

    /// Tells whether the last write to the ledger failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Checks that the ledger can be written now.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub async fn probe(&self) -> Result<(), StoreError> {
        let result = self.ledger.probe().await;
        self.is_failing.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Writes a log line about a call that has no outcome yet.
    pub fn log_event(&self, event: &str, caller: &Caller, details: &CallDetails) {
        self.log_call(event, caller, details, &CallOutcome::default());
    }

    /// Writes a log line about a call.
    fn log_call(&self, event: &str, caller: &Caller, details: &CallDetails, outcome: &CallOutcome) {
        let is_over = outcome.http_status > 0;
        self.log.write(&LogLine {
            event,
            trace_id: Some(&caller.trace_id),
            tool_name: Some(details.tool_name.as_str()).filter(|name| !name.is_empty()),
            tenant_id: Some(&caller.tenant_id),
            site_id: Some(&caller.site_id),
            latency_ms: is_over.then_some(outcome.latency_ms),
            call_id: Some(&caller.call_id),
            http_status: is_over.then_some(outcome.http_status),
            error_type: outcome.error_type.as_deref(),
            message: outcome.error.as_deref(),
        });
    }

    fn send_span(&self, caller: &Caller, details: &CallDetails, outcome: &CallOutcome) {
        if let Some(spans) = &self.spans
            && !details.tool_name.is_empty()
        {
            spans.send(caller, details, outcome);
        }
    }
}

/// Returns how long a caller waits for the ledger. A caller whose time is up still waits for about
/// as long as a commit takes.
fn with_grace(by: Option<Instant>) -> Option<Instant> {
    by.map(|by| by.max(Instant::now() + limits::RECORD_GRACE))
}

/// Waits for the ledger, but not beyond the caller's own deadline. The record is written even if
/// nobody waits for it.
async fn in_time(work: Pending<'_, ()>, by: Option<Instant>) -> Result<(), StoreError> {
    let Some(by) = by else { return work.await };
    let ended = deadline::with_deadline(by, pin!(work)).await;
    ended.unwrap_or(Err(StoreError::Late))
}
