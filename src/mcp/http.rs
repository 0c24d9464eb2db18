//! `/mcp` of the server: streamable HTTP, behind the same door and desk as every other route.
//!
//! A request says where it belongs by headers, by `_meta`, or by what the server was started with.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response};
use axum::middleware::{Next, from_fn_with_state};
use rmcp::model::{CallToolRequestParams, CallToolResponse, RequestMetaObject, Tool};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ErrorCode, ToolError};
use crate::http::front::Front;
use crate::http::{headers, routes};
use crate::limits;
use crate::mcp::progress::Progress;
use crate::mcp::server::{Asked, Backend, Server};
use crate::mcp::{answer, listing, site};
use crate::service::Desk;
use crate::service::caller::{self, Caller};
use crate::service::desk::ListRequest;
use crate::service::principal::Principal;

/// The site that requests are about which name none.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Its tenant.
    pub tenant: Option<String>,
    /// The site.
    pub site: Option<String>,
}

/// What callers may call.
pub struct Remote {
    front: Arc<Front>,
    defaults: Defaults,
    /// Held as long as a session of a client stands.
    _place: Option<OwnedSemaphorePermit>,
}

/// Returns the route.
pub fn router(front: &Arc<Front>, defaults: Defaults) -> Router {
    router_with(front, defaults, |server| server)
}

/// Returns the route with something in front of each server, as the conformance suite needs it.
pub fn router_with<H: ServerHandler>(
    front: &Arc<Front>,
    defaults: Defaults,
    dress: impl Fn(Server<Remote>) -> H + Send + Sync + 'static,
) -> Router {
    // The door has looked at host and origin already.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = limits::MAX_BODY_BYTES;
    let (streams, ending) = (config.cancellation_token.clone(), front.ending());
    // Streams that stay open end with the server.
    tokio::spawn(async move {
        ending.cancelled().await;
        streams.cancel();
    });
    let places = Arc::new(Semaphore::new(limits::MAX_MCP_SESSIONS));
    let shared = Arc::clone(front);
    let make = move || {
        let place = Arc::clone(&places).try_acquire_owned();
        let full = |_| io::Error::other("too many sessions");
        Ok(dress(Server(Arc::new(Remote {
            front: Arc::clone(&shared),
            defaults: defaults.clone(),
            _place: Some(place.map_err(full)?),
        }))))
    };
    let service =
        StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), config);
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(Arc::clone(front), admitted))
}

/// Lets a request through whose caller is known and whose body has come.
async fn admitted(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response<Body> {
    #[allow(clippy::cast_precision_loss)]
    let now = jiff::Timestamp::now().as_second() as f64;
    let credential = headers::credential(request.headers());
    let principal = match front.desk.guard().identify(&credential, now) {
        Ok(principal) => principal,
        Err(rejection) => return routes::refused(&front, request.headers(), rejection).await,
    };
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(principal);
    let body = match parts.method {
        Method::POST => match routes::read_body(&parts, body).await {
            Ok(body) => Body::from(body),
            Err(rejection) => return routes::refused(&front, &parts.headers, rejection).await,
        },
        _ => body,
    };
    next.run(Request::from_parts(parts, body)).await
}

/// Who asks, and where it belongs when that is said.
struct Asking {
    principal: Principal,
    caller: Option<Caller>,
}

impl Remote {
    fn desk(&self) -> &Desk {
        &self.front.desk
    }

    fn asking(&self, asked: &Asked) -> Result<Asking, ErrorData> {
        let parts = asked.extensions.get::<Parts>();
        let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
        let unknown = || ErrorData::internal_error("the caller is not known", None);
        let (parts, principal) = parts.zip(principal).ok_or_else(unknown)?;
        Ok(Asking {
            principal: principal.clone(),
            caller: self.caller(&asked.meta, &parts.headers)?,
        })
    }

    /// Returns the caller, when tenant and site are said.
    fn caller(
        &self,
        meta: &RequestMetaObject,
        headers: &HeaderMap,
    ) -> Result<Option<Caller>, ErrorData> {
        let place = |key: &str, header: &str, own: &Option<String>| {
            let said = header_id(headers, header)?;
            let said = said.or(site::named(meta, key)?);
            Ok::<_, ErrorData>(said.or_else(|| own.clone()))
        };
        let tenant = place("tenant_id", "x-tenant-id", &self.defaults.tenant)?;
        let site_id = place("site_id", "x-site-id", &self.defaults.site)?;
        let Some((tenant, site_id)) = tenant.zip(site_id) else {
            return Ok(None);
        };
        let mut caller = site::caller("mcp", meta, tenant, site_id)?;
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

/// Returns a header that is an identifier.
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

impl Backend for Remote {
    async fn tools(&self, asked: &Asked) -> Result<Vec<Tool>, ErrorData> {
        let Asking { principal, caller } = self.asking(asked)?;
        // Without a site there is none to call its tools for.
        let Some(caller) = caller else {
            return Ok(Vec::new());
        };
        let refused = |rejection: crate::service::Rejection| {
            ErrorData::invalid_request(rejection.detail, None)
        };
        self.desk()
            .enter(&caller, &principal)
            .await
            .map_err(refused)?;
        let listed = self
            .desk()
            .list(&caller, &principal, &ListRequest::default())
            .await
            .map_err(refused)?;
        let is_listed = |name: &str| listed.iter().any(|tool| tool.name == name);
        let offered = self.desk().tools().iter();
        Ok(offered
            .filter(|tool| is_listed(tool.name()))
            .map(|tool| listing::tool(&tool.entry))
            .collect())
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        asked: Asked,
    ) -> Result<CallToolResponse, ErrorData> {
        let Asking { principal, caller } = self.asking(&asked)?;
        let Some(caller) = caller else {
            return match self
                .desk()
                .tools()
                .iter()
                .any(|tool| tool.name() == request.name)
            {
                true => Ok(answer::of_error(&no_site()).into()),
                false => Err(answer::unknown_tool(&request.name)),
            };
        };
        let trace = caller.trace_id.clone();
        if let Err(rejection) = self.desk().enter(&caller, &principal).await {
            return Ok(answer::of_rejection(&rejection, &trace).into());
        }
        let Ok(_permit) = Arc::clone(&self.front.calls).try_acquire_owned() else {
            let busy =
                crate::service::Rejection::overloaded("too many calls are under way").after(1);
            return Ok(answer::of_rejection(&busy, &trace).into());
        };
        let (is_gone, cancel) = (Arc::clone(&caller.is_gone), caller.cancel.clone());
        let mut called = std::pin::pin!(self.run(caller, principal, request));
        let mut progress = Progress::new(&asked);
        loop {
            tokio::select! {
                biased;
                result = &mut called => {
                    progress.end().await;
                    return result;
                }
                () = progress.due() => progress.tell(),
                // What it did must be recorded, whoever waits for it.
                () = asked.ct.cancelled(), if !cancel.is_cancelled() => {
                    is_gone.store(true, Ordering::Relaxed);
                    cancel.cancel();
                }
            }
        }
    }
}

impl Remote {
    async fn run(
        &self,
        caller: Caller,
        principal: Principal,
        request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let desk = Arc::clone(&self.front.desk);
        let (own, known) = (caller.clone(), principal.clone());
        // A client that goes away does not end a call.
        let task = tokio::spawn(async move { site::call(&desk, own, &known, request).await });
        match task.await {
            Ok(result) => result.map(Into::into),
            Err(_) => {
                let rejection = routes::broken(&self.front, &caller, &principal).await;
                Err(ErrorData::internal_error(rejection.detail, None))
            }
        }
    }
}

fn no_site() -> ToolError {
    ToolError::new(ErrorCode::NoSite, "the call names no tenant and site").with_hint(
        "send the headers X-Tenant-ID and X-Site-ID, or start karyi serve with --tenant and --site",
    )
}
