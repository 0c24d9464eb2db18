//! Dispatches every call of a server, whatever protocol carried it.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::service::audit::AuditTrail;
use crate::service::audit_record::{CallDetails, CallOutcome};
use crate::service::authenticator::{Authenticator, Credential};
use crate::service::call::{ActiveCall, CallResult};
use crate::service::caller::{CallRequest, Caller};
use crate::service::canonical::PayloadHash;
use crate::service::catalog::{OfferedTool, ToolListing};
pub use crate::service::config::{DispatcherConfig, InputRecording};
use crate::service::deadline::{self, DetachingFuture, PanicError};
use crate::service::envelope::{Envelope, Failure};
use crate::service::log::Log;
use crate::service::metrics::Metrics;
use crate::service::principal::{self, Principal, Proof};
use crate::service::rate_limit::{self, Limiter};
use crate::service::rejection::Rejection;
use crate::service::secret_refresher::SecretRefresher;
use crate::tool::FieldText;
use crate::tool::service::Audience;
use karyi_core::limits;
use karyi_store::StoreError;
use karyi_vault::redact::Redactor;

/// Message for a call that panicked outside of its tool.
const BROKEN: &str = "the call stopped unexpectedly";

/// Message for a request with a secret in one of its ids.
const CONTAINS_SECRET: &str = "an identifier of the request contains a secret";

/// Admits callers, runs calls and records them.
pub struct Dispatcher {
    config: DispatcherConfig,
    tool_buckets: Option<Limiter>,
    tenant_buckets: Option<Limiter>,
    audit: AuditTrail,
    secret_refresher: SecretRefresher,
}

/// Response to a call.
#[derive(Debug)]
pub enum CallReply {
    /// Response of the tool.
    Fresh(Box<Envelope>),
    /// Response of an earlier call with the same key, byte for byte.
    Replay(Vec<u8>),
    /// The call did not reach its tool.
    Refused(Rejection),
}

/// Outcome of a call that the audit trail has recorded.
enum RecordedCall {
    /// Latency in milliseconds and result of the tool.
    Fresh(u64, Result<FieldText, Failure>),
    /// Response of an earlier call.
    Replay(Vec<u8>),
    /// The call did not reach its tool.
    Refused(Rejection),
}

/// Filter for the list of tools.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only tools of this category.
    pub category: Option<String>,
    /// True to include tools that models may not call.
    pub has_internal: bool,
}

impl Dispatcher {
    /// Creates a dispatcher.
    #[must_use]
    pub fn new(config: DispatcherConfig) -> Self {
        Self {
            tool_buckets: config.tool_rate.map(Limiter::new),
            tenant_buckets: config.tenant_rate.map(Limiter::new),
            audit: AuditTrail::new(
                Arc::clone(&config.ledger),
                config.log.clone(),
                config.spans.clone(),
            ),
            secret_refresher: SecretRefresher::new(config.redactor.secrets()),
            config,
        }
    }

    /// Returns the tools on offer.
    #[must_use]
    pub fn tools(&self) -> &[OfferedTool] {
        &self.config.tools
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.audit.metrics()
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.audit.log()
    }

    /// Returns the redactor for text from callers.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.config.redactor
    }

    /// Reads the secret store again if it has changed. Front ends do so before they check, log or
    /// record anything of a request.
    pub async fn refresh_stale_secrets(&self) {
        self.secret_refresher.refresh_if_stale(self.log()).await;
    }

    /// Reads the secret store again and logs what could not be read; call it from time to time.
    pub async fn refresh_secrets(&self) {
        self.secret_refresher.refresh(self.log()).await;
    }

    /// Returns the authenticator.
    #[must_use]
    pub fn authenticator(&self) -> &Authenticator {
        &self.config.authenticator
    }

    /// Ends all shells of local tools.
    pub async fn close(&self) {
        if let Some(local) = &self.config.local {
            local.close().await;
        }
    }

    /// Authenticates a caller and checks access to the tenant and site. A rejection is recorded.
    ///
    /// # Errors
    /// 401, 403 or 429.
    pub async fn admit(
        &self,
        caller: &Caller,
        credential: &Credential,
    ) -> Result<Cow<'_, Principal>, Rejection> {
        let principal = match self
            .config
            .authenticator
            .identify(credential, seconds_now())
        {
            Ok(principal) => principal,
            Err(rejection) => {
                return Err(self
                    .refuse(caller, None, &CallDetails::default(), rejection)
                    .await);
            }
        };
        self.authorize(caller, &principal).await.map(|()| principal)
    }

    /// Checks access of an authenticated caller to the tenant and site. A rejection is recorded.
    ///
    /// # Errors
    /// 403 or 429.
    pub async fn authorize(&self, caller: &Caller, principal: &Principal) -> Result<(), Rejection> {
        match self.check_access(caller, principal) {
            Ok(()) => Ok(()),
            Err(rejection) => Err(self
                .refuse(caller, Some(principal), &CallDetails::default(), rejection)
                .await),
        }
    }

    fn check_access(&self, caller: &Caller, principal: &Principal) -> Result<(), Rejection> {
        if !principal.tenants.has(&caller.tenant_id) {
            // No tenant has this name, so guessing tenants uses up nobody else's limit.
            let own = format!("\n{}", principal.id);
            rate_limit::consume(self.tenant_buckets.as_ref(), &own, "for other tenants")?;
            return Err(Rejection::forbidden(format!(
                "no access to tenant {}",
                caller.tenant_id
            )));
        }
        rate_limit::consume(
            self.tenant_buckets.as_ref(),
            &caller.tenant_id,
            "for this tenant",
        )?;
        if !principal.sites.has(&caller.site_id) {
            return Err(Rejection::forbidden(format!(
                "no access to site {}",
                caller.site_id
            )));
        }
        // Last, so that guesses at secrets are rate-limited too.
        self.check_identifiers(caller)
    }

    /// Refuses ids that contain a secret. They would reach the log, the ledger and the site's data;
    /// masked, they would no longer tell callers apart.
    fn check_identifiers(&self, caller: &Caller) -> Result<(), Rejection> {
        let redactor = &self.config.redactor;
        match !redactor.is_idle() && caller.clone().mask(redactor) {
            true => Err(Rejection::invalid(CONTAINS_SECRET)),
            false => Ok(()),
        }
    }

    /// Returns a caller whose ids are safe to show: those of a refused one may contain secrets.
    #[must_use]
    pub fn masked_caller<'a>(&self, caller: &'a Caller) -> Cow<'a, Caller> {
        let mut masked = caller.clone();
        match masked.mask(&self.config.redactor) {
            true => Cow::Owned(masked),
            false => Cow::Borrowed(caller),
        }
    }

    /// Records a rejection and returns it.
    pub async fn refuse(
        &self,
        caller: &Caller,
        principal: Option<&Principal>,
        details: &CallDetails,
        mut rejection: Rejection,
    ) -> Rejection {
        rejection.mask(&self.config.redactor);
        let caller = &*self.masked_caller(caller);
        // Boxed to keep this future small.
        Box::pin(self.audit.refuse(caller, principal, details, rejection)).await
    }

    /// Drops rate-limit state that no longer limits anyone; call it from time to time.
    pub fn sweep(&self) {
        let limiters = [&self.tool_buckets, &self.tenant_buckets];
        limiters.into_iter().flatten().for_each(Limiter::sweep);
    }

    /// Records the suppressed rejections of callers who have been silent until `until`.
    pub async fn record_suppressed(&self, until: Instant) {
        self.audit.record_suppressed(until).await;
    }

    /// Writes ledger records that had to wait; call it from time to time.
    pub async fn catch_up(&self) {
        self.audit.catch_up().await;
    }

    /// Writes all that is left of the audit trail at shutdown; returns how many records are lost.
    pub async fn flush_audit(&self) -> usize {
        self.audit
            .record_suppressed(Instant::now() + limits::FLOOD_WINDOW)
            .await;
        self.audit.flush().await
    }

    /// Tells whether the last write to the ledger failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.audit.is_failing()
    }

    /// Checks that both databases work.
    ///
    /// # Errors
    /// The reason why one does not.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.audit.probe().await?;
        let deadline = Instant::now() + limits::READ_CALL_TIMEOUT;
        self.config.sites.probe(deadline).await
    }

    /// Lists tools; every request is recorded.
    ///
    /// # Errors
    /// 403 without the scope for it.
    pub async fn list(
        &self,
        caller: &Caller,
        principal: &Principal,
        request: &ListRequest,
    ) -> Result<Vec<ToolListing>, Rejection> {
        let details = CallDetails {
            request_type: "tool_list",
            ..CallDetails::default()
        };
        self.audit.log_event("tools_list_request", caller, &details);
        if !principal.has_scope(principal::LIST) {
            let rejection = Rejection::forbidden("the scope tools:list is required");
            return Err(self
                .refuse(caller, Some(principal), &details, rejection)
                .await);
        }
        let is_requested = |tool: &&OfferedTool| {
            let service = &tool.entry.service;
            let is_shown = tool.is_site_tool() || principal.proof == Proof::Authenticated;
            let fits = request
                .category
                .as_deref()
                .is_none_or(|category| category == service.category);
            is_shown && fits && (request.has_internal || service.audience == Audience::Anyone)
        };
        let listed = self
            .config
            .tools
            .iter()
            .filter(is_requested)
            .map(OfferedTool::listing)
            .collect();
        let outcome = CallOutcome {
            http_status: 200,
            latency_ms: caller.latency_ms(),
            ..CallOutcome::default()
        };
        self.audit
            .record_request(caller, principal, &details, &outcome)
            .await;
        Ok(listed)
    }

    /// Runs a call to its end, even if the caller disconnects, because its effect must be recorded.
    /// `slot` is dropped at the end.
    pub async fn serve(
        self: &Arc<Self>,
        mut caller: Caller,
        principal: Principal,
        mut request: CallRequest,
        slot: impl Send + 'static,
    ) -> CallReply {
        let (dispatcher, is_gone) = (Arc::clone(self), Arc::clone(&caller.is_gone));
        let work = async move {
            let called = dispatcher.call(&mut caller, &principal, &mut request);
            let reply = deadline::catch_panic(pin!(called)).await;
            drop(slot);
            reply
        };
        let broken = |_| CallReply::Refused(Rejection::internal(BROKEN));
        DetachingFuture::new(work, is_gone)
            .await
            .unwrap_or_else(broken)
    }

    /// Runs a call and records its outcome in any case. Caller and request are taken by reference
    /// to keep this future small; the call takes out of them what it needs.
    pub async fn call(
        &self,
        caller: &mut Caller,
        principal: &Principal,
        request: &mut CallRequest,
    ) -> CallReply {
        let contains_secret = request.context.contains_secret(&self.config.redactor);
        caller.fill_from(&request.context);
        if contains_secret {
            let rejection = Rejection::invalid(CONTAINS_SECRET);
            let details = CallDetails::default();
            let refused = self.refuse(caller, Some(principal), &details, rejection);
            return CallReply::Refused(refused.await);
        }
        let generation = self.config.redactor.secrets().generation();
        let hash = PayloadHash::of(&request.input);
        let mut details = self.call_details(caller, request, &hash);
        self.audit.log_event("tool_call_request", caller, &details);
        let mut tools = self.config.tools.iter();
        let tool = tools.find(|tool| tool.name() == request.tool_name);
        details.tool_version = tool.map(|tool| tool.entry.service.version);
        let work = async {
            let ending = match tool {
                _ if !caller.matches(&request.context) => {
                    let detail = "context names another tenant or site than the headers";
                    Rejection::context_mismatch(detail).into()
                }
                None => self.unknown_tool(&*caller, principal, &details),
                Some(tool) => {
                    let call = ActiveCall {
                        config: &self.config,
                        audit: &self.audit,
                        buckets: self.tool_buckets.as_ref(),
                        caller: &*caller,
                        principal,
                        tool,
                        details: &details,
                        hash: &hash,
                    };
                    let input = std::mem::take(&mut request.input);
                    let (Ok(ending) | Err(ending)) = call.serve(input).await;
                    ending
                }
            };
            self.mask_new_secrets(generation, caller, &mut details);
            self.finish(&*caller, principal, &details, ending).await
        };
        let settled = deadline::catch_panic(pin!(work)).await;
        match settled {
            Ok(RecordedCall::Refused(rejection)) => CallReply::Refused(rejection),
            Ok(RecordedCall::Replay(answer)) => CallReply::Replay(answer),
            Ok(RecordedCall::Fresh(time, result)) => {
                CallReply::Fresh(Box::new(Envelope::of(caller, details, time, result)))
            }
            Err(PanicError) => {
                details.mask(&self.config.redactor);
                let rejection = Rejection::internal(BROKEN);
                let refused = self.refuse(caller, Some(principal), &details, rejection);
                CallReply::Refused(refused.await)
            }
        }
    }

    /// Masks secrets that became known during the call, by the tool or by others.
    fn mask_new_secrets(&self, generation: u64, caller: &mut Caller, details: &mut CallDetails) {
        let redactor = &self.config.redactor;
        if redactor.secrets().generation() != generation {
            caller.mask(redactor);
            details.mask(redactor);
        }
    }

    /// Rejects a call of an unknown tool. All unknown tools share one bucket.
    fn unknown_tool(
        &self,
        caller: &Caller,
        principal: &Principal,
        details: &CallDetails,
    ) -> CallResult {
        let names = [&*principal.id, &caller.tenant_id, ""];
        let buckets = self.tool_buckets.as_ref();
        match rate_limit::consume(buckets, &names.join("\n"), "of unknown tools") {
            Ok(()) => {
                let message = format!("Unknown tool: {}", details.tool_name);
                CallResult::Failure(Failure::new("ValueError", "UNKNOWN_TOOL", message))
            }
            Err(rejection) => rejection.into(),
        }
    }

    fn call_details(
        &self,
        caller: &Caller,
        request: &CallRequest,
        hash: &PayloadHash,
    ) -> CallDetails {
        let named = request.context.trace_id.as_ref();
        let is_kept = self.config.input_recording == InputRecording::Always;
        let mut details = CallDetails {
            request_type: "tool_call",
            tool_name: self.masked_name(&request.tool_name),
            tool_version: None,
            payload_hash: Some(hash.short()),
            input: is_kept.then(|| request.input.clone()),
            context_trace_id: named.filter(|id| **id != caller.trace_id).cloned(),
        };
        details.mask(&self.config.redactor);
        details
    }

    /// Returns a name from a caller without secrets, and cut to a safe length.
    #[must_use]
    pub fn masked_name(&self, name: &str) -> String {
        let redactor = &self.config.redactor;
        if redactor.is_idle() && name.len() <= limits::MAX_ID_CHARS {
            return name.to_owned();
        }
        let masked = redactor.redact_again(name);
        masked.chars().take(limits::MAX_ID_CHARS).collect()
    }

    async fn finish(
        &self,
        caller: &Caller,
        principal: &Principal,
        details: &CallDetails,
        mut ending: CallResult,
    ) -> RecordedCall {
        if let CallResult::Failure(failure) = &mut ending {
            failure.mask(&self.config.redactor);
        }
        let time = match &ending {
            // The stored response already states this latency.
            CallResult::StoredOutput(_, time) => *time,
            _ => caller.latency_ms(),
        };
        let mut outcome = CallOutcome {
            http_status: 200,
            latency_ms: time,
            ..CallOutcome::default()
        };
        let finished = match ending {
            CallResult::Rejection(rejection) => {
                let refused = self.refuse(caller, Some(principal), details, rejection);
                return RecordedCall::Refused(refused.await);
            }
            CallResult::Replay(answer) => {
                outcome.is_replay = true;
                RecordedCall::Replay(answer)
            }
            CallResult::Failure(failure) => {
                outcome.error_type = Some(failure.error_type.into());
                outcome.error = Some(failure.message.clone());
                RecordedCall::Fresh(time, Err(failure))
            }
            CallResult::Output(fields) | CallResult::StoredOutput(fields, _) => {
                RecordedCall::Fresh(time, Ok(fields))
            }
        };
        self.audit
            .finish(caller, principal, details, &outcome)
            .await;
        finished
    }
}

fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs_f64()
}
