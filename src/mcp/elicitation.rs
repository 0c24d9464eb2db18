//! Asks the user through the MCP client (elicitation).
//!
//! For a value, the client opens a page on this machine ([`SecretForm`]) and never sees the value.
//! Permission to use a secret is asked with a form in the client. Clients with `initialize` get a
//! request; since revision 2026-07-28 the call returns the questions, and the client repeats it
//! with the answers.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, CustomNotification, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult,
    InputResponses, ServerNotification, ServerRequest,
};
use rmcp::service::Peer;
use serde_json::json;

use crate::approval::{Approver, CallAnswer, CallQuestion};
use crate::exec::cancel::Cancel;
use crate::mcp::secret_form::SecretForm;
use crate::mcp::server::McpContext;
use crate::render::paint::safe_question;
use crate::tool::context::{ApprovalRequest, Boxed, Consent, Prompter, Question, Reply};
use karyi_core::ids;
use karyi_core::limits;
use karyi_core::secret::SecretName;
use karyi_vault::session::{Origin, Secrets};

/// Pages that wait for their call to be repeated, oldest first.
#[derive(Default)]
pub struct PendingForms(Mutex<Vec<PendingForm>>);

/// Page that waits for its call to be repeated.
struct PendingForm {
    /// Request state, which the client returns with the repeated call.
    state: String,
    /// Name of the requested secret.
    name: SecretName,
    form: SecretForm,
}

impl PendingForms {
    fn put(&self, pending: PendingForm) {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forms.retain(|pending| !pending.form.is_over());
        // A client that asks repeatedly without answering loses its oldest page.
        if forms.len() >= limits::MAX_WAITING_PAGES {
            forms.remove(0);
        }
        forms.push(pending);
    }

    /// Takes the page for this state and name.
    fn take(&self, state: &str, name: &SecretName) -> Option<SecretForm> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |pending: &PendingForm| pending.state == state && pending.name == *name;
        let at = forms.iter().position(is_it)?;
        Some(forms.remove(at).form)
    }
}

/// State shared by all calls of a connection.
#[derive(Default)]
pub struct ElicitationState {
    /// Lock: one question at a time.
    turn: tokio::sync::Mutex<()>,
    forms: PendingForms,
}

/// Prompter of one call.
pub struct ElicitationPrompter {
    shared: Arc<ElicitationState>,
    peer: Peer<RoleServer>,
    /// Name of the client.
    client: String,
    can_open: bool,
    can_ask: bool,
    /// True if the client repeats calls with answers.
    is_repeated: bool,
    answers: InputResponses,
    state: Option<String>,
    secrets: Secrets,
    inputs: Mutex<InputRequests>,
    /// Cancelled when the call is no longer awaited.
    cancel: Cancel,
}

#[derive(Default)]
struct InputRequests {
    requests: BTreeMap<String, InputRequest>,
    state: Option<String>,
}

/// Answer of the user, as the client reports it.
enum UserAnswer {
    Yes,
    No,
    /// The client could not ask.
    Unavailable,
}

impl ElicitationPrompter {
    /// Creates the prompter of a call.
    #[must_use]
    pub fn new(
        shared: Arc<ElicitationState>,
        context: &McpContext,
        request: &mut CallToolRequestParams,
        (secrets, cancel): (&Secrets, &Cancel),
    ) -> Self {
        let mode = context.client_capabilities();
        let mode = mode.and_then(|capabilities| capabilities.elicitation);
        let client = context.client_info();
        let version = context.protocol_version();
        Self {
            shared,
            peer: context.peer.clone(),
            client: client.map_or_else(String::new, |client| client.title.unwrap_or(client.name)),
            can_open: mode.as_ref().is_some_and(|mode| mode.url.is_some()),
            // A client that declares no mode supports forms.
            can_ask: mode
                .as_ref()
                .is_some_and(|mode| mode.form.is_some() || mode.url.is_none()),
            is_repeated: version.is_some_and(|version| !version.has_initialize()),
            answers: request.input_responses.take().unwrap_or_default(),
            state: request.request_state.take(),
            secrets: secrets.clone(),
            inputs: Mutex::default(),
            cancel: cancel.clone(),
        }
    }

    /// Waits for an answer until the call is cancelled; then the page closes and other calls may
    /// ask.
    async fn until_cancelled<T>(&self, answer: impl Future<Output = T>, otherwise: T) -> T {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => otherwise,
            answer = answer => answer,
        }
    }

    /// Returns the questions that the client must answer before it repeats the call.
    #[must_use]
    pub fn input_required(&self) -> Option<InputRequiredResult> {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = std::mem::take(&mut *inputs);
        let requests = Some(inputs.requests).filter(|requests| !requests.is_empty())?;
        Some(InputRequiredResult::new(Some(requests), inputs.state))
    }

    fn require_input(&self, key: String, params: ElicitRequestParams, state: Option<String>) {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        inputs.requests.insert(key, request);
        inputs.state = state.or(inputs.state.take());
    }

    /// Returns the user's answer from a repeated call.
    fn stored_answer(&self, key: &str) -> Option<UserAnswer> {
        let answer = self.answers.get(key)?;
        let action = serde_json::from_value::<ElicitResult>(answer.clone());
        Some(action.map_or(UserAnswer::Unavailable, |answer| {
            user_answer(&answer.action)
        }))
    }

    async fn elicit(&self, params: ElicitRequestParams) -> UserAnswer {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        match self.peer.send_request(request).await {
            Ok(ClientResult::ElicitResult(result)) => user_answer(&result.action),
            Ok(_) | Err(_) => UserAnswer::Unavailable,
        }
    }

    /// Asks for a value while the call waits.
    async fn ask_now(&self, question: Question) -> Reply {
        let _turn = self.shared.turn.lock().await;
        let (Ok(id), Ok(mut form)) = (ids::new_id(), self.open_form(question.clone()).await) else {
            return Reply::Unavailable;
        };
        let params = self.open_form_params(&question, form.url.clone(), id.clone());
        let mut answer = std::pin::pin!(self.elicit(params));
        let mut is_open = false;
        let reply = loop {
            tokio::select! {
                biased;
                reply = form.answer() => {
                    // A user who answers has opened the page, even if the client's response is
                    // still on its way.
                    is_open |= !matches!(reply, Reply::Timeout);
                    break reply;
                }
                answer = &mut answer, if !is_open => match answer {
                    UserAnswer::Yes => is_open = true,
                    UserAnswer::No => break Reply::Declined,
                    UserAnswer::Unavailable => break Reply::Unavailable,
                },
            }
        };
        form.close();
        if is_open {
            self.complete(id).await;
        }
        reply
    }

    /// Notifies the client that the page is complete.
    async fn complete(&self, id: String) {
        let done = CustomNotification::new(
            "notifications/elicitation/complete",
            Some(json!({"elicitationId": id})),
        );
        let done = ServerNotification::CustomNotification(done);
        let sent = self.peer.send_notification(done);
        let _ = tokio::time::timeout(limits::CANCEL_GRACE, sent).await;
    }

    /// Asks for a value with the repeated call.
    async fn ask_later(&self, question: Question) -> Reply {
        let key = format!("value:{}", question.name.as_str());
        match (self.stored_answer(&key), &self.state) {
            (Some(UserAnswer::Yes), Some(state)) => {
                match self.shared.forms.take(state, &question.name) {
                    Some(mut form) => {
                        let reply = form.answer().await;
                        form.close();
                        reply
                    }
                    None => Reply::Timeout,
                }
            }
            (Some(UserAnswer::No), state) => {
                let form = |state: &str| self.shared.forms.take(state, &question.name);
                drop(state.as_deref().and_then(form));
                Reply::Declined
            }
            (Some(UserAnswer::Unavailable), _) => Reply::Unavailable,
            (Some(UserAnswer::Yes), None) | (None, _) => {
                let (Ok(id), Ok(form)) = (ids::new_id(), self.open_form(question.clone()).await)
                else {
                    return Reply::Unavailable;
                };
                let params = self.open_form_params(&question, form.url.clone(), id.clone());
                self.shared.forms.put(PendingForm {
                    state: id.clone(),
                    name: question.name,
                    form,
                });
                self.require_input(key, params, Some(id));
                Reply::Unavailable
            }
        }
    }

    /// Asks for permission to use a secret.
    async fn ask_permission(&self, request: &ApprovalRequest) -> UserAnswer {
        let key = format!("allow:{}", request.name.as_str());
        match (self.can_ask, self.is_repeated) {
            (false, _) => UserAnswer::Unavailable,
            (true, false) => {
                let _turn = self.shared.turn.lock().await;
                let answer = self.elicit(self.permission_params(request));
                let answer = tokio::time::timeout(limits::PROMPT_TIMEOUT, answer).await;
                answer.unwrap_or(UserAnswer::Unavailable)
            }
            (true, true) => self.stored_answer(&key).unwrap_or_else(|| {
                self.require_input(key, self.permission_params(request), None);
                UserAnswer::Unavailable
            }),
        }
    }

    /// Asks whether a call may run.
    async fn ask_call(&self, call: &CallQuestion) -> Option<CallAnswer> {
        let (key, params) = (call_key(call), call_params(call));
        let answer = match self.is_repeated {
            false => {
                let _turn = self.shared.turn.lock().await;
                let answer =
                    tokio::time::timeout(limits::PROMPT_TIMEOUT, self.elicit(params)).await;
                answer.unwrap_or(UserAnswer::Unavailable)
            }
            true => self.stored_answer(&key).unwrap_or_else(|| {
                self.require_input(key, params, None);
                UserAnswer::Unavailable
            }),
        };
        match answer {
            UserAnswer::Yes => Some(CallAnswer::Yes),
            UserAnswer::No => Some(CallAnswer::No(String::new())),
            UserAnswer::Unavailable => None,
        }
    }

    async fn open_form(
        &self,
        mut question: Question,
    ) -> Result<SecretForm, karyi_core::error::ToolError> {
        // A model must not choose to overwrite a stored value.
        if self.secrets.origin(&question.name) == Some(Origin::Stored) {
            question.store = None;
        }
        SecretForm::open(question, &self.client).await
    }

    fn open_form_params(
        &self,
        question: &Question,
        url: String,
        id: String,
    ) -> ElicitRequestParams {
        let reason: String = safe_question(&question.reason)
            .chars()
            .take(limits::MAX_NOTE_CHARS)
            .collect();
        let name = question.name.as_str();
        ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: format!(
                "karyi asks for the value {name}: {reason}. You enter it on a page on this machine; \
                 neither this program nor the model sees it."
            ),
            url,
            elicitation_id: id,
        }
    }

    fn permission_params(&self, request: &ApprovalRequest) -> ElicitRequestParams {
        let text: String = safe_question(&request.text)
            .chars()
            .take(limits::MAX_NOTE_CHARS)
            .collect();
        let facts = request.facts();
        let facts = facts.iter().map(|fact| {
            let fact: String = safe_question(fact)
                .chars()
                .take(limits::MAX_REASON_CHARS)
                .collect();
            format!("\n{fact}")
        });
        let facts: String = facts.collect();
        let (name, tool) = (request.name.as_str(), request.tool);
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("May {tool} use the secret {name} here? {text}{facts}"),
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        }
    }
}

/// Returns the key of the question whether a call may run: the answer counts for this text alone.
fn call_key(call: &CallQuestion) -> String {
    let mut hasher = DefaultHasher::new();
    (call.tool, &call.text, call.facts()).hash(&mut hasher);
    format!("call:{:x}", hasher.finish())
}

/// Returns the form that asks whether a call may run.
fn call_params(call: &CallQuestion) -> ElicitRequestParams {
    let whole = |text: &str| {
        let text = safe_question(text);
        let mut chars = text.chars();
        let shown: String = chars.by_ref().take(limits::MAX_QUESTION_CHARS).collect();
        match chars.count() {
            0 => shown,
            rest => format!("{shown} ... and {rest} more characters"),
        }
    };
    let facts = call.facts();
    let facts = facts.iter().map(|fact| format!("\n{}", whole(fact)));
    let (tool, text) = (call.tool, whole(&call.text));
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("May {tool} run this? {text}{}", facts.collect::<String>()),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    }
}

fn user_answer(action: &ElicitationAction) -> UserAnswer {
    match action {
        ElicitationAction::Accept => UserAnswer::Yes,
        ElicitationAction::Decline | ElicitationAction::Cancel => UserAnswer::No,
        _ => UserAnswer::Unavailable,
    }
}

impl Approver for ElicitationPrompter {
    fn is_available(&self) -> bool {
        self.can_ask
    }

    fn approve<'a>(&'a self, calls: &'a [CallQuestion]) -> Boxed<'a, Option<Vec<CallAnswer>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for call in calls {
                answers.push(self.until_cancelled(self.ask_call(call), None).await?);
            }
            Some(answers)
        })
    }
}

impl Prompter for ElicitationPrompter {
    fn is_available(&self) -> bool {
        self.can_open
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async {
            let answer = async {
                match (self.can_open, self.is_repeated) {
                    (false, _) => Reply::Unavailable,
                    (true, false) => self.ask_now(question.clone()).await,
                    (true, true) => self.ask_later(question.clone()).await,
                }
            };
            self.until_cancelled(answer, Reply::Unavailable).await
        })
    }

    fn approve<'a>(&'a self, request: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        Box::pin(async {
            let answer = self.ask_permission(request);
            let answer = self.until_cancelled(answer, UserAnswer::Unavailable).await;
            match answer {
                UserAnswer::Yes => Consent::Yes,
                UserAnswer::No => Consent::No,
                UserAnswer::Unavailable => Consent::Unavailable,
            }
        })
    }
}
