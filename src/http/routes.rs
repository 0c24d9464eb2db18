//! Routes of the server.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use serde_json::json;

use crate::http::app_state::{AppState, Reach};
use crate::http::connection_state::ClientHandle;
use crate::http::headers::HeaderError;
use crate::http::problem::CallIds;
use crate::http::{bodies, headers, openapi, problem};
use crate::service::audit_record::CallDetails;
use crate::service::caller::Caller;
use crate::service::deadline::{self, DetachingFuture};
use crate::service::log::LogLine;
use crate::service::metrics;
use crate::service::principal::Principal;
use crate::service::{CallReply, Rejection};
use karyi_core::limits;

type Shared = Arc<AppState>;

/// Path of MCP, whose responses may be streams without end.
const MCP: &str = "/mcp";

/// Message for a request that panicked outside of a call.
const BROKEN: &str = "the request could not be served";

/// Returns all routes.
pub fn router(state: Shared) -> Router {
    router_with(state, Router::new())
}

/// Returns all routes and extra ones, behind the same checks.
pub fn router_with(state: Shared, extra: Router) -> Router {
    let listing = post(list).fallback(method_not_allowed);
    let calling = post(post_call).fallback(method_not_allowed);
    Router::new()
        .route("/api/tools/list", listing.clone())
        .route("/tools/list", listing)
        .route("/api/tools/call", calling.clone())
        .route("/tools/call", calling)
        .route("/healthz", get(healthz).fallback(method_not_allowed))
        .route("/readyz", get(readyz).fallback(method_not_allowed))
        .route("/metrics", get(metrics).fallback(method_not_allowed))
        .route(
            "/openapi.json",
            get(description).fallback(method_not_allowed),
        )
        .fallback(not_found)
        .with_state(Arc::clone(&state))
        .merge(extra)
        .layer(from_fn_with_state(state, check_request))
}

/// Middleware: rejects requests for other hosts or from foreign origins, and counts every response.
async fn check_request(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Response<Body> {
    state.dispatcher.refresh_stale_secrets().await;
    let checked = state.check_head(request.uri(), request.headers());
    let response = match checked {
        Ok(()) => {
            let served = deadline::catch_panic(pin!(next.run(request))).await;
            let broken = |_| reject_unrecorded(&state, Rejection::internal(BROKEN));
            served.unwrap_or_else(broken)
        }
        Err(rejection) => Box::pin(reject(&state, request, rejection)).await,
    };
    finish_response(&state, response)
}

/// Adds the headers of every response, and counts it.
fn finish_response(state: &AppState, mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    state
        .dispatcher
        .metrics()
        .count_response(response.status().as_u16());
    response
}

/// Sender of a rejected request, as far as it is known.
#[derive(Clone, Copy)]
pub struct RequestSender<'a> {
    /// Front end in the ledger.
    pub front_end: &'static str,
    /// Authenticated principal.
    pub principal: Option<&'a Principal>,
}

impl RequestSender<'_> {
    /// Returns an unauthenticated sender.
    fn at(path: &str) -> Self {
        let front_end = if path == MCP { "mcp" } else { headers::HTTP };
        Self {
            front_end,
            principal: None,
        }
    }
}

/// Responds with a rejection; the ledger records it if the headers identify the caller.
pub async fn respond_rejected(
    state: &AppState,
    headers: &HeaderMap,
    sender: RequestSender<'_>,
    rejection: Rejection,
) -> Response<Body> {
    let caller = headers::caller(headers).or_else(|header_error| header_error.caller.ok_or(()));
    match caller {
        Ok(mut caller) => {
            caller.front_end = sender.front_end;
            reject_recorded(state, &caller, sender.principal, rejection).await
        }
        Err(()) => reject_unrecorded(state, rejection),
    }
}

/// Responds with a rejection to a request whose body was not read.
async fn reject(state: &AppState, request: Request, rejection: Rejection) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let sender = RequestSender::at(parts.uri.path());
    let response = respond_rejected(state, &parts.headers, sender, rejection).await;
    bodies::drain_or_close(response, &parts.headers, body).await
}

/// Records a rejection and responds with it.
async fn reject_recorded(
    state: &AppState,
    caller: &Caller,
    principal: Option<&Principal>,
    rejection: Rejection,
) -> Response<Body> {
    let details = CallDetails::default();
    let recorded = state
        .dispatcher
        .refuse(caller, principal, &details, rejection);
    let rejection = recorded.await;
    rejection_response(state, caller, &rejection)
}

/// Responds with a rejection; masks secrets in the ids.
fn rejection_response(state: &AppState, caller: &Caller, rejection: &Rejection) -> Response<Body> {
    let caller = match rejection.status {
        // A mask would tell an unauthenticated caller that a guess was right.
        401 => Cow::Borrowed(caller),
        _ => state.dispatcher.masked_caller(caller),
    };
    let response = problem::response(rejection, Some(CallIds::of(&caller)));
    with_call_headers(response, &caller)
}

/// Responds with a rejection to a request that does not identify its caller.
fn reject_unrecorded(state: &AppState, rejection: Rejection) -> Response<Body> {
    problem::response(&log_unrecorded(state, rejection), None)
}

/// Counts and logs a rejection without a ledger record; returns it with secrets masked.
pub fn log_unrecorded(state: &AppState, mut rejection: Rejection) -> Rejection {
    rejection.mask(state.dispatcher.redactor());
    state.dispatcher.metrics().unrecorded.inc();
    state.dispatcher.log().write(&LogLine {
        event: "request_refused",
        http_status: Some(rejection.status).filter(|status| *status > 0),
        error_type: Some(rejection.error_type),
        message: Some(&rejection.detail),
        ..LogLine::default()
    });
    rejection
}

/// Counts and logs bytes that are not an HTTP request, with the status of the response if there was
/// one.
pub fn log_unparsed(state: &AppState, status: Option<u16>) {
    let Some(status) = status else {
        let detail = "the client spoke HTTP/2; the connection was closed without an answer";
        log_unrecorded(state, Rejection::malformed(detail).without_response());
        return;
    };
    state.dispatcher.metrics().count_response(status);
    let rejection_response = Rejection::malformed("the head of the request could not be read");
    log_unrecorded(
        state,
        Rejection {
            status,
            ..rejection_response
        },
    );
}

async fn not_found(State(state): State<Shared>, request: Request) -> Response<Body> {
    let rejection = Rejection::not_found("there is no such path; /openapi.json lists all paths");
    reject(&state, request, rejection).await
}

async fn method_not_allowed(State(state): State<Shared>, request: Request) -> Response<Body> {
    let allowed =
        match request.uri().path().ends_with("/list") || request.uri().path().ends_with("/call") {
            true => "POST",
            false => "GET, HEAD",
        };
    let rejection = Rejection::method_not_allowed(format!("the path supports only {allowed}"));
    let mut response = reject(&state, request, rejection).await;
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn healthz() -> Response<Body> {
    json_response(StatusCode::OK, b"{\"status\":\"ok\"}".to_vec())
}

async fn readyz(State(state): State<Shared>) -> Response<Body> {
    match state.ready().await {
        Ok(()) => json_response(StatusCode::OK, b"{\"status\":\"ready\"}".to_vec()),
        Err(why) => problem::response(&Rejection::overloaded(why).with_retry_after(1), None),
    }
}

async fn metrics(State(state): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = check_monitoring_access(&state, request.headers()) {
        return reject_unrecorded(&state, rejection);
    }
    let mut response = Response::new(Body::from(state.dispatcher.metrics().text()));
    let kind = HeaderValue::from_static(metrics::MEDIA_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn description(State(state): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = check_monitoring_access(&state, request.headers()) {
        return reject_unrecorded(&state, rejection);
    }
    let auth = openapi::AuthRequirement {
        calls: state.dispatcher.authenticator().requires_credentials(),
        monitoring: state.reach == Reach::Public,
    };
    let document = openapi::document(state.dispatcher.tools(), auth);
    json_response(StatusCode::OK, document.to_string().into_bytes())
}

/// Checks that a caller may see data of the server as a whole.
fn check_monitoring_access(state: &AppState, headers: &HeaderMap) -> Result<(), Rejection> {
    if state.reach == Reach::Loopback {
        return Ok(());
    }
    let now = jiff::Timestamp::now().as_second();
    #[allow(clippy::cast_precision_loss)]
    state
        .dispatcher
        .authenticator()
        .identify(&headers::credential(headers), now as f64)
        .map(drop)
}

async fn list(State(state): State<Shared>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (caller, principal) = match admitted(&state, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => {
            return Box::pin(bodies::drain_or_close(*response, &parts.headers, body)).await;
        }
    };
    let details = CallDetails {
        request_type: "tool_list",
        ..CallDetails::default()
    };
    let request = bodies::read(&parts, body)
        .await
        .and_then(|body| bodies::list_request(&body));
    let listed = match request {
        Ok(request) => state.dispatcher.list(&caller, &principal, &request).await,
        Err(rejection) => Err(state
            .dispatcher
            .refuse(&caller, Some(&principal), &details, rejection)
            .await),
    };
    let response = match listed {
        Ok(tools) => {
            let body = json!({"total": tools.len(), "tools": tools}).to_string();
            json_response(StatusCode::OK, body.into_bytes())
        }
        Err(rejection) => problem::response(&rejection, Some(CallIds::of(&caller))),
    };
    with_call_headers(response, &caller)
}

/// Handles a call. One that has arrived completely is served and recorded, even if its client is gone.
async fn post_call(State(state): State<Shared>, mut request: Request) -> Response<Body> {
    let client = request.extensions_mut().remove::<ClientHandle>();
    let client = client.unwrap_or_default();
    let is_gone = Arc::clone(&client.is_gone);
    let work = async move { call(&state, request, client).await };
    DetachingFuture::new(work, is_gone).await
}

/// Handles a call of a client that may disconnect meanwhile.
async fn call(state: &AppState, request: Request, client: ClientHandle) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (mut caller, principal) = match admitted(state, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => {
            return Box::pin(bodies::drain_or_close(*response, &parts.headers, body)).await;
        }
    };
    (caller.is_gone, caller.cancel) = (client.is_gone, Some(client.cancel));
    let call_headers = CallHeaders::of(&caller);
    let request = bodies::read(&parts, body)
        .await
        .and_then(|body| bodies::call_request(&body));
    // Frees the read buffer for the next request.
    drop(parts);
    let reply = match request {
        Err(rejection) => {
            let details = CallDetails::default();
            CallReply::Refused(
                state
                    .dispatcher
                    .refuse(&caller, Some(&principal), &details, rejection)
                    .await,
            )
        }
        Ok(mut request) => {
            let called = state.call_inline(&mut caller, &principal, &mut request);
            called.await
        }
    };
    let response = reply_response(reply, call_headers.call());
    call_headers.put(response)
}

fn reply_response(reply: CallReply, call: Option<CallIds<'_>>) -> Response<Body> {
    match reply {
        CallReply::Fresh(envelope) => match envelope.to_json() {
            Ok(body) => json_response(StatusCode::OK, body),
            Err(error) => problem::response(&Rejection::internal(error.to_string()), call),
        },
        CallReply::Replay(body) => {
            let mut response = json_response(StatusCode::OK, body);
            response
                .headers_mut()
                .insert("idempotency-replayed", HeaderValue::from_static("true"));
            response
        }
        CallReply::Refused(rejection) => problem::response(&rejection, call),
    }
}

/// Reads the headers and asks the dispatcher for admission.
async fn admitted<'f>(
    state: &'f AppState,
    parts: &Parts,
) -> Result<(Caller, Cow<'f, Principal>), Box<Response<Body>>> {
    let caller = match headers::caller(&parts.headers) {
        Ok(caller) => caller,
        Err(header_error) => {
            let HeaderError { rejection, caller } = *header_error;
            return Err(Box::new(match caller {
                Some(caller) => Box::pin(reject_recorded(state, &caller, None, rejection)).await,
                None => reject_unrecorded(state, rejection),
            }));
        }
    };
    let credential = headers::credential(&parts.headers);
    match state.dispatcher.admit(&caller, &credential).await {
        Ok(principal) => Ok((caller, principal)),
        Err(rejection) => Err(Box::new(rejection_response(state, &caller, &rejection))),
    }
}

fn json_response(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    // Space for the headers that are added later.
    response.headers_mut().reserve(limits::ANSWER_HEADERS);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

const TRACE: HeaderName = HeaderName::from_static("x-trace-id");
const SPAN: HeaderName = HeaderName::from_static("x-span-id");
const CALL: HeaderName = HeaderName::from_static("x-call-id");

/// Response headers with the ids of the call. Valid ids are always valid header values.
struct CallHeaders([(HeaderName, Option<HeaderValue>); 3]);

impl CallHeaders {
    fn of(caller: &Caller) -> Self {
        let value = |text: &str| HeaderValue::from_str(text).ok();
        Self([
            (TRACE, value(&caller.trace_id)),
            (SPAN, value(&caller.span_id)),
            (CALL, value(&caller.call_id)),
        ])
    }

    fn call(&self) -> Option<CallIds<'_>> {
        let [(_, trace_id), _, (_, call_id)] = &self.0;
        Some(CallIds {
            trace_id: trace_id.as_ref()?.to_str().ok()?,
            call_id: call_id.as_ref()?.to_str().ok()?,
        })
    }

    fn put(self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        for (name, value) in self.0 {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Adds the ids of the call.
fn with_call_headers(response: Response<Body>, caller: &Caller) -> Response<Body> {
    CallHeaders::of(caller).put(response)
}
