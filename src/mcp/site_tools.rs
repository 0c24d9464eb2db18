//! Tools of one site for the client of `karyi mcp`.

use std::pin::Pin;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use tokio::sync::OnceCell;

use crate::exec::cancel::Cancel;
use crate::http::connection::CancelOnDrop;
use crate::mcp::server::McpContext;
use crate::mcp::stdio::SiteTools;
use crate::mcp::{listing, site_call, site_result, tool_result};
use crate::service::Dispatcher;
use crate::service::principal::{NameSet, Principal};
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
    OfferedSite { options, opened }: &OfferedSite,
    secrets: Secrets,
    request: CallToolRequestParams,
    context: &McpContext,
) -> Result<CallToolResponse, ErrorData> {
    let (dispatcher, _) = match opened.get_or_try_init(|| (options.open)(secrets)).await {
        Ok(opened) => opened,
        Err(error) => {
            let message = format!("the data of the site cannot be opened: {error:#}");
            let error = ToolError::new(ErrorCode::Unavailable, message).with_hint(CHECK_DATA);
            return Ok(tool_result::from_error(&error).into());
        }
    };
    let (tenant, site_id) = (options.tenant.clone(), options.site.clone());
    let mut caller = site_call::caller("stdio", &context.meta, tenant, site_id)?;
    let (trace, call) = (caller.trace_id.clone(), caller.call_id.clone());
    let gone = CancelOnDrop(Cancel::default());
    (caller.principal, caller.gone) = (Arc::new(user(options)), Some(gone.0.clone()));
    let request = site_call::request(request, &dispatcher.tools);
    let reply = dispatcher.call(caller, request).await;
    site_result::from_reply(reply, options.report_bytes, [&trace, &call]).map(Into::into)
}

/// Returns the principal of the user, for one site.
fn user(options: &SiteOptions) -> Principal {
    Principal {
        id: "stdio".into(),
        tenants: NameSet::of([options.tenant.clone()]),
        sites: NameSet::of([options.site.clone()]),
        ..Principal::local()
    }
}
