//! Routes of the server.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::http::app_state::{AppState, Reach};
use crate::http::connection::ClientHandle;
use crate::http::{bodies, headers, openapi, problem};
use crate::service::caller::Caller;
use crate::service::metrics;
use crate::service::principal::Principal;
use crate::service::{CallReply, Rejection};
use karyi_core::limits;

type Shared = Arc<AppState>;

/// Path of MCP, for the records of its refused requests.
const MCP: &str = "/mcp";

/// Message for a request that panicked outside of a call.
const BROKEN: &str = "the request could not be served";

/// Returns all routes and extra ones, behind the same checks.
pub fn router(state: Shared, extra: Router) -> Router {
    let listing = post(list_tools).fallback(method_not_allowed);
    let calling = post(call_tool).fallback(method_not_allowed);
    let panicked = Arc::clone(&state);
    let on_panic = move |_: Box<dyn Any + Send>| {
        let rejection = Rejection::internal(BROKEN);
        problem::response(
            &panicked.dispatcher.audit.refuse_unrecorded(rejection),
            None,
        )
    };
    let header =
        |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
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
        .layer((
            header(header::CACHE_CONTROL, "no-store"),
            header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            from_fn_with_state(state, check_request),
            CatchPanicLayer::custom(on_panic),
        ))
}

/// Middleware: rejects requests for other hosts or from foreign origins, and counts every response.
async fn check_request(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Response<Body> {
    state.dispatcher.secrets.refresh_if_stale().await;
    let response = match state.check_head(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(rejection) => Box::pin(refuse_unread(&state, request, rejection)).await,
    };
    let metrics = &state.dispatcher.audit.metrics;
    metrics.count_response(response.status().as_u16());
    response
}

/// Responds with a rejection, which is recorded if the headers identify the caller.
pub async fn refuse_by_headers(
    state: &AppState,
    headers: &HeaderMap,
    (front_end, principal): (&'static str, Option<&Arc<Principal>>),
    rejection: Rejection,
) -> Response<Body> {
    let mut caller = match headers::caller(headers) {
        Ok(caller) => Some(caller),
        Err(error) => error.caller,
    };
    if let Some(caller) = &mut caller {
        caller.front_end = front_end;
        principal.inspect(|principal| caller.principal = Arc::clone(principal));
    }
    refuse(state, caller.as_ref(), rejection).await
}

/// Responds with a rejection to a request whose body was not read.
async fn refuse_unread(state: &AppState, request: Request, rejection: Rejection) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let front_end = match parts.uri.path() {
        MCP => "mcp",
        _ => headers::HTTP,
    };
    let sender = (front_end, None);
    let response = refuse_by_headers(state, &parts.headers, sender, rejection).await;
    bodies::drain_or_close(response, &parts.headers, body).await
}

/// Records a rejection, if the caller is known, and responds with it.
async fn refuse(state: &AppState, caller: Option<&Caller>, rejection: Rejection) -> Response<Body> {
    let audit = &state.dispatcher.audit;
    match caller {
        Some(caller) => rejection_response(state, caller, &audit.refuse(caller, rejection).await),
        None => problem::response(&audit.refuse_unrecorded(rejection), None),
    }
}

/// Responds with a recorded rejection; masks secrets in the ids.
fn rejection_response(state: &AppState, caller: &Caller, rejection: &Rejection) -> Response<Body> {
    let caller = match rejection.status {
        // A mask would tell an unauthenticated caller that a guess was right.
        401 => Cow::Borrowed(caller),
        _ => state.dispatcher.audit.masked(caller),
    };
    answer(
        CallReply::Refused(rejection.clone()),
        CallHeaders::of(&caller),
    )
}

/// Counts and logs bytes that are not an HTTP request, with the status of the response if there was
/// one.
pub fn log_unparsed(state: &AppState, status: Option<u16>) {
    let audit = &state.dispatcher.audit;
    let mut rejection = match status {
        Some(_) => Rejection::malformed("the head of the request could not be read"),
        None => Rejection::malformed(
            "the client spoke HTTP/2; the connection was closed without an answer",
        ),
    };
    rejection.status = status.unwrap_or(0);
    status.inspect(|status| audit.metrics.count_response(*status));
    audit.refuse_unrecorded(rejection);
}

async fn not_found(State(state): State<Shared>, request: Request) -> Response<Body> {
    let rejection = Rejection::not_found("there is no such path; /openapi.json lists all paths");
    refuse_unread(&state, request, rejection).await
}

async fn method_not_allowed(State(state): State<Shared>, request: Request) -> Response<Body> {
    let allowed =
        match request.uri().path().ends_with("/list") || request.uri().path().ends_with("/call") {
            true => "POST",
            false => "GET, HEAD",
        };
    let rejection = Rejection::method_not_allowed(format!("the path supports only {allowed}"));
    let mut response = refuse_unread(&state, request, rejection).await;
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
        return refuse(&state, None, rejection).await;
    }
    let mut response = Response::new(Body::from(state.dispatcher.audit.metrics.text()));
    let kind = HeaderValue::from_static(metrics::MEDIA_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn description(State(state): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = check_monitoring_access(&state, request.headers()) {
        return refuse(&state, None, rejection).await;
    }
    let auth = openapi::AuthRequirement {
        calls: state.dispatcher.authenticator.requires_credentials(),
        monitoring: state.reach == Reach::Public,
    };
    let document = openapi::document(&state.dispatcher.tools, auth);
    json_response(StatusCode::OK, document.to_string().into_bytes())
}

/// Checks that a caller may see data of the server as a whole.
fn check_monitoring_access(state: &AppState, headers: &HeaderMap) -> Result<(), Rejection> {
    if state.reach == Reach::Loopback {
        return Ok(());
    }
    let credential = headers::credential(headers);
    state
        .dispatcher
        .authenticator
        .identify(&credential)
        .map(drop)
}

async fn list_tools(State(state): State<Shared>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut caller = match admit(&state, &parts.headers).await {
        Ok(caller) => caller,
        Err(response) => return bodies::drain_or_close(*response, &parts.headers, body).await,
    };
    caller.request_type = "tool_list";
    let listed = match bodies::read(&parts, body, bodies::list_request).await {
        Ok(request) => state.dispatcher.list(&mut caller, &request).await,
        Err(rejection) => Err(state.dispatcher.audit.refuse(&caller, rejection).await),
    };
    match listed {
        Ok(tools) => {
            let body = json!({"total": tools.len(), "tools": tools}).to_string();
            let response = json_response(StatusCode::OK, body.into_bytes());
            CallHeaders::of(&caller).put(response)
        }
        Err(rejection) => rejection_response(&state, &caller, &rejection),
    }
}

/// Handles a call. One that has arrived completely is run and recorded, even if its client is gone.
async fn call_tool(State(state): State<Shared>, mut request: Request) -> Response<Body> {
    let client = request.extensions_mut().remove::<ClientHandle>();
    let (parts, body) = request.into_parts();
    let mut caller = match admit(&state, &parts.headers).await {
        Ok(caller) => caller,
        Err(response) => {
            let response = bodies::drain_or_close(*response, &parts.headers, body);
            return Box::pin(response).await;
        }
    };
    caller.gone = client.map(|client| client.gone);
    let ids = CallHeaders::of(&caller);
    let request = bodies::read(&parts, body, bodies::call_request).await;
    // Frees the read buffer for the next request.
    drop(parts);
    let reply = match request {
        Ok(request) => state.dispatcher.call(caller, request).await,
        Err(rejection) => {
            let refused = state.dispatcher.audit.refuse(&caller, rejection);
            CallReply::Refused(Box::pin(refused).await)
        }
    };
    answer(reply, ids)
}

/// Identifies the caller of a request, and applies the limits of its tenant.
async fn admit(state: &AppState, headers: &HeaderMap) -> Result<Caller, Box<Response<Body>>> {
    let dispatcher = &state.dispatcher;
    let mut caller = match headers::caller(headers) {
        Ok(caller) => caller,
        Err(error) => {
            let refused = refuse(state, error.caller.as_ref(), error.rejection);
            return Err(Box::new(Box::pin(refused).await));
        }
    };
    let credential = headers::credential(headers);
    let admitted = dispatcher.authenticator.identify(&credential);
    let admitted = admitted.and_then(|principal| {
        caller.principal = principal;
        dispatcher.check_access(&caller)
    });
    match admitted {
        Ok(()) => Ok(caller),
        Err(rejection) => {
            let refused = refuse(state, Some(&caller), rejection);
            Err(Box::new(Box::pin(refused).await))
        }
    }
}

/// Makes the response to a call, with its ids.
fn answer(reply: CallReply, ids: CallHeaders) -> Response<Body> {
    let response = match reply {
        CallReply::Fresh(envelope) => match envelope.to_json() {
            Ok(body) => json_response(StatusCode::OK, body),
            Err(error) => problem::response(&Rejection::internal(error.to_string()), ids.texts()),
        },
        CallReply::Replay(body) => {
            let mut response = json_response(StatusCode::OK, body);
            let replayed = HeaderValue::from_static("true");
            response
                .headers_mut()
                .insert("idempotency-replayed", replayed);
            response
        }
        CallReply::Refused(rejection) => problem::response(&rejection, ids.texts()),
    };
    ids.put(response)
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

    /// Returns the trace and the id of the call.
    fn texts(&self) -> Option<[&str; 2]> {
        let [(_, trace_id), _, (_, call_id)] = &self.0;
        let (trace_id, call_id) = (trace_id.as_ref()?, call_id.as_ref()?);
        Some([trace_id.to_str().ok()?, call_id.to_str().ok()?])
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
