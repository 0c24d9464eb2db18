//! `/mcp` of the server: streamable HTTP, with the same checks and dispatcher as every other route.
//!
//! Tenant and site of a request come from headers, from `_meta`, or from the server's defaults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use http_body_util::BodyExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, JsonRpcMessage, RequestMetaObject, Tool,
};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::exec::cancel::{Cancel, CancelOnDrop};
use crate::http::app_state::AppState;
use crate::http::connection::ClientHandle;
use crate::http::{bodies, headers, problem, routes};
use crate::mcp::progress::Progress;
use crate::mcp::replay::ReplaySessionManager;
use crate::mcp::request_ids::RequestIds;
use crate::mcp::server::{Backend, McpContext, Server};
use crate::mcp::sessions::{self, PendingSession, SessionRef, Sessions};
use crate::mcp::stdio_transport::{self, MessageError};
use crate::mcp::{listing, site_call, site_result, tool_result};
use crate::service::caller::{self, Caller};
use crate::service::catalog::OfferedTool;
use crate::service::dispatcher::ListRequest;
use crate::service::principal::Principal;
use crate::service::{Dispatcher, Rejection};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Name of the front end in the ledger.
const FRONT_END: &str = "mcp";

/// Instructions for models about site tools.
const SITE_INSTRUCTIONS: &str = "Site tools work on the tenant and site of the request. Calls are \
    independent of each other.";
/// Instructions for models about local tools, if there are any.
const HOST_INSTRUCTIONS: &str = " `command` starts a fresh shell for every call, unless karyi/session \
    in `_meta` names a shell to keep. A command that still runs at the time limit of its call is \
    ended. $KARYI{NAME} in arguments stays literal text, except for the secrets that this server \
    offers; their values are never shown.";

/// Site of requests that name none, and the shell of commands.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Tenant.
    pub tenant: Option<String>,
    /// Site.
    pub site: Option<String>,
    /// Sentence about the shell, for models.
    pub shell: String,
}

/// Backend for the server's tools.
pub struct HttpBackend {
    state: Arc<AppState>,
    defaults: Defaults,
}

/// State of the route.
#[derive(Clone)]
struct RouteState {
    state: Arc<AppState>,
    sessions: Arc<Sessions>,
    request_ids: RequestIds,
    /// One permit for each answer in progress.
    answers: Arc<Semaphore>,
}

/// Creates the route.
pub fn router(state: &Arc<AppState>, defaults: Defaults) -> Router {
    router_with(state, defaults, |server| server)
}

/// Creates the route with a wrapper around each server; the conformance suite needs it.
pub fn router_with<H: ServerHandler>(
    state: &Arc<AppState>,
    defaults: Defaults,
    wrap: impl Fn(Server<HttpBackend>) -> H + Send + Sync + 'static,
) -> Router {
    // The middleware has already checked host and origin.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = limits::MAX_BODY_BYTES;
    let answers = Arc::new(Semaphore::new(limits::MAX_CONNECTIONS));
    let streams = config.cancellation_token.clone();
    let (ending, answering) = (state.shutdown.clone(), Arc::clone(&answers));
    // When the server shuts down, open streams end after the last answer.
    tokio::spawn(async move {
        ending.interrupted().await;
        let all = u32::try_from(limits::MAX_CONNECTIONS).unwrap_or(u32::MAX);
        tokio::select! {
            _ = answering.acquire_many(all) => {}
            () = tokio::time::sleep(limits::SHUTDOWN_TIMEOUT) => {}
            () = ending.cancelled() => {}
        }
        streams.cancel();
    });
    let shared = Arc::clone(state);
    let make = move || {
        Ok(wrap(Server(Arc::new(HttpBackend {
            state: Arc::clone(&shared),
            defaults: defaults.clone(),
        }))))
    };
    let manager = Arc::new(ReplaySessionManager::new(limits::MCP_SESSION_IDLE));
    let route = RouteState {
        state: Arc::clone(state),
        sessions: Arc::new(Sessions::new(Arc::clone(&manager))),
        request_ids: RequestIds::default(),
        answers,
    };
    let service = StreamableHttpService::new(make, manager, config);
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(route, authenticate))
}

/// Middleware: authenticates the caller, reads the body and checks the session.
async fn authenticate(
    State(route): State<RouteState>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if let Some(client) = parts.extensions.get::<ClientHandle>() {
        client.expect_stream();
    }
    let headers = parts.headers.clone();
    let principal = match identify(&route, &headers) {
        Ok(principal) => principal,
        Err(rejection) => {
            let sender = (FRONT_END, None);
            let response =
                routes::refuse_by_headers(&route.state, &headers, sender, rejection).await;
            return bodies::drain_or_close(response, &headers, body).await;
        }
    };
    let request = Request::from_parts(parts, body);
    match handle(&route, &principal, request, next).await {
        Ok(response) => response,
        Err(rejection) => {
            let sender = (FRONT_END, Some(&principal));
            routes::refuse_by_headers(&route.state, &headers, sender, rejection).await
        }
    }
}

fn identify(route: &RouteState, headers: &HeaderMap) -> Result<Arc<Principal>, Rejection> {
    if let Some(rejection) = headers::duplicates(headers) {
        return Err(rejection);
    }
    let credential = headers::credential(headers);
    route.state.dispatcher.authenticator.identify(&credential)
}

async fn handle(
    route: &RouteState,
    principal: &Arc<Principal>,
    request: Request,
    next: Next,
) -> Result<Response<Body>, Rejection> {
    let (mut parts, body) = request.into_parts();
    let session = route.sessions.resolve(&mut parts.headers, &principal.id);
    let method = parts.method.clone();
    let (body, pending, permit) = match method {
        Method::POST => {
            let body = bodies::read(&parts, body, |body| Ok(body.clone())).await?;
            let body = match admit_message(route, &mut parts, &session, body) {
                Ok(body) => body,
                Err(error) => {
                    return Ok(reject_message(route, principal, &parts.headers, *error).await);
                }
            };
            let is_first = session == SessionRef::None && sessions::may_begin(&body);
            let pending = match is_first {
                true => Some(route.sessions.open(&principal.id).await?),
                false => None,
            };
            let permit = Arc::clone(&route.answers).try_acquire_owned().ok();
            (Body::from(body), pending, permit)
        }
        _ => (body, None, None),
    };
    let flag = HandlerFlag::default();
    let sent = parts.headers.clone();
    parts.extensions.insert(Arc::clone(principal));
    parts.extensions.insert(flag.clone());
    let response_future = next.run(Request::from_parts(parts, body));
    let response = match pending {
        Some(pending) => begin(pending, response_future).await?,
        None => response_future.await,
    };
    let is_handled = flag.0.load(Ordering::Relaxed);
    if response.status().is_client_error() && !is_handled {
        // The client has its response already; this only records the rejection.
        let rejection = protocol_rejection(response.status());
        let sender = (FRONT_END, Some(principal));
        drop(routes::refuse_by_headers(&route.state, &sent, sender, rejection).await);
    }
    Ok(match (method, session) {
        (Method::DELETE, SessionRef::Own(id)) => {
            route.sessions.forget(&id);
            no_content(response)
        }
        // rmcp reports success for a session that never existed.
        (Method::DELETE, SessionRef::Unknown) if response.status().is_success() => no_session(),
        _ if response.status().is_server_error() => no_answer(route, is_handled)?,
        _ => until_sent(response, permit),
    })
}

/// Checks a message and claims its id in the session; returns its text for rmcp.
fn admit_message(
    route: &RouteState,
    parts: &mut Parts,
    session: &SessionRef,
    text: Bytes,
) -> Result<Bytes, Box<MessageError>> {
    let parsed = stdio_transport::parse_message(&text)?;
    if let (SessionRef::Own(session), JsonRpcMessage::Request(request)) = (session, &parsed.message)
    {
        let claimed = route.request_ids.claim(session, &request.id);
        let in_use = || Box::new(MessageError::id_in_use(&request.id));
        parts.extensions.insert(claimed.ok_or_else(in_use)?);
    }
    Ok(parsed.rewritten.map_or(text, Bytes::from))
}

/// Responds to a request that rmcp could not answer. That of a call which has reached its handler is recorded there.
fn no_answer(route: &RouteState, is_handled: bool) -> Result<Response<Body>, Rejection> {
    let rejection = match route.state.shutdown.is_interrupted() {
        true => Rejection::overloaded("the server is shutting down"),
        false => Rejection::internal("the request could not be answered"),
    };
    match is_handled {
        true => Ok(problem::response(&rejection, None)),
        false => Err(rejection),
    }
}

/// Holds a permit until a streamed response has been sent or its client is gone.
fn until_sent(response: Response<Body>, permit: Option<OwnedSemaphorePermit>) -> Response<Body> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    match kind.is_some_and(|kind| kind == "text/event-stream") {
        true => response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _held = &permit;
                frame
            }))
        }),
        false => response,
    }
}

/// Replaces status 202 at the end of a session, which some clients take for an error.
fn no_content(mut response: Response<Body>) -> Response<Body> {
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Set when a request has reached the handler, which records it.
#[derive(Clone, Default)]
struct HandlerFlag(Arc<AtomicBool>);

/// Builds the record of a request that rmcp refused.
fn protocol_rejection(status: StatusCode) -> Rejection {
    let detail = format!("the protocol refused the request with status {status}");
    let mut rejection = match status {
        StatusCode::NOT_FOUND => Rejection::not_found(detail),
        _ => Rejection::malformed(detail),
    };
    rejection.status = status.as_u16();
    rejection
}

/// Responds to a malformed message with a JSON-RPC error.
async fn reject_message(
    route: &RouteState,
    principal: &Arc<Principal>,
    headers: &HeaderMap,
    mut error: MessageError,
) -> Response<Body> {
    let state = &route.state;
    let mut message = error.error.message.into_owned();
    state
        .dispatcher
        .audit
        .redactor
        .redact_in_again(&mut message);
    let rejection = Rejection::malformed(message.clone());
    error.error.message = message.into();
    let sender = (FRONT_END, Some(principal));
    let mut response = routes::refuse_by_headers(state, headers, sender, rejection).await;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    *response.body_mut() = Body::from(error.answer().to_string());
    response
}

/// Begins a session. It is registered even if the client disconnects meanwhile.
async fn begin(
    pending: PendingSession,
    response_future: impl Future<Output = Response<Body>> + Send + 'static,
) -> Result<Response<Body>, Rejection> {
    let task = tokio::spawn(async move {
        let response = response_future.await;
        pending.register(response.headers());
        response
    });
    let broken = |_| Rejection::internal("the session could not be created");
    task.await.map_err(broken)
}

/// Responds to an unknown session as rmcp does.
fn no_session() -> Response<Body> {
    let mut response = Response::new(Body::from("Not Found: Session not found"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Authenticated principal, and the caller if tenant and site are known.
type Requester = (Arc<Principal>, Option<Caller>);

impl HttpBackend {
    fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.state.dispatcher
    }

    /// Returns the requester. Invalid ids are recorded if the headers identify the caller.
    async fn requester(&self, context: &McpContext) -> Result<Requester, ErrorData> {
        let read = self.read(context);
        if let Err(error) = &read {
            let rejection = Rejection::invalid(error.message.to_string());
            match context.extensions.get::<Parts>() {
                // The client gets the error as its response.
                Some(parts) => {
                    let sender = (FRONT_END, parts.extensions.get());
                    let (state, headers) = (&self.state, &parts.headers);
                    drop(routes::refuse_by_headers(state, headers, sender, rejection).await);
                }
                None => drop(self.dispatcher().audit.refuse_unrecorded(rejection)),
            }
        }
        read
    }

    fn read(&self, context: &McpContext) -> Result<Requester, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        if let Some(flag) = parts.and_then(|parts| parts.extensions.get::<HandlerFlag>()) {
            flag.0.store(true, Ordering::Relaxed);
        }
        let principal = parts.and_then(|parts| parts.extensions.get::<Arc<Principal>>());
        let unknown = || ErrorData::internal_error("the caller is not known", None);
        let (parts, principal) = parts.zip(principal).ok_or_else(unknown)?;
        let caller = self.caller(&context.meta, &parts.headers)?;
        Ok((Arc::clone(principal), caller))
    }

    /// Returns the caller, if tenant and site are known.
    fn caller(
        &self,
        meta: &RequestMetaObject,
        headers: &HeaderMap,
    ) -> Result<Option<Caller>, ErrorData> {
        let place = |key: &str, header: &str, own: &Option<String>| {
            let id = header_id(headers, header)?;
            let id = id.or(site_call::meta_id(meta, key)?);
            Ok::<_, ErrorData>(id.or_else(|| own.clone()))
        };
        let tenant = place("tenant_id", "x-tenant-id", &self.defaults.tenant)?;
        let site_id = place("site_id", "x-site-id", &self.defaults.site)?;
        let Some((tenant, site_id)) = tenant.zip(site_id) else {
            return Ok(None);
        };
        let mut caller = site_call::caller(FRONT_END, meta, tenant, site_id)?;
        if let Some(trace) = header_id(headers, "x-trace-id")? {
            caller.trace_id = trace;
        }
        let optional = [
            ("x-user-id", &mut caller.user_id),
            ("x-session-id", &mut caller.session_id),
            ("x-npc-id", &mut caller.npc_id),
            ("idempotency-key", &mut caller.idempotency_key),
        ];
        for (name, field) in optional {
            if let Some(id) = header_id(headers, name)? {
                *field = Some(id);
            }
        }
        Ok(Some(caller))
    }
}

/// Returns a header that must be an id.
fn header_id(headers: &HeaderMap, name: &str) -> Result<Option<String>, ErrorData> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let text = first.map(|value| value.to_str().unwrap_or_default().trim());
    match (text, second) {
        (None, _) => Ok(None),
        (Some(id), None) if caller::is_id(id) => Ok(Some(id.to_owned())),
        _ => Err(ErrorData::invalid_params(
            format!("the header {name} must be one identifier: [A-Za-z0-9._:-]{{1,100}}"),
            None,
        )),
    }
}

impl Backend for HttpBackend {
    fn instructions(&self) -> String {
        let is_of_machine = |tool: &OfferedTool| !tool.is_site_tool();
        match self.dispatcher().tools.iter().any(is_of_machine) {
            true => {
                let told = format!(
                    "{SITE_INSTRUCTIONS}{HOST_INSTRUCTIONS} {}",
                    self.defaults.shell
                );
                told.trim_end().to_owned()
            }
            false => SITE_INSTRUCTIONS.to_owned(),
        }
    }

    async fn tools(&self, context: &McpContext) -> Result<Vec<Tool>, ErrorData> {
        let (principal, caller) = self.requester(context).await?;
        // Without a site there are no site tools.
        let Some(mut caller) = caller else {
            return Ok(Vec::new());
        };
        let dispatcher = self.dispatcher();
        let refused = |rejection: Rejection| ErrorData::invalid_request(rejection.detail, None);
        caller.principal = principal;
        if let Err(rejection) = dispatcher.check_access(&caller) {
            return Err(refused(dispatcher.audit.refuse(&caller, rejection).await));
        }
        let listed = dispatcher.list(&mut caller, &ListRequest::default()).await;
        let listed = listed.map_err(refused)?;
        let is_listed = |name: &str| listed.iter().any(|tool| tool.name == name);
        let offered = self.dispatcher().tools.iter();
        Ok(offered
            .filter(|tool| is_listed(tool.name()))
            .map(|tool| listing::tool(&tool.entry))
            .collect())
    }

    async fn refuse_call(&self, name: &str, problem: String, context: McpContext) -> ErrorData {
        let dispatcher = self.dispatcher();
        let is_it = |tool: &OfferedTool| tool.name() == name;
        if !name.is_empty() && !dispatcher.tools.iter().any(is_it) {
            let call = CallToolRequestParams::new(name.to_owned());
            let refused = self.call(call, context).await.err();
            return refused.unwrap_or_else(|| ErrorData::invalid_params(problem, None));
        }
        let (principal, caller) = match self.requester(&context).await {
            Ok(requester) => requester,
            Err(error) => return error,
        };
        let rejection = Rejection::invalid(problem);
        let rejection = match caller {
            Some(mut caller) => {
                (caller.principal, caller.tool_name) = (principal, name.to_owned());
                let rejection = dispatcher.check_access(&caller).err().unwrap_or(rejection);
                dispatcher.audit.refuse(&caller, rejection).await
            }
            None => dispatcher.audit.refuse_unrecorded(rejection),
        };
        ErrorData::invalid_params(rejection.detail, None)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let (principal, caller) = self.requester(&context).await?;
        let dispatcher = self.dispatcher();
        let Some(mut caller) = caller else {
            let rejection = Rejection::invalid("the call names no tenant and site");
            dispatcher.audit.refuse_unrecorded(rejection);
            let is_it = |tool: &OfferedTool| tool.name() == request.name;
            return match dispatcher.tools.iter().any(is_it) {
                true => Ok(tool_result::from_error(&no_site()).into()),
                false => {
                    let name = dispatcher.audit.masked_name(&request.name);
                    Err(tool_result::unknown_tool(&name))
                }
            };
        };
        let trace = dispatcher.audit.masked(&caller).trace_id.clone();
        let call = caller.call_id.clone();
        caller.principal = principal;
        if let Err(rejection) = dispatcher.check_access(&caller) {
            let rejection = dispatcher.audit.refuse(&caller, rejection).await;
            return Ok(site_result::from_rejection(&rejection, [&trace, &call]).into());
        }
        // A client that no longer waits drops this future.
        let gone = CancelOnDrop(Cancel::default());
        caller.gone = Some(gone.0.clone());
        let mut progress = Progress::new(&context);
        let (printed, mut prints) = mpsc::channel(limits::CHANNEL_DEPTH);
        caller.live_output = Some(printed).filter(|_| progress.is_requested());
        let request = site_call::request(request, &dispatcher.tools);
        let mut reply_future = std::pin::pin!(dispatcher.call(caller, request));
        loop {
            tokio::select! {
                biased;
                reply = &mut reply_future => {
                    progress.end().await;
                    return site_result::from_reply(reply, limits::REPORT_BYTES, [&trace, &call]).map(Into::into);
                }
                Some(text) = prints.recv() => progress.push_output(&text),
                () = progress.due() => progress.notify(),
                // The effect must be recorded, even if the client no longer waits.
                () = context.ct.cancelled(), if !gone.0.is_cancelled() => gone.0.cancel(),
            }
        }
    }
}

fn no_site() -> ToolError {
    ToolError::new(ErrorCode::NoSite, "the call names no tenant and site").with_hint(
        "send the headers X-Tenant-ID and X-Site-ID, or start karyi serve with --tenant and --site",
    )
}
