//! One call while it is served: may it be made, does its input fit, was it made before, run.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::service::books::Books;
use crate::service::caller::Caller;
use crate::service::canonical::PayloadHash;
use crate::service::contexts::Contexts;
use crate::service::envelope::{Envelope, Failure};
use crate::service::fields::{self, Problem};
use crate::service::log::Line;
use crate::service::offer::Offered;
use crate::service::parts::Parts;
use crate::service::principal::{self, Principal, Proof};
use crate::service::rates::{self, Limiter};
use crate::service::recording::{About, End};
use crate::service::rejection::Rejection;
use crate::service::running::{self, Running};
use crate::tool::service::{Access, Audience};
use crate::tool::site::Sight;
use crate::tool::{FieldText, SiteAccess, fit};
use crate::tools::Call;
use karyi_core::limits;
use karyi_store::StoreError;
use karyi_store::site::{Claim, RepeatKey, Scope};

/// How serving a call ended.
pub(super) enum Ending {
    /// Its tool gave a result.
    Output(FieldText),
    /// It did, and the answer is kept, which says that it took so many milliseconds.
    Kept(FieldText, u64),
    /// Its tool gave none.
    Failure(Failure),
    /// It was made before; this was the answer.
    Replay(Vec<u8>),
    /// It did not reach its tool.
    Refused(Rejection),
}

impl From<Rejection> for Ending {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

/// One call while it is served.
pub(super) struct Serving<'a> {
    /// What serves it.
    pub(super) parts: &'a Parts,
    /// What is written of it.
    pub(super) books: &'a Books,
    /// What tools of sites work with.
    pub(super) contexts: &'a Contexts,
    /// How often a tool may be called.
    pub(super) buckets: Option<&'a Limiter>,
    /// Where it comes from.
    pub(super) caller: &'a Caller,
    /// Who makes it.
    pub(super) principal: &'a Principal,
    /// The tool.
    pub(super) tool: &'a Offered,
    /// What is told of it.
    pub(super) about: &'a About,
    /// The hash of its input.
    pub(super) hash: &'a PayloadHash,
}

impl Serving<'_> {
    /// Serves it: `Err` when it did not come to its tool or broke it.
    pub(super) async fn serve(&self, input: Value) -> Result<Ending, Ending> {
        self.permit()?;
        let names = [
            &*self.principal.id,
            &self.caller.tenant_id,
            self.tool.name(),
        ];
        rates::take(self.buckets, &names.join("\n"), "of this tool")?;
        let call = self.read(input)?;
        let scope = self.scope();
        match self.repeat_key() {
            None => Ok(ending(self.run(call, &scope).await?)),
            Some(key) => Box::pin(self.once(call, &scope, key)).await,
        }
    }

    /// Whether the caller may call this tool.
    fn permit(&self) -> Result<(), Ending> {
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
            .scopes
            .iter()
            .find(|scope| !self.principal.may(scope));
        match missing {
            Some(scope) => Err(Rejection::forbidden(format!("the scope {scope} is needed")).into()),
            None => Ok(()),
        }
    }

    fn read(&self, mut input: Value) -> Result<Call, Ending> {
        if self.tool.takes_paths {
            fit::spread_paths(&mut input, self.tool.entry.schema.annotated());
        }
        let problems = self.tool.check.problems(&mut input);
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
            fingerprint: self.hash.whole(),
        })
    }

    /// Runs a call, unless it was made before.
    async fn once(&self, call: Call, scope: &Scope, key: RepeatKey) -> Result<Ending, Ending> {
        let sites = &self.parts.sites;
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
        match result {
            Ok(Ok(fields)) => {
                let (mut caller, about) = (self.caller.clone(), self.about.clone());
                let time = caller.latency_ms();
                let answer = Envelope::of(&mut caller, about, time, Ok(fields.clone()));
                let answer = answer.to_json().unwrap_or_default();
                // Without its answer the key stays taken: repeating the call would do it again.
                let kept = sites.answer(&later, key, answer).await;
                self.tell_of_key("answer_not_kept", kept);
                // Repeated it is the same to the letter.
                Ok(Ending::Kept(fields, time))
            }
            // It may have taken effect, or may yet.
            Ok(Err(failure)) if self.may_have_effect(&failure) => Ok(ending(Err(failure))),
            other => {
                let released = sites.release(&later, key).await;
                self.tell_of_key("key_not_released", released);
                Ok(ending(other?))
            }
        }
    }

    /// Whether what was asked may be done all the same. A write of a site is undone when it comes
    /// back without success; one that was not waited for may still be committed.
    fn may_have_effect(&self, failure: &Failure) -> bool {
        failure.is_given_up
            || ((failure.is_open() || failure.is_internal()) && !self.tool.is_of_site())
    }

    /// Tells in the log that a key could not be kept as it should be.
    fn tell_of_key(&self, event: &str, result: Result<(), StoreError>) {
        let Err(error) = result else { return };
        self.books.log().write(&Line {
            event,
            trace_id: Some(&self.caller.trace_id),
            tool_name: Some(self.tool.name()),
            call_id: Some(&self.caller.call_id),
            message: Some(&error.to_string()),
            ..Line::default()
        });
    }

    /// Runs a call whose input is good: `Err` when it did not reach the tool.
    async fn run(&self, call: Call, scope: &Scope) -> Result<Result<FieldText, Failure>, Ending> {
        let access = self.tool.entry.service.access;
        if access == Access::Write {
            let (caller, principal) = (self.caller, self.principal);
            Box::pin(self.books.intend(caller, principal, self.about)).await?;
        }
        self.books
            .tell("tool_call_start", self.caller, self.about, &End::default());
        let running = self.running(call, scope);
        match running::until(scope.deadline, access, running).await {
            Ok(fields) => Ok(self.masked(fields)),
            Err(failed) => Ok(Err(failed.into())),
        }
    }

    /// Masks what a tool of a site repeats of its input; others have masked their results.
    fn masked(&self, fields: FieldText) -> Result<FieldText, Failure> {
        let redactor = &self.parts.redactor;
        if redactor.is_idle() || !self.tool.is_of_site() {
            return Ok(fields);
        }
        let mut value = fields.to_value();
        redactor.redact_json_again(&mut value);
        Ok(FieldText::written(&value)?)
    }

    fn running(&self, call: Call, scope: &Scope) -> Running<'_> {
        let parts = self.parts;
        if !self.tool.is_of_site()
            && let Some(local) = &parts.local
        {
            let session = self.caller.shell_session.as_ref();
            // A name alone is no proof: the shell belongs to who calls, too.
            let owner = session
                .filter(|_| self.principal.proof == Proof::Authenticated)
                .map(|session| format!("{}\n{session}", self.principal.id));
            let running = local.run(call, scope.deadline, owner, self.caller.printed.clone());
            return match &self.caller.cancel {
                Some(cancel) => running::unless(cancel.clone(), running),
                None => running,
            };
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
        let contexts = self.contexts;
        Box::pin(async move {
            let context = contexts.of(site);
            let result = call.run(&context).await;
            contexts.give_back(context);
            Ok(result?.output)
        })
    }
}

fn ending(result: Result<FieldText, Failure>) -> Ending {
    match result {
        Ok(fields) => Ending::Output(fields),
        Err(failure) if failure.is_internal() => Rejection::internal(failure.message).into(),
        Err(failure) => Ending::Failure(failure),
    }
}

fn failed(error: StoreError) -> Ending {
    Ending::Failure(Failure::from(karyi_core::error::ToolError::from(error)))
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
