//! The way of a call of a server, whatever protocol carried it.
//!
//! A front end identifies the caller and asks [`Dispatcher::check_access`]. Then [`Dispatcher::call`]
//! does, in this order: `validate`, `repeat`,
//! `record_intent`, `run`. A step that refuses the call
//! skips the others; `record_outcome` follows in any case.

use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio::time::sleep_until;

use crate::service::audit::{AuditTrail, CallOutcome};
use crate::service::authenticator::Authenticator;
use crate::service::caller::{CallRequest, Caller};
use crate::service::canonical::PayloadHash;
use crate::service::catalog::{OfferedTool, ToolListing};
use crate::service::envelope::{Envelope, Failure};
use crate::service::input_check::{self, FieldProblem};
use crate::service::local_tools::{CallFuture, LocalTools};
use crate::service::principal::{self, Principal, Proof};
use crate::service::rate_limit::Limiter;
use crate::service::rejection::Rejection;
use crate::service::secret_refresher::SecretRefresher;
use crate::tool::service::{Access, Audience};
use crate::tool::site::ContentVisibility;
use crate::tool::{Context, FieldText, SiteAccess, validate};
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_store::site::{Claim, RepeatKey, Scope};
use karyi_store::{SiteStore, StoreError};
use karyi_vault::redact::Redactor;

/// Message for a call that panicked outside of its tool.
const BROKEN: &str = "the call stopped unexpectedly";

/// Message for a request with a secret in one of its ids.
const CONTAINS_SECRET: &str = "an identifier of the request contains a secret";

/// Tools, stores and limits of a server, and the way of a call through them.
pub struct Dispatcher {
    /// Tools on offer.
    pub tools: Vec<OfferedTool>,
    /// Database of site data.
    pub sites: Arc<dyn SiteStore>,
    /// Checks credentials.
    pub authenticator: Arc<Authenticator>,
    /// Context of site tools, without the site itself.
    pub context: Context,
    /// Runs the tools that work on this machine.
    pub local: Option<Arc<dyn LocalTools>>,
    /// Controls what the ledger stores of inputs.
    pub input_recording: InputRecording,
    /// Records, logs and counts.
    pub audit: AuditTrail,
    /// Rate limit for one principal, tenant and tool.
    pub tool_limit: Option<Limiter>,
    /// Rate limit for one tenant.
    pub tenant_limit: Option<Limiter>,
    /// Keeps the secrets up to date.
    pub secrets: SecretRefresher,
    /// Free places for concurrent calls.
    pub places: Semaphore,
}

/// Policy for storing inputs in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRecording {
    /// Only a hash.
    Never,
    /// The whole input.
    Always,
}

/// Response to a call.
#[derive(Debug)]
pub enum CallReply {
    /// Response of the tool.
    Fresh(Box<Envelope>),
    /// Response of an earlier call with the same key: byte for byte, apart from values that have become secret.
    Replay(Vec<u8>),
    /// The call did not reach its tool, or the tool broke.
    Refused(Rejection),
}

/// Result of a call.
enum Output {
    Fresh(FieldText),
    /// Stored response of an earlier call with the same key.
    Replay(Vec<u8>),
}

/// End of a call without a result.
enum CallError {
    Failure(Failure),
    Rejection(Rejection),
    /// The call panicked outside of its tool.
    Panic,
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ToolError> for CallError {
    fn from(error: ToolError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Rejection> for CallError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejection(rejection)
    }
}

/// Call that its caller may make, with valid input.
struct ValidCall<'d> {
    tool: &'d OfferedTool,
    call: Call,
    /// Site and deadline.
    scope: Scope,
    /// Key that makes a retry safe; only calls that change something use one.
    key: Option<RepeatKey>,
}

/// Key that this call has claimed.
struct ClaimedKey {
    key: RepeatKey,
    scope: Scope,
    is_site_tool: bool,
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
    /// Checks access of an authenticated caller to its tenant and site, and the tenant's limit.
    ///
    /// # Errors
    /// 403, 422 or 429.
    pub fn check_access(&self, caller: &Caller) -> Result<(), Rejection> {
        let (principal, tenant) = (&caller.principal, &caller.tenant_id);
        let consume = |bucket: &String, whose: &str| match &self.tenant_limit {
            Some(limit) => limit.consume(bucket, whose),
            None => Ok(()),
        };
        if !principal.tenants.has(tenant) {
            // No tenant has this name, so guessing tenants uses up nobody else's limit.
            let own = format!("\n{}", principal.id);
            consume(&own, "for other tenants")?;
            return Err(Rejection::forbidden(format!(
                "no access to tenant {tenant}"
            )));
        }
        consume(tenant, "for this tenant")?;
        if !principal.sites.has(&caller.site_id) {
            let detail = format!("no access to site {}", caller.site_id);
            return Err(Rejection::forbidden(detail));
        }
        // Ids with a secret would reach the log, the ledger and the site's data; masked, they would
        // no longer tell callers apart. Last, so that guesses at secrets are rate-limited too.
        let redactor = &self.audit.redactor;
        match !redactor.is_idle() && caller.clone().mask(redactor) {
            true => Err(Rejection::invalid(CONTAINS_SECRET)),
            false => Ok(()),
        }
    }

    /// Leads a call through its steps, on a task of its own: its effect must be recorded, even if its
    /// caller does not wait.
    pub async fn call(self: &Arc<Self>, mut caller: Caller, request: CallRequest) -> CallReply {
        let this = Arc::clone(self);
        let task = tokio::spawn(async move {
            let known = this.audit.redactor.secrets().generation();
            let (place, mut claimed) = (this.places.try_acquire(), None);
            let steps = async {
                if place.is_err() {
                    let busy = Rejection::overloaded("too many calls are in progress");
                    return Err(busy.with_retry_after(1).into());
                }
                let mut valid = this.validate(&mut caller, request)?;
                if let Some(key) = valid.key.take() {
                    match this.repeat(&valid, key).await? {
                        Repetition::First(key) => claimed = Some(key),
                        Repetition::Again(answer) => return Ok(Output::Replay(answer)),
                    }
                }
                if valid.tool.entry.service.access == Access::Write {
                    Box::pin(this.audit.record_intent(&caller)).await?;
                }
                this.run(&caller, valid).await
            };
            let ended = AssertUnwindSafe(steps).catch_unwind().await;
            let result = ended.unwrap_or(Err(CallError::Panic));
            if this.audit.redactor.secrets().generation() != known {
                // Secrets became known during the call, by the tool or by others.
                caller.mask(&this.audit.redactor);
            }
            this.record_outcome(&caller, claimed, result).await
        });
        let broken = |_| CallReply::Refused(Rejection::internal(BROKEN));
        task.await.unwrap_or_else(broken)
    }

    /// Checks that the caller may make this call, and its input.
    fn validate(
        &self,
        caller: &mut Caller,
        request: CallRequest,
    ) -> Result<ValidCall<'_>, CallError> {
        let CallRequest {
            tool_name,
            input,
            context,
        } = request;
        let redactor = &self.audit.redactor;
        let contains_secret = context.contains_secret(redactor);
        caller.fill_from(&context);
        if contains_secret {
            return Err(Rejection::invalid(CONTAINS_SECRET).into());
        }
        let tool = self.tools.iter().find(|tool| tool.name() == tool_name);
        let hash = PayloadHash::of(&input);
        caller.tool_name = self.audit.masked_name(&tool_name);
        caller.payload_hash = Some(hash.short());
        caller.input = (self.input_recording == InputRecording::Always).then(|| input.clone());
        let is_other = |id: &String| *id != caller.trace_id;
        caller.context_trace_id = context.trace_id.clone().filter(is_other);
        caller.mask(redactor);
        let begun = CallOutcome::default();
        self.audit.log_call("tool_call_request", caller, &begun);
        caller.tool_version = tool.map(|tool| tool.entry.service.version);
        if !caller.matches(&context) {
            let detail = "context names another tenant or site than the headers";
            return Err(Rejection::context_mismatch(detail).into());
        }
        if let Some(tool) = tool {
            check_scopes(tool, &caller.principal)?;
        }
        // All unknown tools share one bucket.
        let (name, whose) = match tool {
            Some(tool) => (tool.name(), "of this tool"),
            None => ("", "of unknown tools"),
        };
        if let Some(limit) = &self.tool_limit {
            let bucket = [&*caller.principal.id, &caller.tenant_id, name].join("\n");
            limit.consume(&bucket, whose)?;
        }
        let Some(tool) = tool else {
            let message = format!("Unknown tool: {}", caller.tool_name);
            return Err(Failure::new("ValueError", "UNKNOWN_TOOL", message).into());
        };
        let call = decode(tool, input, redactor)?;
        let is_write = tool.entry.service.access == Access::Write;
        let key = caller.idempotency_key.clone().filter(|_| is_write);
        Ok(ValidCall {
            tool,
            call,
            scope: scope(caller, tool),
            key: key.map(|key| RepeatKey {
                principal: caller.principal.id.clone(),
                tool: tool.name().into(),
                key,
                fingerprint: hash.to_hex(),
            }),
        })
    }

    /// Claims the key of a call, unless a call with the same key was made before.
    async fn repeat(&self, valid: &ValidCall<'_>, key: RepeatKey) -> Result<Repetition, CallError> {
        let claimed = self.sites.claim(&valid.scope, key.clone()).await;
        match claimed.map_err(ToolError::from)? {
            Claim::New => Ok(Repetition::First(ClaimedKey {
                key,
                scope: valid.scope.clone(),
                is_site_tool: valid.tool.is_site_tool(),
            })),
            Claim::Done(answer) => match serde_json::from_slice::<Envelope>(&answer) {
                Ok(earlier) if !earlier.success => Err(effect_unknown(&earlier).into()),
                _ => Ok(Repetition::Again(self.masked_answer(answer)?)),
            },
            Claim::Begun => {
                let detail = "a call with this Idempotency-Key has started and has no response";
                Err(Rejection::in_progress(detail).with_retry_after(1).into())
            }
            Claim::Other => {
                let detail = "this Idempotency-Key was used for another input";
                Err(Rejection::key_reused(detail).into())
            }
        }
    }

    /// Masks values in an earlier response that have become secret since then.
    fn masked_answer(&self, answer: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let redactor = &self.audit.redactor;
        if !redactor.is_in(&answer) {
            return Ok(answer);
        }
        let masked = serde_json::from_slice(&answer).and_then(|mut answer| {
            redactor.redact_values_again(&mut answer);
            serde_json::to_vec(&answer)
        });
        masked.map_err(|_| Rejection::internal(BROKEN).into())
    }

    /// Runs a call until its deadline. A write gets some extra time to commit, so that its caller
    /// does not read a timeout for a change that took effect.
    async fn run(&self, caller: &Caller, valid: ValidCall<'_>) -> Result<Output, CallError> {
        let begun = CallOutcome::default();
        self.audit.log_call("tool_call_start", caller, &begun);
        let ValidCall {
            tool, call, scope, ..
        } = valid;
        let deadline = match tool.entry.service.access {
            Access::Read => scope.deadline + limits::READ_GRACE,
            Access::Write => scope.deadline + limits::WRITE_GRACE,
        };
        let (is_site_tool, printed) = (tool.is_site_tool(), caller.live_output.clone());
        let work: CallFuture<'_> = match &self.local {
            Some(local) if !is_site_tool => {
                local.run(call, scope.deadline, shell_owner(caller), printed)
            }
            _ => {
                let context = self.site_context(caller, scope);
                Box::pin(async move { Ok(call.run(&context).await?.output.into_inner()) })
            }
        };
        let cancelled = async {
            match &caller.gone {
                Some(gone) if !is_site_tool => gone.cancelled().await,
                _ => pending().await,
            }
        };
        let abandoned = |code, message| Failure {
            is_abandoned: true,
            ..ToolError::new(code, message).into()
        };
        let fields = tokio::select! {
            biased;
            ended = AssertUnwindSafe(work).catch_unwind() => {
                let broken = |_| abandoned(ErrorCode::Internal, "the tool stopped unexpectedly");
                ended.map_err(broken)??
            }
            () = cancelled => {
                let message = "the caller cancelled the call";
                return Err(ToolError::new(ErrorCode::Cancelled, message).into());
            }
            () = sleep_until(deadline.into()) => {
                return Err(abandoned(ErrorCode::Timeout, "the time for the call was up").into());
            }
        };
        Ok(Output::Fresh(fields))
    }

    fn site_context(&self, caller: &Caller, scope: Scope) -> Context {
        let site = SiteAccess {
            store: Arc::clone(&self.sites),
            scope,
            user_id: caller.user_id.clone(),
            session_id: caller.session_id.clone(),
            trace_id: caller.trace_id.clone(),
            visibility: match caller.principal.has_scope(principal::DRAFT_READ) {
                true => ContentVisibility::Drafts,
                false => ContentVisibility::Published,
            },
        };
        Context {
            site: Some(site),
            ..self.context.clone()
        }
    }

    /// Makes the response of a call, and records it in the ledger and under the key of the call.
    async fn record_outcome(
        &self,
        caller: &Caller,
        claimed: Option<ClaimedKey>,
        result: Result<Output, CallError>,
    ) -> CallReply {
        let effect = claimed.as_ref().map(|key| effect(key, &result));
        let latency_ms = caller.latency_ms();
        let reply = match result {
            Ok(Output::Replay(answer)) => CallReply::Replay(answer),
            Ok(Output::Fresh(fields)) => {
                CallReply::Fresh(Box::new(Envelope::of(caller, latency_ms, Ok(fields))))
            }
            Err(CallError::Failure(failure)) if failure.is_internal() => {
                CallReply::Refused(Rejection::internal(failure.message))
            }
            Err(CallError::Failure(mut failure)) => {
                failure.mask(&self.audit.redactor);
                CallReply::Fresh(Box::new(Envelope::of(caller, latency_ms, Err(failure))))
            }
            Err(CallError::Rejection(rejection)) => CallReply::Refused(rejection),
            Err(CallError::Panic) => CallReply::Refused(Rejection::internal(BROKEN)),
        };
        if let Some((claimed, effect)) = claimed.zip(effect) {
            Box::pin(self.settle_key(caller, claimed, effect, &reply)).await;
        }
        let mut outcome = CallOutcome {
            http_status: 200,
            latency_ms,
            ..CallOutcome::default()
        };
        match &reply {
            CallReply::Fresh(envelope) => {
                outcome.error_type.clone_from(&envelope.error_type);
                outcome.error.clone_from(&envelope.error);
            }
            CallReply::Replay(_) => outcome.is_replay = true,
            CallReply::Refused(rejection) => {
                let refused = self.audit.refuse(caller, rejection.clone());
                return CallReply::Refused(Box::pin(refused).await);
            }
        }
        self.audit.record_outcome(caller, &outcome).await;
        reply
    }

    /// Stores the response under its key, or releases the key for a retry.
    async fn settle_key(
        &self,
        caller: &Caller,
        ClaimedKey { key, scope, .. }: ClaimedKey,
        effect: Effect,
        reply: &CallReply,
    ) {
        let later = Scope {
            deadline: Instant::now() + limits::WRITE_CALL_TIMEOUT,
            ..scope
        };
        let (event, settled) = match (effect, reply) {
            // Without a stored response the key stays claimed, because a retry would repeat the
            // change. A failed call with an unknown effect is stored for those who ask again.
            (Effect::Done | Effect::Unknown, CallReply::Fresh(envelope)) => {
                let answer = envelope.to_json().unwrap_or_default();
                let stored = self.sites.answer(&later, key, answer).await;
                ("answer_not_kept", stored)
            }
            (Effect::None, _) => ("key_not_released", self.sites.release(&later, key).await),
            _ => return,
        };
        if let Err(error) = settled {
            tracing::info!(
                event,
                trace_id = caller.trace_id,
                tool_name = caller.tool_name,
                call_id = caller.call_id,
                message = %error
            );
        }
    }

    /// Lists tools; every request is recorded.
    ///
    /// # Errors
    /// 403 without the scope for it.
    pub async fn list(
        &self,
        caller: &mut Caller,
        request: &ListRequest,
    ) -> Result<Vec<ToolListing>, Rejection> {
        caller.request_type = "tool_list";
        let mut outcome = CallOutcome::default();
        self.audit.log_call("tools_list_request", caller, &outcome);
        if !caller.principal.has_scope(principal::LIST) {
            let rejection = Rejection::forbidden("the scope tools:list is required");
            return Err(self.audit.refuse(caller, rejection).await);
        }
        let is_authenticated = caller.principal.proof == Proof::Authenticated;
        let is_requested = |tool: &&OfferedTool| {
            let service = &tool.entry.service;
            let category = request.category.as_deref();
            let fits = category.is_none_or(|category| category == service.category);
            let is_shown = tool.is_site_tool() || is_authenticated;
            is_shown && fits && (request.has_internal || service.audience == Audience::Anyone)
        };
        let listed = self.tools.iter().filter(is_requested);
        let listed = listed.map(OfferedTool::listing).collect();
        (outcome.http_status, outcome.latency_ms) = (200, caller.latency_ms());
        self.audit.record_request(caller, &outcome).await;
        Ok(listed)
    }

    /// Drops rate-limit state that no longer limits anyone; call it from time to time.
    pub fn sweep(&self) {
        let limiters = [&self.tool_limit, &self.tenant_limit];
        limiters.into_iter().flatten().for_each(Limiter::sweep);
    }

    /// Checks that both databases work.
    ///
    /// # Errors
    /// The reason why one does not.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.audit.probe().await?;
        let deadline = Instant::now() + limits::READ_CALL_TIMEOUT;
        self.sites.probe(deadline).await
    }

    /// Waits until no call is in progress; from then on none starts.
    pub async fn wait_for_calls(&self) {
        let all = u32::try_from(limits::MAX_CALLS_IN_FLIGHT).unwrap_or(u32::MAX);
        if let Ok(places) = self.places.acquire_many(all).await {
            places.forget();
        }
    }
}

/// Checks that the caller may call this tool.
fn check_scopes(tool: &OfferedTool, principal: &Principal) -> Result<(), CallError> {
    if !tool.is_site_tool() && principal.proof != Proof::Authenticated {
        return Err(Rejection::forbidden("this tool needs an authenticated caller").into());
    }
    let is_internal = tool.entry.service.audience == Audience::Internal;
    if is_internal && !principal.has_scope(principal::INTERNAL) {
        let message = format!("{} is not for models", tool.name());
        return Err(Failure::new("PermissionDenied", "PERMISSION_DENIED", message).into());
    }
    match tool.scopes.iter().find(|scope| !principal.has_scope(scope)) {
        Some(scope) => Err(Rejection::forbidden(format!("the scope {scope} is required")).into()),
        None => Ok(()),
    }
}

/// Turns an input into a call.
fn decode(
    tool: &OfferedTool,
    mut input: serde_json::Value,
    redactor: &Redactor,
) -> Result<Call, Failure> {
    let invalid = |problems: Vec<FieldProblem>| {
        let message = input_check::summary(&problems);
        Failure {
            problems,
            ..Failure::new("ValidationError", "INVALID_INPUT", message)
        }
    };
    if tool.takes_paths {
        validate::spread_paths(&mut input, tool.entry.schema.annotated());
    }
    let schema = &tool.entry.schema;
    let problems = input_check::problems(&mut input, schema);
    if !problems.is_empty() {
        // Problems show the starts of names and values, so secrets are masked before they are cut.
        redactor.redact_json_again(&mut input);
        let masked = input_check::problems(&mut input, schema);
        return Err(invalid(match masked.is_empty() {
            true => problems,
            false => masked,
        }));
    }
    (tool.entry.from_json)(input)
        .map_err(|error| invalid(vec![FieldProblem::new(&[], error.to_string())]))
}

/// Returns the site of a call, and the end of its time.
fn scope(caller: &Caller, tool: &OfferedTool) -> Scope {
    let own = tool.entry.service.deadline();
    let time = caller.timeout.map_or(own, |timeout| timeout.min(own));
    Scope {
        tenant_id: caller.tenant_id.as_str().into(),
        site_id: caller.site_id.as_str().into(),
        deadline: caller.received_at + time,
    }
}

/// Returns the owner of the lasting shell that a caller names. A name is no proof of ownership, so the
/// owner includes the principal.
fn shell_owner(caller: &Caller) -> Option<String> {
    let session = caller.shell_session.as_ref();
    let session = session.filter(|_| caller.principal.proof == Proof::Authenticated)?;
    Some(format!("{}\n{session}", caller.principal.id))
}

/// Relation of a call to earlier ones with its key.
enum Repetition {
    First(ClaimedKey),
    /// Stored response of an earlier call.
    Again(Vec<u8>),
}

/// Builds the rejection of a call whose key had an earlier one that may have taken effect.
fn effect_unknown(earlier: &Envelope) -> Rejection {
    let Envelope { error, audit, .. } = earlier;
    let (error, call) = (error.as_deref().unwrap_or_default(), &audit.call_id);
    Rejection::effect_unknown(format!(
        "the call {call} with this Idempotency-Key failed ({error}) and may have taken effect; \
         look for its effect, and repeat it with another key"
    ))
}

/// Effect of a call on the site or the machine.
enum Effect {
    Done,
    None,
    /// The call may have taken effect, or still may.
    Unknown,
}

/// Returns the effect of a call. A site write that fails is rolled back; one that was abandoned may
/// still commit.
fn effect(key: &ClaimedKey, result: &Result<Output, CallError>) -> Effect {
    match result {
        Ok(_) => Effect::Done,
        Err(CallError::Failure(failure)) => {
            let is_unknown = failure.is_effect_unknown() || failure.is_internal();
            match failure.is_abandoned || (is_unknown && !key.is_site_tool) {
                true => Effect::Unknown,
                false => Effect::None,
            }
        }
        Err(CallError::Rejection(_)) => Effect::None,
        Err(CallError::Panic) => Effect::Unknown,
    }
}
