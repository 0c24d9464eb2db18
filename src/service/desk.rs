//! The place where every call of a server is served, whatever protocol brought it.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::service::books::Books;
use crate::service::caller::{Caller, Request};
use crate::service::canonical::PayloadHash;
use crate::service::contexts::Contexts;
use crate::service::envelope::{Envelope, Failure};
use crate::service::guard::{Credential, Guard};
use crate::service::log::Log;
use crate::service::lookout::Lookout;
use crate::service::metrics::Metrics;
use crate::service::offer::{Listed, Offered};
pub use crate::service::parts::{KeepInput, Parts};
use crate::service::principal::{self, Principal, Proof};
use crate::service::rates::{self, Limiter};
use crate::service::recording::{About, End};
use crate::service::rejection::Rejection;
use crate::service::running::{self, Broken, Lasting};
use crate::service::serving::{Ending, Serving};
use crate::tool::FieldText;
use crate::tool::service::Audience;
use karyi_core::limits;
use karyi_store::StoreError;
use karyi_vault::redact::Redactor;

/// What is said of a call that broke outside of its tool.
const BROKEN: &str = "the call stopped unexpectedly";

/// What is said of a request with the value of a secret where it says what it belongs to.
const HOLDS_VALUE: &str = "an identifier of the request holds the value of a secret";

/// Serves calls.
pub struct Desk {
    parts: Parts,
    tool_buckets: Option<Limiter>,
    tenant_buckets: Option<Limiter>,
    books: Books,
    contexts: Contexts,
    lookout: Lookout,
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

/// How a call ended that is in the books.
enum Finished {
    /// Its tool had its say, after so many milliseconds.
    Fresh(u64, Result<FieldText, Failure>),
    /// The answer of an earlier call.
    Replay(Vec<u8>),
    /// It did not reach its tool.
    Refused(Rejection),
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
            books: Books::new(
                Arc::clone(&parts.ledger),
                parts.log.clone(),
                parts.spans.clone(),
            ),
            contexts: Contexts::new(parts.context.clone()),
            lookout: Lookout::new(parts.redactor.secrets()),
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
        self.books.metrics()
    }

    /// Returns the way to the log.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.books.log()
    }

    /// Returns what masks values of secrets.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.parts.redactor
    }

    /// Brings up to date what is known of stored secrets. Front ends do so before anything of a request is checked,
    /// logged or recorded.
    pub async fn look(&self) {
        self.lookout.look(self.log()).await;
    }

    /// Does so between requests, and tells in the log what could not be read; to be called now and then.
    pub async fn look_after_secrets(&self) {
        self.lookout.catch_up(self.log()).await;
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
    ) -> Result<Cow<'_, Principal>, Rejection> {
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
            // Nobody's tenant has this name, so that who guesses names takes nothing from others.
            let own = format!("\n{}", principal.id);
            rates::take(self.tenant_buckets.as_ref(), &own, "for other tenants")?;
            return Err(Rejection::forbidden(format!(
                "not for tenant {}",
                caller.tenant_id
            )));
        }
        rates::take(
            self.tenant_buckets.as_ref(),
            &caller.tenant_id,
            "for this tenant",
        )?;
        if !principal.sites.has(&caller.site_id) {
            return Err(Rejection::forbidden(format!(
                "not for site {}",
                caller.site_id
            )));
        }
        // Last, so that guesses at values are limited like calls.
        self.check_identifiers(caller)
    }

    /// Refuses identifiers with the value of a secret: they would stand in the log, the ledger and the data of the
    /// site, and masked they would no longer tell one caller from another.
    fn check_identifiers(&self, caller: &Caller) -> Result<(), Rejection> {
        let redactor = &self.parts.redactor;
        match !redactor.is_idle() && caller.clone().mask(redactor) {
            true => Err(Rejection::invalid(HOLDS_VALUE)),
            false => Ok(()),
        }
    }

    /// Returns a caller as an answer may name it: a refused one may bring values of secrets as identifiers.
    #[must_use]
    pub fn shown<'a>(&self, caller: &'a Caller) -> Cow<'a, Caller> {
        let mut masked = caller.clone();
        match masked.mask(&self.parts.redactor) {
            true => Cow::Owned(masked),
            false => Cow::Borrowed(caller),
        }
    }

    /// Records a refusal and returns it.
    pub async fn refuse(
        &self,
        caller: &Caller,
        principal: Option<&Principal>,
        about: &About,
        mut rejection: Rejection,
    ) -> Rejection {
        rejection.mask(&self.parts.redactor);
        let caller = &*self.shown(caller);
        // Seldom and large, so it has a place of its own in memory.
        Box::pin(self.books.refuse(caller, principal, about, rejection)).await
    }

    /// Forgets what no longer limits anybody; to be called now and then.
    pub fn sweep(&self) {
        let limiters = [&self.tool_buckets, &self.tenant_buckets];
        limiters.into_iter().flatten().for_each(Limiter::sweep);
    }

    /// Records the refusals that were held back of callers who have been silent at `until`.
    pub async fn settle_floods(&self, until: Instant) {
        self.books.settle_floods(until).await;
    }

    /// Has records written that had to wait; to be called now and then.
    pub async fn catch_up(&self) {
        self.books.catch_up().await;
    }

    /// Ends the books of a server that serves no more; returns how many records are lost with it.
    pub async fn end_books(&self) -> usize {
        self.books
            .settle_floods(Instant::now() + limits::FLOOD_WINDOW)
            .await;
        self.books.end().await
    }

    /// Whether the ledger could not be written the last time.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.books.is_failing()
    }

    /// Whether both databases work now.
    ///
    /// # Errors
    /// What stands against it.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.books.probe().await?;
        let deadline = Instant::now() + limits::READ_CALL_TIMEOUT;
        self.parts.sites.probe(deadline).await
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
        self.books
            .tell("tools_list_request", caller, &about, &End::default());
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
            latency_ms: caller.latency_ms(),
            ..End::default()
        };
        self.books.keep(caller, principal, &about, &end).await;
        Ok(listed)
    }

    /// Serves one call to its end: a caller who goes away does not end it, since what it did must be
    /// recorded. `place` is given back when it has ended.
    pub async fn serve(
        self: &Arc<Self>,
        mut caller: Caller,
        principal: Principal,
        mut request: Request,
        place: impl Send + 'static,
    ) -> Reply {
        let (desk, is_gone) = (Arc::clone(self), Arc::clone(&caller.is_gone));
        let work = async move {
            let called = desk.call(&mut caller, &principal, &mut request);
            let reply = running::caught(pin!(called)).await;
            drop(place);
            reply
        };
        let broken = |_| Reply::Refused(Rejection::internal(BROKEN));
        Lasting::new(work, is_gone).await.unwrap_or_else(broken)
    }

    /// Serves one call; it is recorded whatever comes of it. What the call no longer needs is taken out of
    /// its caller and its request: they are large, and to be passed on they would have to be here as well.
    pub async fn call(
        &self,
        caller: &mut Caller,
        principal: &Principal,
        request: &mut Request,
    ) -> Reply {
        let holds_value = request.context.holds_value(&self.parts.redactor);
        caller.complete(&request.context);
        if holds_value {
            let rejection = Rejection::invalid(HOLDS_VALUE);
            let about = About::default();
            let refused = self.refuse(caller, Some(principal), &about, rejection);
            return Reply::Refused(refused.await);
        }
        let known = self.parts.redactor.secrets().generation();
        let hash = PayloadHash::of(&request.input);
        let mut about = self.about(caller, request, &hash);
        self.books
            .tell("tool_call_request", caller, &about, &End::default());
        let mut tools = self.parts.tools.iter();
        let tool = tools.find(|tool| tool.name() == request.tool_name);
        about.tool_version = tool.map(|tool| tool.entry.service.version);
        let work = async {
            let ending = match tool {
                _ if !caller.fits(&request.context) => {
                    let detail = "context names another tenant or site than the headers";
                    Rejection::context_mismatch(detail).into()
                }
                None => self.unknown(&*caller, principal, &about),
                Some(tool) => {
                    let call = Serving {
                        parts: &self.parts,
                        books: &self.books,
                        contexts: &self.contexts,
                        buckets: self.tool_buckets.as_ref(),
                        caller: &*caller,
                        principal,
                        tool,
                        about: &about,
                        hash: &hash,
                    };
                    let input = std::mem::take(&mut request.input);
                    let (Ok(ending) | Err(ending)) = call.serve(input).await;
                    ending
                }
            };
            self.mask_news(known, caller, &mut about);
            self.finish(&*caller, principal, &about, ending).await
        };
        let settled = running::caught(pin!(work)).await;
        match settled {
            Ok(Finished::Refused(rejection)) => Reply::Refused(rejection),
            Ok(Finished::Replay(answer)) => Reply::Replay(answer),
            Ok(Finished::Fresh(time, result)) => {
                Reply::Fresh(Box::new(Envelope::of(caller, about, time, result)))
            }
            Err(Broken) => {
                about.mask(&self.parts.redactor);
                let rejection = Rejection::internal(BROKEN);
                let refused = self.refuse(caller, Some(principal), &about, rejection);
                Reply::Refused(refused.await)
            }
        }
    }

    /// Masks in what is recorded and answered what became known since the secrets were of this generation: the tool
    /// looked at the store as well, or others did meanwhile.
    fn mask_news(&self, known: u64, caller: &mut Caller, about: &mut About) {
        let redactor = &self.parts.redactor;
        if redactor.secrets().generation() != known {
            caller.mask(redactor);
            about.mask(redactor);
        }
    }

    /// Ends a call of a tool that there is not. All such tools together have one bucket.
    fn unknown(&self, caller: &Caller, principal: &Principal, about: &About) -> Ending {
        let names = [&*principal.id, &caller.tenant_id, ""];
        let buckets = self.tool_buckets.as_ref();
        match rates::take(buckets, &names.join("\n"), "of unknown tools") {
            Ok(()) => {
                let message = format!("Unknown tool: {}", about.tool_name);
                Ending::Failure(Failure::new("ValueError", "UNKNOWN_TOOL", message))
            }
            Err(rejection) => rejection.into(),
        }
    }

    fn about(&self, caller: &Caller, request: &Request, hash: &PayloadHash) -> About {
        let named = request.context.trace_id.as_ref();
        let is_kept = self.parts.keep == KeepInput::Always;
        let mut about = About {
            request_type: "tool_call",
            tool_name: self.masked(&request.tool_name),
            tool_version: None,
            payload_hash: Some(hash.short()),
            input: is_kept.then(|| request.input.clone()),
            context_trace_id: named.filter(|id| **id != caller.trace_id).cloned(),
        };
        about.mask(&self.parts.redactor);
        about
    }

    /// Returns a name that a caller wrote as it may be shown: without values of secrets, not too long.
    #[must_use]
    pub fn masked(&self, name: &str) -> String {
        let redactor = &self.parts.redactor;
        if redactor.is_idle() && name.len() <= limits::MAX_ID_CHARS {
            return name.to_owned();
        }
        let shown = redactor.redact_again(name);
        shown.chars().take(limits::MAX_ID_CHARS).collect()
    }

    async fn finish(
        &self,
        caller: &Caller,
        principal: &Principal,
        about: &About,
        mut ending: Ending,
    ) -> Finished {
        if let Ending::Failure(failure) = &mut ending {
            failure.mask(&self.parts.redactor);
        }
        let time = match &ending {
            // What is kept as the answer says so already.
            Ending::Kept(_, time) => *time,
            _ => caller.latency_ms(),
        };
        let mut end = End {
            http_status: 200,
            latency_ms: time,
            ..End::default()
        };
        let finished = match ending {
            Ending::Refused(rejection) => {
                let refused = self.refuse(caller, Some(principal), about, rejection);
                return Finished::Refused(refused.await);
            }
            Ending::Replay(answer) => {
                end.is_replay = true;
                Finished::Replay(answer)
            }
            Ending::Failure(failure) => {
                end.error_type = Some(failure.error_type.into());
                end.error = Some(failure.message.clone());
                Finished::Fresh(time, Err(failure))
            }
            Ending::Output(fields) | Ending::Kept(fields, _) => Finished::Fresh(time, Ok(fields)),
        };
        self.books.finish(caller, principal, about, &end).await;
        finished
    }
}

fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs_f64()
}
