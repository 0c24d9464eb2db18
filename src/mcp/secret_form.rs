//! Local web page on which the user enters one secret, once.
//!
//! The value goes from the browser to this process only: neither the client nor the model sees it.
//! The page has a random path, is shown once and accepts one answer.

mod body;
mod html;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::connection::ConnectionTimeouts;
use crate::http::listen::{self, ListenerTasks, ParseErrorHook};
use crate::tool::context::{Question, Reply};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::ids;
use karyi_core::limits;

/// Page that waits for its answer; it closes when this is dropped.
pub struct SecretForm {
    /// URL of the page.
    pub url: String,
    answer: oneshot::Receiver<Reply>,
    serving: JoinHandle<()>,
}

impl Drop for SecretForm {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Content and state of the page.
struct FormState {
    question: Question,
    client: String,
    port: u16,
    path: String,
    csrf: String,
    stage: Mutex<FormStage>,
}

/// Stage of the page.
enum FormStage {
    /// Not shown yet.
    New(oneshot::Sender<Reply>),
    /// Shown.
    Shown(oneshot::Sender<Reply>),
    /// Answered.
    Done,
}

impl SecretForm {
    /// Opens a page for a question of a client.
    ///
    /// # Errors
    /// No port on the loopback is free, or the system has no random bytes.
    pub async fn open(question: Question, client: &str) -> Result<Self, ToolError> {
        let broken = |error: &dyn std::fmt::Display| {
            let message = format!("the page for the value cannot be opened: {error}");
            ToolError::new(ErrorCode::SecretPromptUnavailable, message)
        };
        let token = || ids::random::<16>().map(|bytes| ids::hex(&bytes));
        let (token, csrf) = (
            token().map_err(|error| broken(&error))?,
            token().map_err(|error| broken(&error))?,
        );
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listeners = listen::bind(&[address])
            .await
            .map_err(|error| broken(&error))?;
        let bound = listeners.first().map(tokio::net::TcpListener::local_addr);
        let port = match bound {
            Some(Ok(bound)) => bound.port(),
            Some(Err(error)) => return Err(broken(&error)),
            None => return Err(broken(&"no socket")),
        };
        let (sender, answer) = oneshot::channel();
        let path = format!("/{token}");
        let state = Arc::new(FormState {
            question,
            client: client.to_owned(),
            port,
            path: path.clone(),
            csrf,
            stage: Mutex::new(FormStage::New(sender)),
        });
        let router = Router::new().fallback(answer_request).with_state(state);
        let ignore_error: ParseErrorHook = Arc::new(|_| ());
        let listening = ListenerTasks::start(
            listeners,
            &router,
            None,
            &ignore_error,
            ConnectionTimeouts::default(),
        );
        let serving = tokio::spawn(async move {
            tokio::time::sleep(limits::PROMPT_TIMEOUT + limits::PAGE_GRACE).await;
            drop(listening);
        });
        Ok(Self {
            url: format!("http://127.0.0.1:{port}{path}"),
            answer,
            serving,
        })
    }

    /// Tells whether the page has expired.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.serving.is_finished()
    }

    /// Waits for the answer.
    pub async fn answer(&mut self) -> Reply {
        match tokio::time::timeout(limits::PROMPT_TIMEOUT, &mut self.answer).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => Reply::Timeout,
        }
    }

    /// Closes the page after a delay, so that the browser can load the final notice.
    pub fn close(self) {
        tokio::spawn(async move {
            tokio::time::sleep(limits::PAGE_GRACE).await;
            drop(self);
        });
    }
}

/// Handles a request for the page.
async fn answer_request(State(state): State<Arc<FormState>>, request: Request) -> Response<Body> {
    if let Err(status) = state.check(request.uri().path(), request.headers()) {
        return page(status, html::notice("There is no such page."));
    }
    match *request.method() {
        Method::GET => state.show(),
        Method::POST => state.take(request).await,
        _ => page(
            StatusCode::METHOD_NOT_ALLOWED,
            html::notice("This page supports only GET and POST."),
        ),
    }
}

impl FormState {
    /// Checks that a request is for this page and does not come from another site.
    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        let host = format!("127.0.0.1:{}", self.port);
        let origin = format!("http://{host}");
        let is = |name, expected: &str| {
            let mut all = headers.get_all(name).iter();
            all.all(|value| value.as_bytes() == expected.as_bytes())
        };
        let has_host = headers.contains_key(header::HOST) && is(header::HOST, &host);
        if !has_host || !is(header::ORIGIN, &origin) {
            return Err(StatusCode::FORBIDDEN);
        }
        match path == self.path {
            true => Ok(()),
            false => Err(StatusCode::NOT_FOUND),
        }
    }

    fn show(&self) -> Response<Body> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, FormStage::Done) {
            FormStage::New(sender) => {
                *stage = FormStage::Shown(sender);
                page(
                    StatusCode::OK,
                    html::question(&self.question, &self.client, &self.csrf),
                )
            }
            other => {
                *stage = other;
                already_used()
            }
        }
    }

    /// Allows the page to be shown once more.
    fn show_again(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        *stage = match std::mem::replace(&mut *stage, FormStage::Done) {
            FormStage::Shown(sender) => FormStage::New(sender),
            other => other,
        };
    }

    async fn take(&self, request: Request) -> Response<Body> {
        let limited = Limited::new(request.into_body(), limits::MAX_PAGE_BODY_BYTES);
        let read = tokio::time::timeout(limits::BODY_TIMEOUT, limited.collect()).await;
        let Ok(Ok(body)) = read else {
            let words = "The answer was incomplete or too long.";
            return page(StatusCode::BAD_REQUEST, html::notice(words));
        };
        let answer = body::read(&body.to_bytes(), &self.csrf, self.question.store.is_some());
        let reply = match answer {
            Ok(reply) => reply,
            Err(problem) => {
                self.show_again();
                return page(StatusCode::BAD_REQUEST, html::notice(problem));
            }
        };
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, FormStage::Done) {
            // A client that knows the CSRF token has seen the form.
            FormStage::New(sender) | FormStage::Shown(sender) => {
                let words = match reply {
                    Reply::Value(..) => "karyi has the value. You can close this page.",
                    _ => "karyi did not get the value. You can close this page.",
                };
                let _ = sender.send(reply);
                page(StatusCode::OK, html::notice(words))
            }
            other => {
                *stage = other;
                already_used()
            }
        }
    }
}

fn already_used() -> Response<Body> {
    let words = "This page has already been used. Repeat the call to get a new one.";
    page(StatusCode::GONE, html::notice(words))
}

fn page(status: StatusCode, html: String) -> Response<Body> {
    const HEADERS: [(header::HeaderName, &str); 6] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        (header::CACHE_CONTROL, "no-store"),
        // With `no-referrer`, browsers send the origin `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONNECTION, "close"),
    ];
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
