//! The paths of the server and what they do.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower::ServiceExt;

use crate::http::front::{Front, Reach};
use crate::http::{headers, openapi, problem};
use crate::limits;
use crate::service::caller::{self, BodyContext, Caller};
use crate::service::desk::ListRequest;
use crate::service::fields::Problem;
use crate::service::log::Line;
use crate::service::principal::Principal;
use crate::service::recording::About;
use crate::service::{Rejection, Reply, running};
use crate::tool::json_text::{self, Object};

type Shared = Arc<Front>;

/// Returns all routes.
pub fn router(front: Shared) -> Router {
    router_with(front, Router::new())
}

/// Returns all routes and further ones, behind the same door.
pub fn router_with(front: Shared, further: Router) -> Router {
    let listing = post(list).fallback(wrong_method);
    let calling = post(call).fallback(wrong_method);
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
#[derive(Clone)]
pub struct Entrance {
    front: Shared,
    routes: Router,
}

impl Entrance {
    /// Makes the way to all routes; `routes` are those of [`router_with`].
    #[must_use]
    pub fn new(front: Shared, routes: Router) -> Self {
        Self { front, routes }
    }
}

impl hyper::service::Service<axum::http::Request<Incoming>> for Entrance {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: axum::http::Request<Incoming>) -> Self::Future {
        let request = request.map(Body::new);
        let is_call = matches!(request.uri().path(), "/api/tools/call" | "/tools/call");
        if !is_call || request.method() != Method::POST {
            return Box::pin(self.routes.clone().oneshot(request));
        }
        let front = Arc::clone(&self.front);
        Box::pin(async move {
            let response = match front.check_origin(request.uri(), request.headers()) {
                Ok(()) => call(State(Arc::clone(&front)), request).await,
                Err(rejection) => refused(&front, request.headers(), rejection).await,
            };
            Ok(let_out(&front, response))
        })
    }
}

/// Refuses what is not meant for this server, and counts every answer.
async fn at_the_door(State(front): State<Shared>, request: Request, next: Next) -> Response<Body> {
    let checked = front.check_origin(request.uri(), request.headers());
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(rejection) => refused(&front, request.headers(), rejection).await,
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
    front.desk.metrics().answered(response.status().as_u16());
    response
}

/// Answers with a refusal; it is recorded when the request says where it belongs.
pub async fn refused(front: &Front, headers: &HeaderMap, rejection: Rejection) -> Response<Body> {
    match headers::caller(headers) {
        Ok(caller) => {
            let rejection = front
                .desk
                .refuse(&caller, None, &About::default(), rejection)
                .await;
            marked(
                problem::response(&rejection, Some(&caller.trace_id)),
                &caller,
            )
        }
        Err(_) => unrecorded(front, &rejection),
    }
}

/// Answers with a refusal of a request that does not say where it belongs.
fn unrecorded(front: &Front, rejection: &Rejection) -> Response<Body> {
    note_unrecorded(front, rejection);
    problem::response(rejection, None)
}

/// Counts and logs a refusal that has no place in the ledger.
pub fn note_unrecorded(front: &Front, rejection: &Rejection) {
    front.desk.metrics().unrecorded();
    front.desk.log().write(&Line {
        event: "request_refused",
        http_status: Some(rejection.status),
        error_type: Some(rejection.error_type),
        message: Some(&rejection.detail),
        ..Line::default()
    });
}

async fn no_path(State(front): State<Shared>, request: Request) -> Response<Body> {
    let rejection = Rejection::no_path("there is no such path; /openapi.json lists them");
    refused(&front, request.headers(), rejection).await
}

async fn wrong_method(State(front): State<Shared>, request: Request) -> Response<Body> {
    let allowed =
        match request.uri().path().ends_with("/list") || request.uri().path().ends_with("/call") {
            true => "POST",
            false => "GET, HEAD",
        };
    let rejection = Rejection::no_method(format!("the path is for {allowed}"));
    let mut response = refused(&front, request.headers(), rejection).await;
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
        Err(why) => problem::response(&Rejection::overloaded(why).after(1), None),
    }
}

async fn metrics(State(front): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = may_look(&front, request.headers()) {
        return unrecorded(&front, &rejection);
    }
    let mut response = Response::new(Body::from(front.desk.metrics().text()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn description(State(front): State<Shared>, request: Request) -> Response<Body> {
    if let Err(rejection) = may_look(&front, request.headers()) {
        return unrecorded(&front, &rejection);
    }
    let closed = openapi::Closed {
        calls: front.desk.guard().is_closed(),
        looks: front.reach == Reach::Public,
    };
    let document = openapi::document(front.desk.tools(), closed);
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
        .desk
        .guard()
        .identify(&headers::credential(headers), now as f64)
        .map(drop)
}

async fn list(State(front): State<Shared>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (caller, principal) = match admitted(&front, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    let about = About {
        request_type: "tool_list",
        ..About::default()
    };
    let wish = read_body(&parts, body)
        .await
        .and_then(|body| list_request(&body));
    let listed = match wish {
        Ok(wish) => front.desk.list(&caller, &principal, &wish).await,
        Err(rejection) => Err(front
            .desk
            .refuse(&caller, Some(&principal), &about, rejection)
            .await),
    };
    let response = match listed {
        Ok(tools) => {
            let body = json!({"total": tools.len(), "tools": tools}).to_string();
            json_response(StatusCode::OK, body.into_bytes())
        }
        Err(rejection) => problem::response(&rejection, Some(&caller.trace_id)),
    };
    marked(response, &caller)
}

/// Tells when the caller of a request has gone: then what waits for the answer is dropped.
struct Watch(Option<Arc<AtomicBool>>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(is_gone) = self.0.take() {
            is_gone.store(true, Ordering::Relaxed);
        }
    }
}

async fn call(State(front): State<Shared>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (caller, principal) = match admitted(&front, &parts).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    let marks = Marks::of(&caller);
    let mut watch = Watch(Some(Arc::clone(&caller.is_gone)));
    let wish = read_body(&parts, body)
        .await
        .and_then(|body| call_request(&body));
    // The room that the request was read into is free again for the next one.
    drop(parts);
    let reply = match wish {
        Err(rejection) => {
            let about = About::default();
            Reply::Refused(
                front
                    .desk
                    .refuse(&caller, Some(&principal), &about, rejection)
                    .await,
            )
        }
        Ok(wish) => front.call(caller, principal, wish).await,
    };
    watch.0 = None;
    let response = reply_response(reply, marks.trace_id());
    marks.put(response)
}

fn reply_response(reply: Reply, trace_id: Option<&str>) -> Response<Body> {
    match reply {
        Reply::Fresh(envelope) => match envelope.to_json() {
            Ok(body) => json_response(StatusCode::OK, body),
            Err(error) => problem::response(&Rejection::internal(error.to_string()), trace_id),
        },
        Reply::Replay(body) => {
            let mut response = json_response(StatusCode::OK, body);
            response
                .headers_mut()
                .insert("idempotency-replayed", HeaderValue::from_static("true"));
            response
        }
        Reply::Refused(rejection) => problem::response(&rejection, trace_id),
    }
}

/// Reads the headers and lets the desk decide about them.
async fn admitted(
    front: &Front,
    parts: &Parts,
) -> Result<(Caller, Principal), Box<Response<Body>>> {
    let caller = headers::caller(&parts.headers)
        .map_err(|rejection| Box::new(unrecorded(front, &rejection)))?;
    let credential = headers::credential(&parts.headers);
    match front.desk.admit(&caller, &credential).await {
        Ok(principal) => Ok((caller, principal)),
        Err(rejection) => {
            let response = problem::response(&rejection, Some(&caller.trace_id));
            Err(Box::new(marked(response, &caller)))
        }
    }
}

/// Reads a body of JSON, of bounded size and in bounded time.
///
/// # Errors
/// 408, 413, 415, or 400 when it was cut off.
pub async fn read_body(parts: &Parts, body: Body) -> Result<Bytes, Rejection> {
    if !headers::is_json(&parts.headers) {
        return Err(Rejection::not_json(
            "expected Content-Type: application/json",
        ));
    }
    let limited = Limited::new(body, limits::MAX_BODY_BYTES);
    let deadline = Instant::now() + limits::BODY_TIMEOUT;
    let read = running::before(deadline, pin!(limited.collect())).await;
    match read {
        Err(_) => Err(Rejection::slow("the body did not come in time")),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            let detail = format!("the body may have {} bytes", limits::MAX_BODY_BYTES);
            Err(Rejection::too_large(detail))
        }
        Ok(Err(_)) => Err(Rejection::malformed("the body was cut off")),
    }
}

fn parse(body: &Bytes) -> Result<Map<String, Value>, Rejection> {
    let text =
        std::str::from_utf8(body).map_err(|_| Rejection::malformed("the body is not UTF-8"))?;
    let value = json_text::parse(text)
        .map_err(|error| Rejection::malformed(format!("the body is not JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(wrong(vec![Problem::new(&["body"], "expected an object")])),
    }
}

fn wrong(problems: Vec<Problem>) -> Rejection {
    Rejection::invalid("the body is not what it should be").with_errors(problems)
}

fn unknown_fields(map: &Map<String, Value>, known: &[&str], problems: &mut Vec<Problem>) {
    for key in map
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .take(10)
    {
        let key: String = key.chars().take(limits::MAX_ID_CHARS).collect();
        problems.push(Problem::new(&["body", &key], "there is no such field"));
    }
}

fn list_request(body: &Bytes) -> Result<ListRequest, Rejection> {
    let map = if body.is_empty() {
        Map::new()
    } else {
        parse(body)?
    };
    let mut problems = Vec::new();
    unknown_fields(&map, &["category", "ai_callable_only"], &mut problems);
    let category = match map.get("category") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => {
            problems.push(Problem::new(&["body", "category"], "expected text"));
            None
        }
    };
    let ai_callable_only = match map.get("ai_callable_only") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(only)) => *only,
        Some(_) => {
            problems.push(Problem::new(
                &["body", "ai_callable_only"],
                "expected true or false",
            ));
            true
        }
    };
    match problems.is_empty() {
        true => Ok(ListRequest {
            category,
            has_internal: !ai_callable_only,
        }),
        false => Err(wrong(problems)),
    }
}

/// A body as it should be. Whatever is not is read once more, to tell what is wrong with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Usual {
    tool_name: String,
    input: Object,
    context: Option<UsualContext>,
}

/// The members of `context`, and no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "BodyContext")]
struct UsualMembers {
    tenant_id: Option<String>,
    site_id: Option<String>,
    trace_id: Option<String>,
    user_id: Option<String>,
    session_id: Option<String>,
    npc_id: Option<String>,
}

#[derive(Deserialize)]
struct UsualContext(#[serde(with = "UsualMembers")] BodyContext);

/// Reads a call whose body is as it should be.
fn usual_request(body: &Bytes) -> Option<crate::service::Request> {
    let usual: Usual = serde_json::from_slice(body).ok()?;
    let context = usual
        .context
        .map_or_else(BodyContext::default, |context| context.0);
    let is_good = !usual.tool_name.is_empty() && no_ids(&context).next().is_none();
    is_good.then_some(crate::service::Request {
        tool_name: usual.tool_name,
        input: Value::Object(usual.input.0),
        context,
    })
}

fn call_request(body: &Bytes) -> Result<crate::service::Request, Rejection> {
    if let Some(request) = usual_request(body) {
        return Ok(request);
    }
    let mut map = parse(body)?;
    let mut problems = Vec::new();
    unknown_fields(&map, &["tool_name", "input", "context"], &mut problems);
    let tool_name = match map.shift_remove("tool_name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        None => {
            problems.push(Problem::new(&["body", "tool_name"], "field required"));
            String::new()
        }
        Some(_) => {
            problems.push(Problem::new(
                &["body", "tool_name"],
                "expected the name of a tool",
            ));
            String::new()
        }
    };
    let input = match map.shift_remove("input") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Object(input)) => Value::Object(input),
        Some(_) => {
            problems.push(Problem::new(&["body", "input"], "expected an object"));
            Value::Null
        }
    };
    let context = context(map.shift_remove("context"), &mut problems);
    match problems.is_empty() {
        true => Ok(crate::service::Request {
            tool_name,
            input,
            context,
        }),
        false => Err(wrong(problems)),
    }
}

fn context(value: Option<Value>, problems: &mut Vec<Problem>) -> BodyContext {
    let value = match value {
        None | Some(Value::Null) => return BodyContext::default(),
        Some(value) => value,
    };
    let Ok(context) = serde_json::from_value::<BodyContext>(value) else {
        problems.push(Problem::new(
            &["body", "context"],
            "expected an object of identifiers",
        ));
        return BodyContext::default();
    };
    let no_id = |name| Problem::new(&["body", "context", name], "expected an identifier");
    problems.extend(no_ids(&context).map(no_id));
    context
}

/// Returns the members that are there and no identifiers.
fn no_ids(context: &BodyContext) -> impl Iterator<Item = &'static str> {
    let ids = [
        ("tenant_id", &context.tenant_id),
        ("site_id", &context.site_id),
        ("trace_id", &context.trace_id),
        ("user_id", &context.user_id),
        ("session_id", &context.session_id),
        ("npc_id", &context.npc_id),
    ];
    let is_wrong = |id: &Option<String>| id.as_deref().is_some_and(|id| !caller::is_id(id));
    ids.into_iter()
        .filter_map(move |(name, id)| is_wrong(id).then_some(name))
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

/// What names a call in the headers of its answer: identifiers are always good values.
struct Marks([(&'static str, Option<HeaderValue>); 3]);

impl Marks {
    fn of(caller: &Caller) -> Self {
        let value = |text: &str| HeaderValue::from_str(text).ok();
        Self([
            ("x-trace-id", value(&caller.trace_id)),
            ("x-span-id", value(&caller.span_id)),
            ("x-call-id", value(&caller.call_id)),
        ])
    }

    fn trace_id(&self) -> Option<&str> {
        let [(_, trace_id), ..] = &self.0;
        trace_id.as_ref()?.to_str().ok()
    }

    fn put(self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        for (name, value) in self.0 {
            if let Some(value) = value {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

/// Adds what names the call.
fn marked(response: Response<Body>, caller: &Caller) -> Response<Body> {
    Marks::of(caller).put(response)
}
