//! Audit trail of calls: ledger records and intents, log lines, metrics, spans.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::service::caller::Caller;
use crate::service::metrics::Metrics;
use crate::service::rate_limit::RefusalLimiter;
use crate::service::rejection::Rejection;
use crate::service::spans::SpanSender;
use karyi_core::ids;
use karyi_core::limits;
use karyi_store::ledger::{Record, ToolCall};
use karyi_store::{Ledger, Pending, StoreError};
use karyi_vault::redact::Redactor;

/// Writes everything that is recorded about calls.
pub struct AuditTrail {
    ledger: Arc<dyn Ledger>,
    spans: Option<SpanSender>,
    refusals: RefusalLimiter<Record<'static>>,
    /// Counters of calls and responses.
    pub metrics: Metrics,
    /// Masks the operator's secrets in text from callers.
    pub redactor: Redactor,
    /// True if the last write to the ledger failed.
    is_failing: AtomicBool,
}

/// Outcome of a call, for the ledger.
#[derive(Debug, Clone, Default)]
pub struct CallOutcome {
    /// Kind of the error; none after success.
    pub error_type: Option<String>,
    /// Error message.
    pub error: Option<String>,
    /// HTTP status of the response.
    pub http_status: u16,
    /// Time since the request arrived, in milliseconds. Response, record and log share this value.
    pub latency_ms: u64,
    /// True if the response is that of an earlier call.
    pub is_replay: bool,
}

impl CallOutcome {
    fn status(&self) -> &'static str {
        match self.error_type {
            Some(_) => "error",
            None => "success",
        }
    }
}

impl AuditTrail {
    /// Creates the audit trail of a server.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>, spans: Option<SpanSender>, redactor: Redactor) -> Self {
        Self {
            ledger,
            spans,
            refusals: RefusalLimiter::new(limits::MAX_REFUSALS_RECORDED),
            metrics: Metrics::default(),
            redactor,
            is_failing: AtomicBool::new(false),
        }
    }

    /// Returns a caller whose texts are safe to show: those of a refused one may contain secrets.
    #[must_use]
    pub fn masked<'a>(&self, caller: &'a Caller) -> Cow<'a, Caller> {
        if self.redactor.is_idle() {
            return Cow::Borrowed(caller);
        }
        let mut masked = caller.clone();
        masked.mask(&self.redactor);
        Cow::Owned(masked)
    }

    /// Returns a name from a caller without secrets, and cut to a safe length.
    #[must_use]
    pub fn masked_name(&self, name: &str) -> String {
        let masked = self.redactor.redact_again(name);
        masked.chars().take(limits::MAX_ID_CHARS).collect()
    }

    /// Records a rejection and returns it, both without secrets.
    pub async fn refuse(&self, caller: &Caller, mut rejection: Rejection) -> Rejection {
        rejection.mask(&self.redactor);
        let caller = &*self.masked(caller);
        let outcome = CallOutcome {
            error_type: Some(rejection.error_type.into()),
            error: Some(rejection.detail.clone()),
            http_status: rejection.status,
            latency_ms: caller.latency_ms(),
            is_replay: false,
        };
        let name = caller.principal.name().unwrap_or("unauthenticated");
        let row = record(caller, &outcome).into_owned();
        let due = self.refusals.decide(name, Instant::now(), row);
        let by = match rejection.error_type {
            // The ledger was already waited for.
            Rejection::UNAUDITED => Some(Instant::now()),
            _ => with_grace(caller.answer_by()),
        };
        let suppressed = async {
            if let Some((last, count)) = due.suppressed {
                self.write_suppressed(last, count, by).await;
            }
        };
        let own = async {
            if let Some(row) = due.own {
                self.write(|| row.clone(), by).await;
                self.log_call("tool_call_error", caller, &outcome);
            }
        };
        // Together, so that a locked ledger is waited for once.
        tokio::join!(suppressed, own);
        self.send_span(caller, &outcome);
        rejection
    }

    /// Counts and logs a rejection that has no record, because its caller is not known; returns it
    /// without secrets.
    pub fn refuse_unrecorded(&self, mut rejection: Rejection) -> Rejection {
        rejection.mask(&self.redactor);
        self.metrics.unrecorded.inc();
        let status = Some(rejection.status).filter(|status| *status > 0);
        tracing::info!(
            event = "request_refused",
            http_status = status,
            error_type = rejection.error_type,
            message = rejection.detail
        );
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
        self.write(|| row.clone(), by).await;
        tracing::info!(
            event = "flood_recorded",
            call_id = &*row.call_id,
            http_status = row.http_status,
            error_type = row.error_type.as_deref(),
            message = format!("{count} refused requests in one record")
        );
    }

    /// Records that a call is about to change something; without this record it must not.
    ///
    /// # Errors
    /// 503 if the ledger cannot be written.
    pub async fn record_intent(&self, caller: &Caller) -> Result<(), Rejection> {
        let outcome = CallOutcome {
            error_type: Some("Started".into()),
            latency_ms: caller.latency_ms(),
            ..CallOutcome::default()
        };
        let intent = record(caller, &outcome);
        // An intent that is written too late is removed again.
        let stored = self.ledger.record_intent(&intent);
        let stored = in_time(stored, with_grace(caller.answer_by())).await;
        stored.map_err(|error| {
            self.report_failure(&intent, &error);
            let detail = "the ledger cannot be written now, so nothing was changed";
            Rejection::audit_unavailable(detail).with_retry_after(1)
        })
    }

    /// Records the outcome of a call that was not refused.
    pub async fn record_outcome(&self, caller: &Caller, outcome: &CallOutcome) {
        if caller.tool_version.is_some() {
            let (tool, time) = (&caller.tool_name, outcome.latency_ms);
            self.metrics.count_call(tool, outcome.status(), time);
        }
        if outcome.is_replay {
            self.metrics.replays.inc();
        }
        if caller.is_gone() {
            self.metrics.disconnects.inc();
        }
        self.record_request(caller, outcome).await;
        let event = match outcome.error_type {
            Some(_) => "tool_call_error",
            None => "tool_call_success",
        };
        self.log_call(event, caller, outcome);
        self.send_span(caller, outcome);
    }

    /// Records a request.
    pub async fn record_request(&self, caller: &Caller, outcome: &CallOutcome) {
        let by = with_grace(caller.answer_by());
        self.write(|| record(caller, outcome), by).await;
    }

    /// Writes a record; a failure is logged. The record is made again for that, so that it need not
    /// be kept while the ledger works.
    async fn write<'r>(&self, record: impl Fn() -> Record<'r>, by: Option<Instant>) {
        let stored = self.ledger.append(&record());
        match in_time(stored, by).await {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(error) => self.report_failure(&record(), &error),
        }
    }

    /// Writes records that had to wait, if there are any.
    pub async fn catch_up(&self) {
        // The failure was logged when they were queued.
        if self.ledger.backlog() > 0 && self.ledger.flush().await.is_ok() {
            self.is_failing.store(false, Ordering::Relaxed);
        }
    }

    /// Writes all that is left for as long as shutdown allows, logs how many records are lost, and
    /// returns that number.
    pub async fn flush(&self) -> usize {
        let until = Instant::now() + limits::FLOOD_WINDOW;
        self.record_suppressed(until).await;
        let limit = Instant::now() + limits::LATE_RECORDS_TIMEOUT;
        loop {
            self.catch_up().await;
            let late = self.ledger.backlog();
            if late == 0 {
                return 0;
            }
            if Instant::now() >= limit {
                let message = format!("{late} records could not be written before the end");
                tracing::info!(event = "records_lost", message);
                return late;
            }
            tokio::time::sleep(limits::LATE_RECORDS_PAUSE).await;
        }
    }

    fn report_failure(&self, record: &Record<'_>, error: &StoreError) {
        self.is_failing.store(true, Ordering::Relaxed);
        self.metrics.ledger_failures.inc();
        tracing::info!(
            event = "ledger_write_failed",
            trace_id = &*record.trace_id,
            tool_name = &*record.tool_name,
            call_id = &*record.call_id,
            message = %error
        );
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

    /// Writes a log line about a call; its outcome is empty before its end.
    pub fn log_call(&self, event: &str, caller: &Caller, outcome: &CallOutcome) {
        let is_over = outcome.http_status > 0;
        tracing::info!(
            event,
            trace_id = caller.trace_id,
            tool_name = (!caller.tool_name.is_empty()).then_some(&*caller.tool_name),
            tenant_id = caller.tenant_id,
            site_id = caller.site_id,
            latency_ms = is_over.then_some(outcome.latency_ms),
            call_id = caller.call_id,
            http_status = is_over.then_some(outcome.http_status),
            error_type = outcome.error_type,
            message = outcome.error
        );
    }

    fn send_span(&self, caller: &Caller, outcome: &CallOutcome) {
        if let Some(spans) = &self.spans
            && !caller.tool_name.is_empty()
        {
            spans.send(caller, outcome.error_type.as_deref());
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
    match by {
        None => work.await,
        Some(by) => {
            let ended = tokio::time::timeout_at(by.into(), work).await;
            ended.unwrap_or(Err(StoreError::Late))
        }
    }
}

/// Builds the record of a call.
fn record<'a>(caller: &'a Caller, outcome: &'a CallOutcome) -> Record<'a> {
    let borrowed = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    let call = ToolCall {
        name: caller.tool_name.as_str().into(),
        status: outcome.status().into(),
        latency_ms: outcome.latency_ms,
        payload_hash: borrowed(&caller.payload_hash),
    };
    Record {
        call_id: caller.call_id.as_str().into(),
        front_end: caller.front_end.into(),
        ts_start: caller.ts_start.as_str().into(),
        ts_end: ids::now().into(),
        latency_ms: outcome.latency_ms,
        trace_id: caller.trace_id.as_str().into(),
        span_id: Some(caller.span_id.as_str().into()),
        parent_span_id: borrowed(&caller.parent_span_id),
        w3c_trace_id: borrowed(&caller.w3c_trace_id),
        context_trace_id: borrowed(&caller.context_trace_id),
        tenant_id: caller.tenant_id.as_str().into(),
        site_id: caller.site_id.as_str().into(),
        user_id: borrowed(&caller.user_id),
        session_id: borrowed(&caller.session_id),
        npc_id: borrowed(&caller.npc_id),
        principal: caller.principal.name().map(Into::into),
        request_type: caller.request_type.into(),
        tool_name: caller.tool_name.as_str().into(),
        tool_version: caller.tool_version.map(Cow::Borrowed),
        request_payload_hash: borrowed(&caller.payload_hash),
        input: caller.input.clone(),
        status: outcome.status().into(),
        error_type: borrowed(&outcome.error_type),
        error: outcome.error.as_deref().map(|error| short(error).into()),
        http_status: Some(outcome.http_status),
        attempt: caller.attempt,
        idempotency_key: borrowed(&caller.idempotency_key),
        replayed: outcome.is_replay,
        disconnected: caller.is_gone(),
        count: None,
        tool_calls: vec![call],
    }
}

/// Cuts a message to the length the ledger stores.
fn short(message: &str) -> &str {
    let end = message.floor_char_boundary(limits::MAX_RECORDED_ERROR_BYTES);
    message.get(..end).unwrap_or_default()
}
