//! The paths of the server and what they do.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use hyper::body::Incoming;
use serde_json::json;
use tower::ServiceExt;

use crate::http::app_state::{AppState, Reach};
use crate::http::connection::RequestHandler;
use crate::http::connection_state::ClientHandle;
use crate::http::headers::HeaderError;
use crate::http::problem::CallIds;
use crate::http::{bodies, headers, openapi, problem};
use crate::service::audit_record::CallDetails;
use crate::service::caller::Caller;
use crate::service::deadline::{self, DetachingFuture};
use crate::service::log::LogLine;
use crate::service::principal::Principal;
use crate::service::{CallReply, Rejection};
use karyi_core::limits;

type Shared = Arc<AppState>;

/// The route of the other protocol, whose answers may go on for ever.
const MCP: &str = "/mcp";

/// What is said of a request that broke on its way.
const BROKEN: &str = "the request could not be served";

/// Returns all routes.
pub fn router(state: Shared) -> Router {
    router_with(state, Router::new())
}

/// Returns all routes and extra ones, behind the same door.
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

/// What answers the requests of connections: the routes, and before them the one for calls, which
/// is asked for so much more often than all others that looking for it is a cost.
pub struct RouteHandler {
    state: Arc<Shared>,
    routes: Router,
}

/// Every connection has one, and counts for itself who uses it: a count that all calls share keeps
/// processors waiting for one another.
impl Clone for RouteHandler {
    fn clone(&self) -> Self {
        Self::new(Shared::clone(&self.state), self.routes.clone())
    }
}

impl RouteHandler {
    /// Makes the way to all routes; `routes` are those of [`router_with`].
    #[must_use]
    pub fn new(state: Shared, routes: Router) -> Self {
        let state = Arc::new(state);
        Self { state, routes }
    }
}

impl RequestHandler for RouteHandler {
    type Response = RouteFuture;

    fn handle(&self, request: axum::http::Request<Incoming>, client: &ClientHandle) -> RouteFuture {
        let is_call = matches!(request.uri().path(), "/api/tools/call" | "/tools/call");
        if !is_call || request.method() != Method::POST {
            let routed = self.routes.clone().oneshot(request.map(Body::new));
            return RouteFuture::Routed(Box::pin(routed));
        }
        let (state, client) = (Arc::clone(&self.state), client.clone());
        let is_gone = Arc::clone(&client.is_gone);
        let work = async move {
            let response = deadline::catch_panic(pin!(handle_call(&state, request, client))).await;
            let broken = |_| reject_unrecorded(&state, Rejection::internal(BROKEN));
            finish_response(&state, response.unwrap_or_else(broken))
        };
        // What has come whole is served and reject_recorded, also when its caller is gone by now.
        RouteFuture::Call(DetachingFuture::new(work, is_gone))
    }

    fn is_stream(&self, request: &axum::http::Request<Incoming>) -> bool {
        request.uri().path() == MCP
    }
}

/// What an answer will come from.
pub enum RouteFuture {
    /// A call.
    Call(DetachingFuture<Response<Body>>),
    /// Another route.
    Routed(Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>),
}

impl Future for RouteFuture {
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        match self.get_mut() {
            Self::Call(call) => Pin::new(call).poll(context),
            Self::Routed(routed) => routed.as_mut().poll(context).map(|Ok(response)| response),
        }
    }
}

/// Serves a call that is meant for this server.
async fn handle_call(
    state: &AppState,
    request: axum::http::Request<Incoming>,
    client: ClientHandle,
) -> Response<Body> {
    state.dispatcher.refresh_stale_secrets().await;
    match state.check_head(request.uri(), request.headers()) {
        Ok(()) => call(state, request, client).await,
        Err(rejection) => {
            let request = request.map(Body::new);
            Box::pin(reject(state, request, rejection)).await
        }
    }
}

/// Refuses what is not meant for this server, and counts every answer.
async fn check_request(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Response<Body> {
    state.dispatcher.refresh_stale_secrets().await;
    let checked = state.check_head(request.uri(), request.headers());
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(rejection) => Box::pin(reject(&state, request, rejection)).await,
    };
    finish_response(&state, response)
}

/// Says what every answer says, and counts it.
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

/// Who sent a request that is respond_rejected, as far as that is known.
#[derive(Clone, Copy)]
pub struct RequestSender<'a> {
    /// The protocol.
    pub front_end: &'static str,
    /// Who was authenticated.
    pub principal: Option<&'a Principal>,
}

impl RequestSender<'_> {
    /// Somebody who is not known yet.
    fn at(path: &str) -> Self {
        let front_end = if path == MCP { "mcp" } else { headers::HTTP };
        Self {
            front_end,
            principal: None,
        }
    }
}

/// Answers with a rejection_response; it is reject_recorded when the request says where it belongs.
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

/// Answers with a rejection_response of a request that was not read any extra.
async fn reject(state: &AppState, request: Request, rejection: Rejection) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let sender = RequestSender::at(parts.uri.path());
    let response = respond_rejected(state, &parts.headers, sender, rejection).await;
    bodies::drain_or_close(response, &parts.headers, body).await
}

/// Records a rejection_response and answers with it.
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

/// Answers with a rejection_response whose identifiers may hold values of secrets.
fn rejection_response(state: &AppState, caller: &Caller, rejection: &Rejection) -> Response<Body> {
    let caller = match rejection.status {
        // Whoever is not known must not learn from a mask that a guess was right.
        401 => Cow::Borrowed(caller),
        _ => state.dispatcher.masked_caller(caller),
    };
    let response = problem::response(rejection, Some(CallIds::of(&caller)));
    with_call_headers(response, &caller)
}

/// Answers with a rejection_response of a request that does not say where it belongs.
fn reject_unrecorded(state: &AppState, rejection: Rejection) -> Response<Body> {
    problem::response(&log_unrecorded(state, rejection), None)
}

/// Counts and logs a rejection_response that has no place in the ledger, and returns it as it may be shown.
pub fn log_unrecorded(state: &AppState, mut rejection: Rejection) -> Rejection {
    rejection.mask(state.dispatcher.redactor());
    state.dispatcher.metrics().count_unrecorded();
    state.dispatcher.log().write(&LogLine {
        event: "request_refused",
        http_status: Some(rejection.status).filter(|status| *status > 0),
        error_type: Some(rejection.error_type),
        message: Some(&rejection.detail),
        ..LogLine::default()
    });
    rejection
}

/// Counts and logs bytes that are no request, with the status of the answer if they got one.
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
    let rejection = Rejection::not_found("there is no such path; /openapi.json lists them");
    reject(&state, request, rejection).await
}

async fn method_not_allowed(State(state): State<Shared>, request: Request) -> Response<Body> {
    let allowed =
        match request.uri().path().ends_with("/list") || request.uri().path().ends_with("/call") {
            true => "POST",
            false => "GET, HEAD",
        };
    let rejection = Rejection::method_not_allowed(format!("the path is for {allowed}"));
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
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
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

/// Whether a caller may see what belongs to no tenant.
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

async fn post_call(State(state): State<Shared>, request: Request) -> Response<Body> {
    call(&state, request, ClientHandle::default()).await
}

/// Serves a call of a client, who may leave meanwhile.
async fn call<B>(
    state: &AppState,
    request: axum::http::Request<B>,
    client: ClientHandle,
) -> Response<Body>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let (parts, body) = request.into_parts();
    let (mut caller, principal) = match admitted(state, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => {
            let body = Body::new(body);
            return Box::pin(bodies::drain_or_close(*response, &parts.headers, body)).await;
        }
    };
    (caller.is_gone, caller.cancel) = (client.is_gone, Some(client.cancel));
    let call_headers = CallHeaders::of(&caller);
    let request = bodies::read(&parts, body)
        .await
        .and_then(|body| bodies::call_request(&body));
    // The room that the request was read into is free again for the next one.
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

/// Reads the headers and lets the dispatcher decide details them.
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
    // What names the call and what every answer says comes in beside it.
    response.headers_mut().reserve(limits::ANSWER_HEADERS);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

const TRACE: HeaderName = HeaderName::from_static("x-trace-id");
const SPAN: HeaderName = HeaderName::from_static("x-span-id");
const CALL: HeaderName = HeaderName::from_static("x-call-id");

/// What names a call in the headers of its answer: identifiers are always good values.
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

/// Adds what names the call.
fn with_call_headers(response: Response<Body>, caller: &Caller) -> Response<Body> {
    CallHeaders::of(caller).put(response)
}
