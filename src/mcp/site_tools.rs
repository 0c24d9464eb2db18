//! Tools of one site for the client of `karyi mcp`.

use std::pin::Pin;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use tokio::sync::OnceCell;

use crate::exec::cancel::{Cancel, CancelOnDrop};
use crate::mcp::server::McpContext;
use crate::mcp::stdio::SiteTools;
use crate::mcp::{listing, site_call, site_result, tool_result};
use crate::service::principal::{NameSet, Principal};
use crate::service::{CallReply, Caller, Dispatcher, Rejection};
use crate::tool::context::Boxed;
use crate::tool::spec::Family;
use crate::tools;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_store::sqlite::ServerLock;
use karyi_vault::session::Secrets;

/// Dispatcher, with the lock on its database.
pub type OpenSite = (Arc<Dispatcher>, ServerLock);
/// Future of opening a site.
pub type OpenSiteFuture = Pin<Box<dyn Future<Output = anyhow::Result<OpenSite>> + Send>>;

/// Site whose tools are offered too.
pub struct SiteOptions {
    /// Tenant.
    pub tenant: String,
    /// Site.
    pub site: String,
    /// Bytes of the texts of a result.
    pub report_bytes: usize,
    /// Opens the site's data; these secrets are masked in its records.
    pub open: Box<dyn Fn(Secrets) -> OpenSiteFuture + Send + Sync>,
}

/// Site that opens at the first call of one of its tools.
pub struct OfferedSite {
    options: SiteOptions,
    opened: OnceCell<OpenSite>,
}

impl OfferedSite {
    /// Creates the backend of a site.
    #[must_use]
    pub fn new(options: SiteOptions) -> Self {
        let opened = OnceCell::new();
        Self { options, opened }
    }

    async fn open(&self, secrets: Secrets) -> anyhow::Result<&Arc<Dispatcher>> {
        let open = || (self.options.open)(secrets);
        let (dispatcher, _) = self.opened.get_or_try_init(open).await?;
        Ok(dispatcher)
    }

    /// Returns the caller of a request: the user, for one site.
    fn caller(&self, context: &McpContext) -> Result<Caller, ErrorData> {
        let (tenant, site) = (&self.options.tenant, &self.options.site);
        let mut caller = site_call::caller("stdio", &context.meta, tenant.clone(), site.clone())?;
        caller.principal = Arc::new(Principal {
            id: "stdio".into(),
            tenants: NameSet::of([tenant.clone()]),
            sites: NameSet::of([site.clone()]),
            ..Principal::local()
        });
        Ok(caller)
    }
}

impl SiteTools for OfferedSite {
    fn tools(&self) -> Vec<Tool> {
        let all = tools::all();
        all.family(Family::Site).map(listing::tool).collect()
    }

    fn has(&self, name: &str) -> bool {
        let all = tools::all();
        all.family(Family::Site).any(|tool| tool.spec.name == name)
    }

    fn call<'a>(
        &'a self,
        secrets: Secrets,
        request: CallToolRequestParams,
        context: &'a McpContext,
    ) -> Boxed<'a, Result<CallToolResponse, ErrorData>> {
        Box::pin(site_call(self, secrets, request, context))
    }

    fn refuse<'a>(
        &'a self,
        secrets: Secrets,
        (name, problem): (&'a str, String),
        context: &'a McpContext,
    ) -> Boxed<'a, ErrorData> {
        Box::pin(async move {
            let (caller, dispatcher) = (self.caller(context), self.open(secrets).await);
            let (Ok(mut caller), Ok(dispatcher)) = (caller, dispatcher) else {
                return ErrorData::invalid_params(problem, None);
            };
            name.clone_into(&mut caller.tool_name);
            let refused = dispatcher
                .audit
                .refuse(&caller, Rejection::invalid(problem));
            ErrorData::invalid_params(refused.await.detail, None)
        })
    }

    fn close(&self) -> Boxed<'_, usize> {
        Box::pin(async {
            match self.opened.get() {
                Some((dispatcher, _)) => dispatcher.audit.flush().await,
                None => 0,
            }
        })
    }
}

/// Hint for data of a site that cannot be opened.
const CHECK_DATA: &str = "check the files that --db and --data name, or the defaults";

async fn site_call(
    site: &OfferedSite,
    secrets: Secrets,
    request: CallToolRequestParams,
    context: &McpContext,
) -> Result<CallToolResponse, ErrorData> {
    let dispatcher = match site.open(secrets).await {
        Ok(dispatcher) => dispatcher,
        Err(error) => {
            let message = format!("the data of the site cannot be opened: {error:#}");
            let error = ToolError::new(ErrorCode::Unavailable, message).with_hint(CHECK_DATA);
            return Ok(tool_result::from_error(&error).into());
        }
    };
    let mut caller = site.caller(context)?;
    let trace = dispatcher.audit.masked(&caller).trace_id.clone();
    let call = caller.call_id.clone();
    let reply = match dispatcher.check_access(&caller) {
        Ok(()) => {
            let gone = CancelOnDrop(Cancel::default());
            caller.gone = Some(gone.0.clone());
            let request = site_call::request(request, &dispatcher.tools);
            dispatcher.call(caller, request).await
        }
        Err(rejection) => CallReply::Refused(dispatcher.audit.refuse(&caller, rejection).await),
    };
    site_result::from_reply(reply, site.options.report_bytes, [&trace, &call]).map(Into::into)
}
