//! One call: checks access, rate limit, input and idempotency key, then runs the tool.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::service::audit::AuditTrail;
use crate::service::audit_record::CallDetails;
use crate::service::caller::Caller;
use crate::service::canonical::PayloadHash;
use crate::service::catalog::OfferedTool;
use crate::service::config::DispatcherConfig;
use crate::service::deadline;
use crate::service::envelope::{Envelope, Failure};
use crate::service::input_check::{self, FieldProblem};
use crate::service::local_tools::CallFuture;
use crate::service::log::LogLine;
use crate::service::principal::{self, Principal, Proof};
use crate::service::rate_limit::{self, Limiter};
use crate::service::rejection::Rejection;
use crate::tool::service::{Access, Audience};
use crate::tool::site::ContentVisibility;
use crate::tool::{Context, FieldText, SiteAccess, validate};
use crate::tools::Call;
use karyi_core::limits;
use karyi_store::StoreError;
use karyi_store::site::{Claim, RepeatKey, Scope};

/// Result of a call.
pub(super) enum CallResult {
    /// Result of the tool.
    Output(FieldText),
    /// Result of the tool, stored under the idempotency key with this latency in milliseconds.
    StoredOutput(FieldText, u64),
    /// The tool failed.
    Failure(Failure),
    /// Stored response of an earlier call with the same key.
    Replay(Vec<u8>),
    /// The call was refused before it reached the tool.
    Rejection(Rejection),
}

impl From<Rejection> for CallResult {
    fn from(rejection: Rejection) -> Self {
        Self::Rejection(rejection)
    }
}

/// One call and all it depends on.
pub(super) struct ActiveCall<'a> {
    /// Stores, tools and limits.
    pub(super) config: &'a DispatcherConfig,
    /// Records and logs the call.
    pub(super) audit: &'a AuditTrail,
    /// Rate limit per principal, tenant and tool.
    pub(super) buckets: Option<&'a Limiter>,
    /// Origin of the call.
    pub(super) caller: &'a Caller,
    /// Authenticated caller.
    pub(super) principal: &'a Principal,
    /// Tool to run.
    pub(super) tool: &'a OfferedTool,
    /// Facts for the record.
    pub(super) details: &'a CallDetails,
    /// Hash of the input.
    pub(super) hash: &'a PayloadHash,
}

impl ActiveCall<'_> {
    /// Runs the call; `Err` means that the tool did not run, or broke.
    pub(super) async fn serve(&self, input: Value) -> Result<CallResult, CallResult> {
        self.authorize()?;
        let names = [
            &*self.principal.id,
            &self.caller.tenant_id,
            self.tool.name(),
        ];
        rate_limit::consume(self.buckets, &names.join("\n"), "of this tool")?;
        let call = self.decode(input)?;
        let scope = self.scope();
        match self.repeat_key() {
            None => Ok(call_result(self.run(call, &scope).await?)),
            Some(key) => Box::pin(self.run_idempotent(call, &scope, key)).await,
        }
    }

    /// Checks that the caller may call this tool.
    fn authorize(&self) -> Result<(), CallResult> {
        if !self.tool.is_site_tool() && self.principal.proof != Proof::Authenticated {
            return Err(Rejection::forbidden("this tool needs an authenticated caller").into());
        }
        let is_internal = self.tool.entry.service.audience == Audience::Internal;
        if is_internal && !self.principal.has_scope(principal::INTERNAL) {
            let message = format!("{} is not for models", self.tool.name());
            return Err(CallResult::Failure(Failure::new(
                "PermissionDenied",
                "PERMISSION_DENIED",
                message,
            )));
        }
        let missing = self
            .tool
            .scopes
            .iter()
            .find(|scope| !self.principal.has_scope(scope));
        match missing {
            Some(scope) => {
                Err(Rejection::forbidden(format!("the scope {scope} is required")).into())
            }
            None => Ok(()),
        }
    }

    fn decode(&self, mut input: Value) -> Result<Call, CallResult> {
        if self.tool.takes_paths {
            validate::spread_paths(&mut input, self.tool.entry.schema.annotated());
        }
        let problems = self.tool.check.problems(&mut input);
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        (self.tool.entry.from_json)(input)
            .map_err(|error| invalid(vec![FieldProblem::new(&[], error.to_string())]))
    }

    fn scope(&self) -> Scope {
        let own = self.tool.entry.service.deadline();
        let time = self.caller.timeout.map_or(own, |timeout| timeout.min(own));
        Scope {
            tenant_id: self.caller.tenant_id.as_str().into(),
            site_id: self.caller.site_id.as_str().into(),
            deadline: self.caller.received_at + time,
        }
    }

    /// Only calls that change something use a key.
    fn repeat_key(&self) -> Option<RepeatKey> {
        let key = self.caller.idempotency_key.clone()?;
        (self.tool.entry.service.access == Access::Write).then(|| RepeatKey {
            principal: self.principal.id.clone(),
            tool: self.tool.name().into(),
            key,
            fingerprint: self.hash.to_hex(),
        })
    }

    /// Runs a call, unless one with the same key was made before.
    async fn run_idempotent(
        &self,
        call: Call,
        scope: &Scope,
        key: RepeatKey,
    ) -> Result<CallResult, CallResult> {
        let sites = &self.config.sites;
        match sites.claim(scope, key.clone()).await.map_err(failed)? {
            Claim::New => {}
            Claim::Done(answer) => return Ok(CallResult::Replay(answer)),
            Claim::Begun => {
                let detail = "a call with this Idempotency-Key has started and has no response yet";
                return Err(Rejection::in_progress(detail).with_retry_after(1).into());
            }
            Claim::Other => {
                let detail = "this Idempotency-Key was used for another input";
                return Err(Rejection::key_reused(detail).into());
            }
        }
        let result = self.run(call, scope).await;
        let later = Scope {
            deadline: Instant::now() + limits::WRITE_CALL_TIMEOUT,
            ..scope.clone()
        };
        match result {
            Ok(Ok(fields)) => {
                let (mut caller, details) = (self.caller.clone(), self.details.clone());
                let time = caller.latency_ms();
                let answer = Envelope::of(&mut caller, details, time, Ok(fields.clone()));
                let answer = answer.to_json().unwrap_or_default();
                // Without a stored response the key stays claimed, because a retry would repeat the
                // change.
                let stored = sites.answer(&later, key, answer).await;
                self.log_key_error("answer_not_kept", stored);
                // A replay must equal this response byte for byte, latency included.
                Ok(CallResult::StoredOutput(fields, time))
            }
            // The call may have taken effect, or still may.
            Ok(Err(failure)) if self.may_have_effect(&failure) => Ok(call_result(Err(failure))),
            other => {
                let released = sites.release(&later, key).await;
                self.log_key_error("key_not_released", released);
                Ok(call_result(other?))
            }
        }
    }

    /// Tells whether a failed call may still take effect. A site write that fails is rolled back;
    /// one that was abandoned may still commit.
    fn may_have_effect(&self, failure: &Failure) -> bool {
        failure.is_abandoned
            || ((failure.is_effect_unknown() || failure.is_internal()) && !self.tool.is_site_tool())
    }

    /// Logs that a key could not be stored or released.
    fn log_key_error(&self, event: &str, result: Result<(), StoreError>) {
        let Err(error) = result else { return };
        self.audit.log().write(&LogLine {
            event,
            trace_id: Some(&self.caller.trace_id),
            tool_name: Some(self.tool.name()),
            call_id: Some(&self.caller.call_id),
            message: Some(&error.to_string()),
            ..LogLine::default()
        });
    }

    /// Runs a call with valid input; `Err` means that it did not reach the tool.
    async fn run(
        &self,
        call: Call,
        scope: &Scope,
    ) -> Result<Result<FieldText, Failure>, CallResult> {
        let access = self.tool.entry.service.access;
        if access == Access::Write {
            let (caller, principal) = (self.caller, self.principal);
            Box::pin(self.audit.record_intent(caller, principal, self.details)).await?;
        }
        self.audit
            .log_event("tool_call_start", self.caller, self.details);
        let result = self.start(call, scope);
        match deadline::run_until(scope.deadline, access, result).await {
            Ok(fields) => Ok(self.masked(fields)),
            Err(failed) => Ok(Err(failed.into())),
        }
    }

    /// Masks secrets in the output of a site tool, which may echo its input. Other tools mask their
    /// own results.
    fn masked(&self, fields: FieldText) -> Result<FieldText, Failure> {
        let redactor = &self.config.redactor;
        if redactor.is_idle() || !self.tool.is_site_tool() {
            return Ok(fields);
        }
        let mut value = fields.to_value();
        redactor.redact_json_again(&mut value);
        Ok(FieldText::written(&value)?)
    }

    fn start(&self, call: Call, scope: &Scope) -> CallFuture<'_> {
        let config = self.config;
        if !self.tool.is_site_tool()
            && let Some(local) = &config.local
        {
            let session = self.caller.shell_session.as_ref();
            // The name of a shell is no proof of ownership, so the key includes the principal.
            let owner = session
                .filter(|_| self.principal.proof == Proof::Authenticated)
                .map(|session| format!("{}\n{session}", self.principal.id));
            let result = local.run(call, scope.deadline, owner, self.caller.live_output.clone());
            return match &self.caller.cancel {
                Some(cancel) => deadline::with_cancel(cancel.clone(), result),
                None => result,
            };
        }
        let may_see_drafts = self.principal.has_scope(principal::DRAFT_READ);
        let site = SiteAccess {
            store: Arc::clone(&config.sites),
            scope: scope.clone(),
            user_id: self.caller.user_id.clone(),
            session_id: self.caller.session_id.clone(),
            trace_id: self.caller.trace_id.clone(),
            visibility: if may_see_drafts {
                ContentVisibility::Drafts
            } else {
                ContentVisibility::Published
            },
        };
        let context = Context {
            site: Some(site),
            ..self.config.context.clone()
        };
        Box::pin(async move { Ok(call.run(&context).await?.output) })
    }
}

fn call_result(result: Result<FieldText, Failure>) -> CallResult {
    match result {
        Ok(fields) => CallResult::Output(fields),
        Err(failure) if failure.is_internal() => Rejection::internal(failure.message).into(),
        Err(failure) => CallResult::Failure(failure),
    }
}

fn failed(error: StoreError) -> CallResult {
    CallResult::Failure(Failure::from(karyi_core::error::ToolError::from(error)))
}

fn invalid(problems: Vec<FieldProblem>) -> CallResult {
    CallResult::Failure(Failure {
        problems: problems.clone(),
        ..Failure::new(
            "ValidationError",
            "INVALID_INPUT",
            input_check::summary(&problems),
        )
    })
}
