//! The way to the user through their client: elicitation.
//!
//! For a value the client opens a page of this machine ([`Page`]); it never sees the value. Whether
//! a secret may be used is asked with a form. Clients of the revisions with `initialize` get a
//! request; since 2026-07-28 the call is answered with what is wanted, and made again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, CustomNotification, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult,
    InputResponses, ServerNotification, ServerRequest,
};
use rmcp::service::Peer;
use serde_json::json;

use crate::exec::cancel::Cancel;
use crate::mcp::page::Page;
use crate::mcp::server::Asked;
use crate::render::paint::safe_question;
use crate::tool::context::{Boxed, Consent, Prompter, Question, Reply, Request};
use karyi_core::ids;
use karyi_core::limits;
use karyi_core::secret::SecretName;
use karyi_vault::session::{Origin, Secrets};

/// Pages that wait for a call to be made again, oldest first.
#[derive(Default)]
pub struct Pages(Mutex<Vec<Waiting>>);

/// A page that waits for its call.
struct Waiting {
    /// What the client gives back with the call.
    state: String,
    /// The name its value is for.
    name: SecretName,
    page: Page,
}

impl Pages {
    fn put(&self, waiting: Waiting) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|waiting| !waiting.page.is_over());
        // Whoever asks again and again and never answers loses the oldest page.
        if pages.len() >= limits::MAX_WAITING_PAGES {
            pages.remove(0);
        }
        pages.push(waiting);
    }

    /// Takes the page of a state out, when it was made for this name.
    fn take(&self, state: &str, name: &SecretName) -> Option<Page> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |waiting: &Waiting| waiting.state == state && waiting.name == *name;
        let at = pages.iter().position(is_it)?;
        Some(pages.remove(at).page)
    }
}

/// What the questions of all calls of a connection share.
#[derive(Default)]
pub struct ElicitationState {
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
    pages: Pages,
}

/// The questions of one call.
pub struct Questions {
    shared: Arc<ElicitationState>,
    peer: Peer<RoleServer>,
    /// What the client calls itself.
    client: String,
    can_open: bool,
    can_ask: bool,
    /// Whether the call is made again with the answers.
    is_repeated: bool,
    answers: InputResponses,
    state: Option<String>,
    secrets: Secrets,
    wanted: Mutex<Wanted>,
    /// Thrown when nobody waits for the call any more.
    cancel: Cancel,
}

#[derive(Default)]
struct Wanted {
    requests: BTreeMap<String, InputRequest>,
    state: Option<String>,
}

/// What the user said to the client.
enum Said {
    Yes,
    No,
    /// The client could not ask.
    Nothing,
}

impl Questions {
    /// Makes the way to the user for one call.
    #[must_use]
    pub fn new(
        shared: Arc<ElicitationState>,
        asked: &Asked,
        request: &mut CallToolRequestParams,
        (secrets, cancel): (&Secrets, &Cancel),
    ) -> Self {
        let offered = asked.client_capabilities();
        let offered = offered.and_then(|capabilities| capabilities.elicitation);
        let client = asked.client_info();
        let version = asked.protocol_version();
        Self {
            shared,
            peer: asked.peer.clone(),
            client: client.map_or_else(String::new, |client| client.title.unwrap_or(client.name)),
            can_open: offered.as_ref().is_some_and(|way| way.url.is_some()),
            // A client that says nothing more means forms.
            can_ask: offered
                .as_ref()
                .is_some_and(|way| way.form.is_some() || way.url.is_none()),
            is_repeated: version.is_some_and(|version| !version.has_initialize()),
            answers: request.input_responses.take().unwrap_or_default(),
            state: request.request_state.take(),
            secrets: secrets.clone(),
            wanted: Mutex::default(),
            cancel: cancel.clone(),
        }
    }

    /// Waits for an answer as long as somebody waits for the call; a page closes with it, and others
    /// may ask.
    async fn while_wanted<T>(&self, asking: impl Future<Output = T>, otherwise: T) -> T {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => otherwise,
            answer = asking => answer,
        }
    }

    /// Returns what is wanted of the client before the call can be made.
    #[must_use]
    pub fn wanted(&self) -> Option<InputRequiredResult> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = std::mem::take(&mut *wanted);
        let requests = Some(wanted.requests).filter(|requests| !requests.is_empty())?;
        Some(InputRequiredResult::new(Some(requests), wanted.state))
    }

    fn want(&self, key: String, params: ElicitRequestParams, state: Option<String>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        wanted.requests.insert(key, request);
        wanted.state = state.or(wanted.state.take());
    }

    /// Returns what the user said when the call is made again.
    fn answered(&self, key: &str) -> Option<Said> {
        let answer = self.answers.get(key)?;
        let action = serde_json::from_value::<ElicitResult>(answer.clone());
        Some(action.map_or(Said::Nothing, |answer| said(&answer.action)))
    }

    async fn elicit(&self, params: ElicitRequestParams) -> Said {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        match self.peer.send_request(request).await {
            Ok(ClientResult::ElicitResult(result)) => said(&result.action),
            Ok(_) | Err(_) => Said::Nothing,
        }
    }

    /// Asks for a value while the call waits.
    async fn ask_now(&self, question: Question) -> Reply {
        let _turn = self.shared.turn.lock().await;
        let (Ok(id), Ok(mut page)) = (ids::new_id(), self.page(question.clone()).await) else {
            return Reply::Unavailable;
        };
        let params = self.opening(&question, page.url.clone(), id.clone());
        let mut said = std::pin::pin!(self.elicit(params));
        let mut is_open = false;
        let reply = loop {
            tokio::select! {
                biased;
                reply = page.answer() => {
                    // Who answers has opened it, also when the client's word is still on its way.
                    is_open |= !matches!(reply, Reply::Timeout);
                    break reply;
                }
                said = &mut said, if !is_open => match said {
                    Said::Yes => is_open = true,
                    Said::No => break Reply::Declined,
                    Said::Nothing => break Reply::Unavailable,
                },
            }
        };
        page.close();
        if is_open {
            self.complete(id).await;
        }
        reply
    }

    /// Tells the client that the page was answered.
    async fn complete(&self, id: String) {
        let done = CustomNotification::new(
            "notifications/elicitation/complete",
            Some(json!({"elicitationId": id})),
        );
        let done = ServerNotification::CustomNotification(done);
        let sent = self.peer.send_notification(done);
        let _ = tokio::time::timeout(limits::CANCEL_GRACE, sent).await;
    }

    /// Asks for a value and lets the call be made again.
    async fn ask_later(&self, question: Question) -> Reply {
        let key = format!("value:{}", question.name.as_str());
        match (self.answered(&key), &self.state) {
            (Some(Said::Yes), Some(state)) => match self.shared.pages.take(state, &question.name) {
                Some(mut page) => {
                    let reply = page.answer().await;
                    page.close();
                    reply
                }
                None => Reply::Timeout,
            },
            (Some(Said::No), state) => {
                let page = |state: &str| self.shared.pages.take(state, &question.name);
                drop(state.as_deref().and_then(page));
                Reply::Declined
            }
            (Some(Said::Nothing), _) => Reply::Unavailable,
            (Some(Said::Yes), None) | (None, _) => {
                let (Ok(id), Ok(page)) = (ids::new_id(), self.page(question.clone()).await) else {
                    return Reply::Unavailable;
                };
                let params = self.opening(&question, page.url.clone(), id.clone());
                self.shared.pages.put(Waiting {
                    state: id.clone(),
                    name: question.name,
                    page,
                });
                self.want(key, params, Some(id));
                Reply::Unavailable
            }
        }
    }

    /// Asks whether a secret may be used.
    async fn permitted(&self, request: &Request) -> Said {
        let key = format!("allow:{}", request.name.as_str());
        match (self.can_ask, self.is_repeated) {
            (false, _) => Said::Nothing,
            (true, false) => {
                let _turn = self.shared.turn.lock().await;
                let asked = self.elicit(self.permission(request));
                let answer = tokio::time::timeout(limits::PROMPT_TIMEOUT, asked).await;
                answer.unwrap_or(Said::Nothing)
            }
            (true, true) => self.answered(&key).unwrap_or_else(|| {
                self.want(key, self.permission(request), None);
                Said::Nothing
            }),
        }
    }

    async fn page(&self, mut question: Question) -> Result<Page, karyi_core::error::ToolError> {
        // A model must not choose to overwrite what is stored.
        if self.secrets.origin(&question.name) == Some(Origin::Stored) {
            question.store = None;
        }
        Page::open(question, &self.client).await
    }

    fn opening(&self, question: &Question, url: String, id: String) -> ElicitRequestParams {
        let reason: String = safe_question(&question.reason)
            .chars()
            .take(limits::MAX_NOTE_CHARS)
            .collect();
        let name = question.name.as_str();
        ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: format!(
                "karyi asks for the value {name}: {reason}. It is typed on a page of this machine; \
                 neither this program nor the model sees it."
            ),
            url,
            elicitation_id: id,
        }
    }

    fn permission(&self, request: &Request) -> ElicitRequestParams {
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

fn said(action: &ElicitationAction) -> Said {
    match action {
        ElicitationAction::Accept => Said::Yes,
        ElicitationAction::Decline | ElicitationAction::Cancel => Said::No,
        _ => Said::Nothing,
    }
}

impl Prompter for Questions {
    fn is_there(&self) -> bool {
        self.can_open
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async {
            let asking = async {
                match (self.can_open, self.is_repeated) {
                    (false, _) => Reply::Unavailable,
                    (true, false) => self.ask_now(question.clone()).await,
                    (true, true) => self.ask_later(question.clone()).await,
                }
            };
            self.while_wanted(asking, Reply::Unavailable).await
        })
    }

    fn agree<'a>(&'a self, request: &'a Request) -> Boxed<'a, Consent> {
        Box::pin(async {
            let asking = self.permitted(request);
            let said = self.while_wanted(asking, Said::Nothing).await;
            match said {
                Said::Yes => Consent::Yes,
                Said::No => Consent::No,
                Said::Nothing => Consent::Unavailable,
            }
        })
    }
}
