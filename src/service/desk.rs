//! The place where every call of a server is served, whatever protocol brought it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::limits;
use crate::service::caller::{Caller, Request};
use crate::service::canonical::PayloadHash;
use crate::service::envelope::{Audit, Envelope, Failure};
use crate::service::fields::{self, Problem};
use crate::service::guard::{Credential, Guard};
use crate::service::log::{Line, Log};
use crate::service::metrics::Metrics;
use crate::service::offer::{Listed, Offered};
use crate::service::principal::{self, Principal, Proof};
use crate::service::rates::{Entry, Flood, Limiter, Rate};
use crate::service::recording::{About, End, record};
use crate::service::rejection::Rejection;
use crate::service::running::{self, Fields, Local, Running};
use crate::store::ledger::Record;
use crate::store::site::{Claim, RepeatKey, Scope};
use crate::store::{Ledger, SiteStore, StoreError};
use crate::tool::service::{Access, Audience};
use crate::tool::site::Sight;
use crate::tool::{Context, SiteAccess};
use crate::tools::Call;

/// What a desk is made of.
pub struct Parts {
    /// The tools it offers.
    pub tools: Vec<Offered>,
    /// The data of sites.
    pub sites: Arc<dyn SiteStore>,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Who callers are.
    pub guard: Arc<Guard>,
    /// How often one principal may call one tool for one tenant.
    pub tool_rate: Option<Rate>,
    /// How often may be called for one tenant.
    pub tenant_rate: Option<Rate>,
    /// What tools of sites may use beside their site.
    pub context: Context,
    /// The tools that work on this machine.
    pub local: Local,
    /// Whether the ledger keeps inputs.
    pub keep: KeepInput,
    /// Where log lines go.
    pub log: Log,
}

/// Whether the ledger keeps inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepInput {
    /// Only their hash.
    Never,
    /// Every one.
    Always,
}

/// Serves calls.
pub struct Desk {
    parts: Parts,
    tool_buckets: Option<Limiter>,
    tenant_buckets: Option<Limiter>,
    flood: Flood,
    metrics: Metrics,
}

/// The answer to a call.
#[derive(Debug)]
pub enum Reply {
    /// Of its tool.
    Fresh(Box<Envelope>),
    /// Of an earlier call with the same key, to the letter.
    Replay(Vec<u8>),
    /// It did not reach its tool.
    Refused(Rejection),
}

/// How serving a call ended.
enum Ending {
    Output(Fields),
    Failure(Failure),
    Replay(Vec<u8>),
    Refused(Rejection),
}

impl From<Rejection> for Ending {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

/// What is asked of the list of tools.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only this category.
    pub category: Option<String>,
    /// Whether also tools are listed that models may not call.
    pub has_internal: bool,
}

impl Desk {
    /// Makes a desk.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            tool_buckets: parts.tool_rate.map(Limiter::new),
            tenant_buckets: parts.tenant_rate.map(Limiter::new),
            flood: Flood::new(limits::MAX_REFUSALS_RECORDED),
            metrics: Metrics::default(),
            parts,
        }
    }

    /// Returns the tools it offers.
    #[must_use]
    pub fn tools(&self) -> &[Offered] {
        &self.parts.tools
    }

    /// Returns its numbers.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the way to the log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.parts.log
    }

    /// Returns who decides who callers are.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.parts.guard
    }

    /// Ends what the tools of this machine keep between calls.
    pub async fn close(&self) {
        if let Some(local) = &self.parts.local {
            local.close().await;
        }
    }

    /// Returns who calls, when they may call for this tenant and site now. A refusal is recorded.
    ///
    /// # Errors
    /// 401, 403 or 429.
    pub async fn admit(
        &self,
        caller: &Caller,
        credential: &Credential,
    ) -> Result<Principal, Rejection> {
        let principal = match self.parts.guard.identify(credential, seconds_now()) {
            Ok(principal) => principal,
            Err(rejection) => {
                return Err(self
                    .refuse(caller, None, &About::default(), rejection)
                    .await);
            }
        };
        self.enter(caller, &principal).await.map(|()| principal)
    }

    /// Lets somebody in who is known, when they may call for this tenant and site now. A refusal is
    /// recorded.
    ///
    /// # Errors
    /// 403 or 429.
    pub async fn enter(&self, caller: &Caller, principal: &Principal) -> Result<(), Rejection> {
        match self.admitted(caller, principal) {
            Ok(()) => Ok(()),
            Err(rejection) => Err(self
                .refuse(caller, Some(principal), &About::default(), rejection)
                .await),
        }
    }

    fn admitted(&self, caller: &Caller, principal: &Principal) -> Result<(), Rejection> {
        if !principal.tenants.has(&caller.tenant_id) {
            return Err(Rejection::forbidden(format!(
                "not for tenant {}",
                caller.tenant_id
            )));
        }
        if !principal.sites.has(&caller.site_id) {
            return Err(Rejection::forbidden(format!(
                "not for site {}",
                caller.site_id
            )));
        }
        take(
            self.tenant_buckets.as_ref(),
            caller.tenant_id.clone(),
            "for this tenant",
        )
    }

    /// Records a refusal and returns it.
    pub async fn refuse(
        &self,
        caller: &Caller,
        principal: Option<&Principal>,
        about: &About,
        rejection: Rejection,
    ) -> Rejection {
        let name = principal.map_or("nobody", |principal| principal.id.as_str());
        let mut about = about.clone();
        if about.request_type.is_empty() {
            about.request_type = "tool_call";
        }
        match self.flood.decide(name, Instant::now()) {
            Entry::Hold => {}
            Entry::Write(count) => {
                let end = End {
                    error_type: Some(rejection.error_type.into()),
                    error: Some(rejection.detail.clone()),
                    http_status: rejection.status,
                    count,
                    ..End::default()
                };
                self.write(&record(caller, principal, &about, &end)).await;
                self.tell("tool_call_error", caller, &about, &end);
            }
        }
        rejection
    }

    /// Records the refusals that were held back of callers who have been silent at `until`.
    pub async fn settle_floods(&self, until: Instant) {
        for (name, count) in self.flood.overdue(until) {
            let Ok(mut caller) =
                Caller::new("http", "flood".into(), "flood".into(), "flood".into())
            else {
                continue;
            };
            caller.user_id = Some(name);
            let about = About {
                request_type: "tool_call",
                ..About::default()
            };
            let end = End {
                error_type: Some("Flood".into()),
                error: Some("further refused requests of one caller, counted".into()),
                count: count.max(2),
                http_status: 429,
                ..End::default()
            };
            let mut row = record(&caller, None, &about, &end);
            row.count = Some(count);
            self.write(&row).await;
        }
    }

    /// Lists tools; every list is recorded.
    ///
    /// # Errors
    /// 403 without the scope for it.
    pub async fn list(
        &self,
        caller: &Caller,
        principal: &Principal,
        request: &ListRequest,
    ) -> Result<Vec<Listed>, Rejection> {
        let about = About {
            request_type: "tool_list",
            ..About::default()
        };
        self.tell("tools_list_request", caller, &about, &End::default());
        if !principal.may(principal::LIST) {
            let rejection = Rejection::forbidden("the scope tools:list is needed");
            return Err(self
                .refuse(caller, Some(principal), &about, rejection)
                .await);
        }
        let is_wanted = |tool: &&Offered| {
            let service = &tool.entry.service;
            let is_shown = tool.is_of_site() || principal.proof == Proof::Authenticated;
            let fits = request
                .category
                .as_deref()
                .is_none_or(|wanted| wanted == service.category);
            is_shown && fits && (request.has_internal || service.audience == Audience::Anyone)
        };
        let listed = self
            .parts
            .tools
            .iter()
            .filter(is_wanted)
            .map(Offered::listed)
            .collect();
        let end = End {
            http_status: 200,
            ..End::default()
        };
        self.write(&record(caller, Some(principal), &about, &end))
            .await;
        Ok(listed)
    }

    /// Serves one call; it is recorded whatever comes of it.
    pub async fn call(&self, mut caller: Caller, principal: &Principal, request: Request) -> Reply {
        caller.complete(&request.context);
        let hash = PayloadHash::of(&request.input);
        let other_trace = request
            .context
            .trace_id
            .clone()
            .filter(|id| *id != caller.trace_id);
        let mut about = About {
            request_type: "tool_call",
            tool_name: request
                .tool_name
                .chars()
                .take(limits::MAX_ID_CHARS)
                .collect(),
            tool_version: None,
            payload_hash: Some(hash.short().to_owned()),
            input: (self.parts.keep == KeepInput::Always).then(|| request.input.clone()),
            context_trace_id: other_trace,
        };
        self.tell("tool_call_request", &caller, &about, &End::default());
        let tool = self
            .parts
            .tools
            .iter()
            .find(|tool| tool.name() == request.tool_name);
        let ending = match tool {
            None => {
                let message = format!("Unknown tool: {}", about.tool_name);
                Ending::Failure(Failure::new("ValueError", "UNKNOWN_TOOL", message))
            }
            Some(tool) => {
                about.tool_version = Some(tool.entry.service.version);
                let call = Serving {
                    desk: self,
                    caller: &caller,
                    principal,
                    tool,
                    about: &about,
                    hash: &hash,
                };
                match call.serve(request).await {
                    Ok(ending) | Err(ending) => ending,
                }
            }
        };
        self.finish(&caller, principal, &about, ending).await
    }

    async fn finish(
        &self,
        caller: &Caller,
        principal: &Principal,
        about: &About,
        ending: Ending,
    ) -> Reply {
        let mut end = End {
            http_status: 200,
            ..End::default()
        };
        let reply = match ending {
            Ending::Refused(rejection) => {
                return Reply::Refused(
                    self.refuse(caller, Some(principal), about, rejection).await,
                );
            }
            Ending::Replay(answer) => {
                end.is_replay = true;
                self.metrics.replayed();
                Reply::Replay(answer)
            }
            Ending::Failure(failure) => {
                end.error_type = Some(failure.error_type.into());
                end.error = Some(failure.message.clone());
                Reply::Fresh(Box::new(envelope(caller, about, Err(failure))))
            }
            Ending::Output(fields) => Reply::Fresh(Box::new(envelope(caller, about, Ok(fields)))),
        };
        let status = if end.error_type.is_some() {
            "error"
        } else {
            "success"
        };
        if about.tool_version.is_some() {
            self.metrics
                .called(&about.tool_name, status, caller.latency_ms());
        }
        if caller.is_gone.load(Ordering::Relaxed) {
            self.metrics.disconnected();
        }
        self.write(&record(caller, Some(principal), about, &end))
            .await;
        self.tell(&format!("tool_call_{status}"), caller, about, &end);
        reply
    }

    /// Writes a record; one that cannot be written is told in the log.
    async fn write(&self, record: &Record) {
        if let Err(error) = self.parts.ledger.keep(record).await {
            self.metrics.ledger_failed();
            self.parts.log.write(&Line {
                event: "ledger_write_failed",
                trace_id: Some(&record.trace_id),
                tool_name: Some(&record.tool_name),
                call_id: Some(&record.call_id),
                message: Some(&error.to_string()),
                ..Line::default()
            });
        }
    }

    fn tell(&self, event: &str, caller: &Caller, about: &About, end: &End) {
        let is_over = end.http_status > 0;
        self.parts.log.write(&Line {
            event,
            trace_id: Some(&caller.trace_id),
            tool_name: Some(about.tool_name.as_str()).filter(|name| !name.is_empty()),
            tenant_id: Some(&caller.tenant_id),
            site_id: Some(&caller.site_id),
            latency_ms: is_over.then(|| caller.latency_ms()),
            call_id: Some(&caller.call_id),
            http_status: is_over.then_some(end.http_status),
            error_type: end.error_type.as_deref(),
            message: end.error.as_deref(),
        });
    }
}

/// One call while it is served.
struct Serving<'a> {
    desk: &'a Desk,
    caller: &'a Caller,
    principal: &'a Principal,
    tool: &'a Offered,
    about: &'a About,
    hash: &'a PayloadHash,
}

impl Serving<'_> {
    async fn serve(&self, request: Request) -> Result<Ending, Ending> {
        self.permit(&request)?;
        let bucket = format!(
            "{}\n{}\n{}",
            self.principal.id,
            self.caller.tenant_id,
            self.tool.name()
        );
        take(self.desk.tool_buckets.as_ref(), bucket, "of this tool")?;
        let call = self.read(request.input)?;
        let scope = self.scope();
        match self.repeat_key() {
            None => Ok(ending(self.run(call, &scope).await?)),
            Some(key) => self.once(call, &scope, key).await,
        }
    }

    /// Whether the caller may call this tool for the tenant and site that the body names too.
    fn permit(&self, request: &Request) -> Result<(), Ending> {
        let differs =
            |named: &Option<String>, own: &str| named.as_deref().is_some_and(|id| id != own);
        if differs(&request.context.tenant_id, &self.caller.tenant_id)
            || differs(&request.context.site_id, &self.caller.site_id)
        {
            let detail = "context names another tenant or site than the headers";
            return Err(Rejection::context_mismatch(detail).into());
        }
        if !self.tool.is_of_site() && self.principal.proof != Proof::Authenticated {
            return Err(Rejection::forbidden("this tool needs an authenticated caller").into());
        }
        let is_internal = self.tool.entry.service.audience == Audience::Internal;
        if is_internal && !self.principal.may(principal::INTERNAL) {
            let message = format!("{} is not for models", self.tool.name());
            return Err(Ending::Failure(Failure::new(
                "PermissionDenied",
                "PERMISSION_DENIED",
                message,
            )));
        }
        let missing = self
            .tool
            .scopes()
            .into_iter()
            .find(|scope| !self.principal.may(scope));
        match missing {
            Some(scope) => Err(Rejection::forbidden(format!("the scope {scope} is needed")).into()),
            None => Ok(()),
        }
    }

    fn read(&self, input: Value) -> Result<Call, Ending> {
        let problems = self.tool.check.problems(&input);
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        (self.tool.entry.from_json)(input)
            .map_err(|error| invalid(vec![Problem::new(&[], error.to_string())]))
    }

    fn scope(&self) -> Scope {
        let own = self.tool.entry.service.deadline();
        let time = self
            .caller
            .patience
            .map_or(own, |patience| patience.min(own));
        Scope {
            tenant_id: self.caller.tenant_id.as_str().into(),
            site_id: self.caller.site_id.as_str().into(),
            deadline: self.caller.since + time,
        }
    }

    /// Only a call that changes something needs a key.
    fn repeat_key(&self) -> Option<RepeatKey> {
        let key = self.caller.idempotency_key.clone()?;
        (self.tool.entry.service.access == Access::Write).then(|| RepeatKey {
            principal: self.principal.id.clone(),
            tool: self.tool.name().into(),
            key,
            fingerprint: self.hash.whole().into(),
        })
    }

    /// Runs a call, unless it was made before.
    async fn once(&self, call: Call, scope: &Scope, key: RepeatKey) -> Result<Ending, Ending> {
        let sites = &self.desk.parts.sites;
        match sites.claim(scope, key.clone()).await.map_err(failed)? {
            Claim::New => {}
            Claim::Done(answer) => return Ok(Ending::Replay(answer)),
            Claim::Begun => {
                let detail = "a call with this Idempotency-Key was begun and has no answer yet";
                return Err(Rejection::in_progress(detail).after(1).into());
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
        match &result {
            Ok(Ok(fields)) => {
                let answer = envelope(self.caller, self.about, Ok(fields.clone()));
                let answer = serde_json::to_vec(&answer).unwrap_or_default();
                // Without its answer the key stays taken: repeating the call would do it again.
                let _ = sites.answer(&later, key, answer).await;
            }
            Ok(Err(_)) | Err(_) => {
                let _ = sites.release(&later, key).await;
            }
        }
        Ok(ending(result?))
    }

    /// Runs a call whose input is good: `Err` when it did not reach the tool or broke it.
    async fn run(&self, call: Call, scope: &Scope) -> Result<Result<Fields, Failure>, Ending> {
        let access = self.tool.entry.service.access;
        if access == Access::Write {
            self.intend().await?;
        }
        self.desk
            .tell("tool_call_start", self.caller, self.about, &End::default());
        let running = self.running(call, scope);
        match running::until(scope.deadline, access, running).await {
            Ok(fields) => Ok(Ok(fields)),
            Err(error) => match Failure::from(error) {
                failure if failure.error_type == "Internal" => {
                    Err(Rejection::internal(failure.message).into())
                }
                failure => Ok(Err(failure)),
            },
        }
    }

    /// Notes that something is about to change; without that nothing may.
    async fn intend(&self) -> Result<(), Ending> {
        let end = End {
            error_type: Some("Started".into()),
            ..End::default()
        };
        let intent = record(self.caller, Some(self.principal), self.about, &end);
        self.desk
            .parts
            .ledger
            .intend(&intent)
            .await
            .map_err(|error| {
                self.desk.metrics.ledger_failed();
                let message = error.to_string();
                let line = Line {
                    event: "ledger_write_failed",
                    message: Some(&message),
                    ..Line::default()
                };
                self.desk.parts.log.write(&line);
                let detail = "the ledger cannot be written now, so nothing was changed";
                Rejection::audit_unavailable(detail).after(1).into()
            })
    }

    fn running(&self, call: Call, scope: &Scope) -> Running {
        let parts = &self.desk.parts;
        if !self.tool.is_of_site()
            && let Some(local) = &parts.local
        {
            let session = self.caller.shell_session.as_ref();
            // A name alone is no proof: the shell belongs to who calls, too.
            let owner = session
                .filter(|_| self.principal.proof == Proof::Authenticated)
                .map(|session| format!("{}\n{session}", self.principal.id));
            let running = local.run(call, scope.deadline, owner);
            return running::unless(self.caller.cancel.clone(), running);
        }
        let may_see_drafts = self.principal.may(principal::DRAFT_READ);
        let site = SiteAccess {
            store: Arc::clone(&parts.sites),
            scope: scope.clone(),
            user_id: self.caller.user_id.clone(),
            session_id: self.caller.session_id.clone(),
            trace_id: self.caller.trace_id.clone(),
            sight: if may_see_drafts {
                Sight::Drafts
            } else {
                Sight::Published
            },
        };
        let context = Context {
            site: Some(site),
            ..parts.context.clone()
        };
        Box::pin(async move { call.run(&context).await.map(|answer| answer.output) })
    }
}

fn ending(result: Result<Fields, Failure>) -> Ending {
    match result {
        Ok(fields) => Ending::Output(fields),
        Err(failure) => Ending::Failure(failure),
    }
}

fn failed(error: StoreError) -> Ending {
    Ending::Failure(Failure::from(crate::error::ToolError::from(error)))
}

fn invalid(problems: Vec<Problem>) -> Ending {
    Ending::Failure(Failure {
        problems: problems.clone(),
        ..Failure::new(
            "ValidationError",
            "INVALID_INPUT",
            fields::in_words(&problems),
        )
    })
}

fn take(limiter: Option<&Limiter>, bucket: String, whose: &str) -> Result<(), Rejection> {
    let Some(limiter) = limiter else {
        return Ok(());
    };
    limiter.take(bucket).map_err(|seconds| {
        let detail = format!("too many calls {whose}; try again in {seconds} s");
        Rejection::too_many(detail).after(seconds)
    })
}

fn envelope(caller: &Caller, about: &About, result: Result<Fields, Failure>) -> Envelope {
    let (output, failure) = match result {
        Ok(fields) => (Some(fields), None),
        Err(failure) => (None, Some(failure)),
    };
    let error_type = failure
        .as_ref()
        .map(|failure| failure.error_type.to_owned());
    let message = failure.as_ref().map(|failure| failure.message.clone());
    let audit = Audit {
        trace_id: caller.trace_id.clone(),
        call_id: caller.call_id.clone(),
        tool_name: about.tool_name.clone(),
        status: if failure.is_some() {
            "error"
        } else {
            "success"
        }
        .into(),
        latency_ms: caller.latency_ms(),
        error_type: error_type.clone(),
        error_message: message.clone(),
        request_payload_hash: about.payload_hash.clone().unwrap_or_default(),
    };
    Envelope {
        success: failure.is_none(),
        output,
        error: message,
        error_type,
        error_code: failure.as_ref().map(|failure| failure.code.clone()),
        errors: failure.map(|failure| failure.problems).unwrap_or_default(),
        audit,
    }
}

fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs_f64()
}
