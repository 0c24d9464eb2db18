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

use crate::http::connection::App;
use crate::http::front::{Front, Reach};
use crate::http::headers::Misread;
use crate::http::problem::Refused;
use crate::http::wire::Peer;
use crate::http::{bodies, headers, openapi, problem};
use crate::service::audit_record::CallDetails;
use crate::service::caller::Caller;
use crate::service::deadline::{self, DetachingFuture};
use crate::service::log::LogLine;
use crate::service::principal::Principal;
use crate::service::{CallReply, Rejection};
use karyi_core::limits;

type Shared = Arc<Front>;

/// The route of the other protocol, whose answers may go on for ever.
const MCP: &str = "/mcp";

/// What is said of a request that broke on its way.
const BROKEN: &str = "the request could not be served";

/// Returns all routes.
pub fn router(front: Shared) -> Router {
    router_with(front, Router::new())
}

/// Returns all routes and further ones, behind the same door.
pub fn router_with(front: Shared, further: Router) -> Router {
    let listing = post(list).fallback(wrong_method);
    let calling = post(posted).fallback(wrong_method);
    Router::new()
        .route("/api/tools/list", listing.clone())
        .route("/tools/list", listing)
        .route("/api/tools/call", calling.clone())
        .route("/tools/call", calling)
        .route("/healthz", get(alive).fallback(wrong_method))
        .route("/readyz", get(ready).fallback(wrong_method))
        .route("/metrics", get(metrics).fallback(wrong_method))
        .route("/openapi.json", get(description).fallback(wrong_method))
        .fallback(no_path)
        .with_state(Arc::clone(&front))
        .merge(further)
        .layer(from_fn_with_state(front, at_the_door))
}

/// What answers the requests of connections: the routes, and before them the one for calls, which
/// is asked for so much more often than all others that looking for it is a cost.
pub struct Entrance {
    front: Arc<Shared>,
    routes: Router,
}

/// Every connection has one, and counts for itself who uses it: a count that all calls share keeps
/// processors waiting for one another.
impl Clone for Entrance {
    fn clone(&self) -> Self {
        Self::new(Shared::clone(&self.front), self.routes.clone())
    }
}

impl Entrance {
    /// Makes the way to all routes; `routes` are those of [`router_with`].
    #[must_use]
    pub fn new(front: Shared, routes: Router) -> Self {
        let front = Arc::new(front);
        Self { front, routes }
    }
}

impl App for Entrance {
    type Answering = Answering;

    fn answer(&self, request: axum::http::Request<Incoming>, peer: &Peer) -> Answering {
        let is_call = matches!(request.uri().path(), "/api/tools/call" | "/tools/call");
        if !is_call || request.method() != Method::POST {
            let routed = self.routes.clone().oneshot(request.map(Body::new));
            return Answering::Routed(Box::pin(routed));
        }
        let (front, peer) = (Arc::clone(&self.front), peer.clone());
        let is_gone = Arc::clone(&peer.is_gone);
        let work = async move {
            let response = deadline::catch_panic(pin!(answered(&front, request, peer))).await;
            let broken = |_| unrecorded(&front, Rejection::internal(BROKEN));
            let_out(&front, response.unwrap_or_else(broken))
        };
        // What has come whole is served and recorded, also when its caller is gone by now.
        Answering::Call(DetachingFuture::new(work, is_gone))
    }

    fn is_stream(&self, request: &axum::http::Request<Incoming>) -> bool {
        request.uri().path() == MCP
    }
}

/// What an answer will come from.
pub enum Answering {
    /// A call.
    Call(DetachingFuture<Response<Body>>),
    /// Another route.
    Routed(Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>),
}

impl Future for Answering {
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        match self.get_mut() {
            Self::Call(call) => Pin::new(call).poll(context),
            Self::Routed(routed) => routed.as_mut().poll(context).map(|Ok(response)| response),
        }
    }
}

/// Serves a call that is meant for this server.
async fn answered(
    front: &Front,
    request: axum::http::Request<Incoming>,
    peer: Peer,
) -> Response<Body> {
    front.dispatcher.refresh_stale_secrets().await;
    match front.check_head(request.uri(), request.headers()) {
        Ok(()) => call(front, request, peer).await,
        Err(rejection) => {
            let request = request.map(Body::new);
            Box::pin(turned_away(front, request, rejection)).await
        }
    }
}

/// Refuses what is not meant for this server, and counts every answer.
async fn at_the_door(State(front): State<Shared>, request: Request, next: Next) -> Response<Body> {
    front.dispatcher.refresh_stale_secrets().await;
    let checked = front.check_head(request.uri(), request.headers());
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(rejection) => Box::pin(turned_away(&front, request, rejection)).await,
    };
    let_out(&front, response)
}

/// Says what every answer says, and counts it.
fn let_out(front: &Front, mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    front
        .dispatcher
        .metrics()
        .count_response(response.status().as_u16());
    response
}

/// Who sent a request that is refused, as far as that is known.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    /// The protocol.
    pub front_end: &'static str,
    /// Who was authenticated.
    pub principal: Option<&'a Principal>,
}

impl Sender<'_> {
    /// Somebody who is not known yet.
    fn at(path: &str) -> Self {
        let front_end = if path == MCP { "mcp" } else { headers::HTTP };
        Self {
            front_end,
            principal: None,
        }
    }
}

/// Answers with a refusal; it is recorded when the request says where it belongs.
pub async fn refused(
    front: &Front,
    headers: &HeaderMap,
    sender: Sender<'_>,
    rejection: Rejection,
) -> Response<Body> {
    let caller = headers::caller(headers).or_else(|misread| misread.caller.ok_or(()));
    match caller {
        Ok(mut caller) => {
            caller.front_end = sender.front_end;
            recorded(front, &caller, sender.principal, rejection).await
        }
        Err(()) => unrecorded(front, rejection),
    }
}

/// Answers with a refusal of a request that was not read any further.
async fn turned_away(front: &Front, request: Request, rejection: Rejection) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let sender = Sender::at(parts.uri.path());
    let response = refused(front, &parts.headers, sender, rejection).await;
    bodies::unread(response, &parts.headers, body).await
}

/// Records a refusal and answers with it.
async fn recorded(
    front: &Front,
    caller: &Caller,
    principal: Option<&Principal>,
    rejection: Rejection,
) -> Response<Body> {
    let details = CallDetails::default();
    let refused = front
        .dispatcher
        .refuse(caller, principal, &details, rejection);
    let rejection = refused.await;
    refusal(front, caller, &rejection)
}

/// Answers with a refusal whose identifiers may hold values of secrets.
fn refusal(front: &Front, caller: &Caller, rejection: &Rejection) -> Response<Body> {
    let caller = match rejection.status {
        // Whoever is not known must not learn from a mask that a guess was right.
        401 => Cow::Borrowed(caller),
        _ => front.dispatcher.masked_caller(caller),
    };
    let response = problem::response(rejection, Some(Refused::of(&caller)));
    marked(response, &caller)
}

/// Answers with a refusal of a request that does not say where it belongs.
fn unrecorded(front: &Front, rejection: Rejection) -> Response<Body> {
    problem::response(&note_unrecorded(front, rejection), None)
}

/// Counts and logs a refusal that has no place in the ledger, and returns it as it may be shown.
pub fn note_unrecorded(front: &Front, mut rejection: Rejection) -> Rejection {
    rejection.mask(front.dispatcher.redactor());
    front.dispatcher.metrics().count_unrecorded();
    front.dispatcher.log().write(&LogLine {
        event: "request_refused",
        http_status: Some(rejection.status).filter(|status| *status > 0),
        error_type: Some(rejection.error_type),
        message: Some(&rejection.detail),
        ..LogLine::default()
    });
    rejection
}

/// Counts and logs bytes that are no request, with the status of the answer if they got one.
pub fn note_unread(front: &Front, status: Option<u16>) {
    let Some(status) = status else {
        let detail = "the client spoke HTTP/2; the connection was closed without an answer";
        note_unrecorded(front, Rejection::malformed(detail).without_response());
        return;
    };
    front.dispatcher.metrics().count_response(status);
    let refusal = Rejection::malformed("the head of the request could not be read");
    note_unrecorded(front, Rejection { status, ..refusal });
}

async fn no_path(State(front): State<Shared>, request: Request) -> Response<Body> {
    let rejection = Rejection::not_found("there is no such path; /openapi.json lists them");
    turned_away(&front, request, rejection).await
}

async fn wrong_method(State(front): State<Shared>, request: Request) -> Response<Body> {
    let allowed =
        match request.uri().path().ends_with("/list") || request.uri().path().ends_with("/call") {
            true => "POST",
            false => "GET, HEAD",
        };
    let rejection = Rejection::method_not_allowed(format!("the path is for {allowed}"));
    let mut response = turned_away(&front, request, rejection).await;
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn alive() -> Response<Body> {
    json_response(StatusCode::OK, b"{\"status\":\"ok\"}".to_vec())
}

async fn ready(State(front): State<Shared>) -> Response<Body> {
    match front.ready().await {
        Ok(()) => json_response(StatusCode::OK, b"{\"status\":\"ready\"}".to_vec()),
        Err(why) => problem::response(&Rejection::overloaded(why).with_retry_after(1), None),
    }
}

async fn metrics(State(front): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = may_look(&front, request.headers()) {
        return unrecorded(&front, rejection);
    }
    let mut response = Response::new(Body::from(front.dispatcher.metrics().text()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn description(State(front): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = may_look(&front, request.headers()) {
        return unrecorded(&front, rejection);
    }
    let closed = openapi::Closed {
        calls: front.dispatcher.authenticator().requires_credentials(),
        looks: front.reach == Reach::Public,
    };
    let document = openapi::document(front.dispatcher.tools(), closed);
    json_response(StatusCode::OK, document.to_string().into_bytes())
}

/// Whether a caller may see what belongs to no tenant.
fn may_look(front: &Front, headers: &HeaderMap) -> Result<(), Rejection> {
    if front.reach == Reach::Loopback {
        return Ok(());
    }
    let now = jiff::Timestamp::now().as_second();
    #[allow(clippy::cast_precision_loss)]
    front
        .dispatcher
        .authenticator()
        .identify(&headers::credential(headers), now as f64)
        .map(drop)
}

async fn list(State(front): State<Shared>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (caller, principal) = match admitted(&front, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => return Box::pin(bodies::unread(*response, &parts.headers, body)).await,
    };
    let details = CallDetails {
        request_type: "tool_list",
        ..CallDetails::default()
    };
    let wish = bodies::read(&parts, body)
        .await
        .and_then(|body| bodies::list_request(&body));
    let listed = match wish {
        Ok(wish) => front.dispatcher.list(&caller, &principal, &wish).await,
        Err(rejection) => Err(front
            .dispatcher
            .refuse(&caller, Some(&principal), &details, rejection)
            .await),
    };
    let response = match listed {
        Ok(tools) => {
            let body = json!({"total": tools.len(), "tools": tools}).to_string();
            json_response(StatusCode::OK, body.into_bytes())
        }
        Err(rejection) => problem::response(&rejection, Some(Refused::of(&caller))),
    };
    marked(response, &caller)
}

async fn posted(State(front): State<Shared>, request: Request) -> Response<Body> {
    call(&front, request, Peer::default()).await
}

/// Serves a call of a peer, who may leave meanwhile.
async fn call<B>(front: &Front, request: axum::http::Request<B>, peer: Peer) -> Response<Body>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let (parts, body) = request.into_parts();
    let (mut caller, principal) = match admitted(front, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => {
            let body = Body::new(body);
            return Box::pin(bodies::unread(*response, &parts.headers, body)).await;
        }
    };
    (caller.is_gone, caller.cancel) = (peer.is_gone, Some(peer.cancel));
    let marks = Marks::of(&caller);
    let wish = bodies::read(&parts, body)
        .await
        .and_then(|body| bodies::call_request(&body));
    // The room that the request was read into is free again for the next one.
    drop(parts);
    let reply = match wish {
        Err(rejection) => {
            let details = CallDetails::default();
            CallReply::Refused(
                front
                    .dispatcher
                    .refuse(&caller, Some(&principal), &details, rejection)
                    .await,
            )
        }
        Ok(mut wish) => {
            let called = front.call_to_its_end(&mut caller, &principal, &mut wish);
            called.await
        }
    };
    let response = reply_response(reply, marks.call());
    marks.put(response)
}

fn reply_response(reply: CallReply, call: Option<Refused<'_>>) -> Response<Body> {
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
    front: &'f Front,
    parts: &Parts,
) -> Result<(Caller, Cow<'f, Principal>), Box<Response<Body>>> {
    let caller = match headers::caller(&parts.headers) {
        Ok(caller) => caller,
        Err(misread) => {
            let Misread { rejection, caller } = *misread;
            return Err(Box::new(match caller {
                Some(caller) => Box::pin(recorded(front, &caller, None, rejection)).await,
                None => unrecorded(front, rejection),
            }));
        }
    };
    let credential = headers::credential(&parts.headers);
    match front.dispatcher.admit(&caller, &credential).await {
        Ok(principal) => Ok((caller, principal)),
        Err(rejection) => Err(Box::new(refusal(front, &caller, &rejection))),
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
struct Marks([(HeaderName, Option<HeaderValue>); 3]);

impl Marks {
    fn of(caller: &Caller) -> Self {
        let value = |text: &str| HeaderValue::from_str(text).ok();
        Self([
            (TRACE, value(&caller.trace_id)),
            (SPAN, value(&caller.span_id)),
            (CALL, value(&caller.call_id)),
        ])
    }

    fn call(&self) -> Option<Refused<'_>> {
        let [(_, trace_id), _, (_, call_id)] = &self.0;
        Some(Refused {
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
fn marked(response: Response<Body>, caller: &Caller) -> Response<Body> {
    Marks::of(caller).put(response)
}
