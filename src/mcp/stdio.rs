//! `karyi mcp`: one connection, on standard input and output, for the user who started it.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::{ErrorData, ServiceExt};
use tokio::sync::mpsc;

use crate::exec::cancel::Cancel;
use crate::mcp::executor::{Executor, PrepareSession};
use crate::mcp::server::{Backend, McpContext, Server};
use crate::mcp::stdio_transport::{self, StdioTransport};
use crate::mcp::tool_result;
use crate::tool::context::Boxed;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_vault::session::Secrets;

/// What a model is told of the server as a whole.
const INSTRUCTIONS: &str = "Calls run as if one after another, in the order they came. `command` runs \
    in one shell that stays: directory, variables and functions are there for the next call. A call \
    whose command goes on has an `id`; that is the job's id for `input`, `ctrl` and `read` (src \
    job:ID). Secrets: write $KARYI{NAME} where the value belongs; you never see it. Where a \
    description shows XML, such as <input> or <read>, it means the tool of that name.";

/// Tools that are offered background those of the session.
pub trait SiteTools: Send + Sync {
    /// Lists them.
    fn tools(&self) -> Vec<Tool>;

    /// Runs a call; these secrets are masked in what is written about it.
    fn call<'a>(
        &'a self,
        secrets: Secrets,
        request: CallToolRequestParams,
        context: &'a McpContext,
    ) -> Boxed<'a, Result<CallToolResponse, ErrorData>>;

    /// Ends; returns how many records of calls are lost because they could not be written.
    fn close(&self) -> Boxed<'_, usize>;
}

/// Returns the secrets of the session, as they are now; it is prepared for that when no call did so.
pub type SecretsGetter = Arc<dyn Fn() -> Boxed<'static, Result<Secrets, ToolError>> + Send + Sync>;

/// Starts what goes on background the calls; it ends when what is returned is dropped.
pub type StartBackground = Box<dyn FnOnce(SecretsGetter) -> Box<dyn Send>>;

/// How a connection is served.
pub struct StdioOptions {
    /// Makes what its session begins with.
    pub prepare: PrepareSession,
    /// Whether that is made before anything is answered.
    pub is_eager: bool,
    /// The site.
    pub site: Option<Box<dyn SiteTools>>,
    /// What goes on background the calls.
    pub background: StartBackground,
}

/// What the user may call.
struct StdioBackend {
    executor: Executor,
    site: Option<Box<dyn SiteTools>>,
}

impl Backend for StdioBackend {
    fn instructions(&self) -> String {
        INSTRUCTIONS.to_owned()
    }

    async fn tools(&self, _: &McpContext) -> Result<Vec<Tool>, ErrorData> {
        let mut tools = self.executor.tools();
        tools.extend(self.site.iter().flat_map(|site| site.tools()));
        Ok(tools)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        match &self.site {
            Some(site) if !self.executor.has(&request.name) => {
                let secrets = match self.executor.secrets().await {
                    Ok(secrets) => secrets,
                    Err(error) => return Ok(tool_result::from_error(&error).into()),
                };
                site.call(secrets, request, &context).await
            }
            _ => self.executor.call(request, &context).await,
        }
    }
}

/// Serves until the client has gone or `stopped`; returns how many records of calls are lost because the
/// ledger could not be written.
///
/// # Errors
/// What was to be made at once could not be, or a thread could not be started.
pub async fn serve(
    options: StdioOptions,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<usize> {
    let ending = Cancel::default();
    let connection = Arc::new(StdioBackend {
        executor: Executor::new(options.prepare, ending.clone()),
        site: options.site,
    });
    if options.is_eager {
        let opened = connection.executor.open().await;
        opened.map_err(|error| anyhow::anyhow!("{}: {}", error.code.as_str(), error.message))?;
    }
    let backend = Arc::clone(&connection);
    let secrets: SecretsGetter = Arc::new(move || {
        let connection = Arc::clone(&backend);
        Box::pin(async move { connection.executor.secrets().await })
    });
    let background = (options.background)(secrets);
    let (transport, writer) = StdioTransport::new(stdin()?, tokio::io::stdout());
    let ended = transport.ended();
    let mut answering = std::pin::pin!(answer_all(Arc::clone(&connection), transport));
    let is_answered = tokio::select! {
        () = &mut answering => true,
        () = stopped => false,
        () = ended.cancelled_for(limits::MCP_DRAIN) => false,
    };
    ending.cancel();
    if !is_answered {
        let _ = tokio::time::timeout(limits::CANCEL_GRACE, answering).await;
    }
    drop(background);
    connection.executor.close().await;
    let _ = tokio::time::timeout(limits::CANCEL_GRACE, writer).await;
    Ok(match &connection.site {
        Some(site) => site.close().await,
        None => 0,
    })
}

/// Reads standard input in a thread of its own, which nobody waits for.
fn stdin() -> anyhow::Result<mpsc::Receiver<stdio_transport::InputLine>> {
    let (sender, receiver) = mpsc::channel(limits::MAX_MCP_MESSAGES);
    std::thread::Builder::new()
        .name("messages".into())
        .spawn(move || stdio_transport::read_lines(io::stdin(), &sender))
        .context("starting to read")?;
    Ok(receiver)
}

/// Answers until nothing more can come. What does not begin as a connection should is answered, and
/// the next message may begin it.
async fn answer_all(connection: Arc<StdioBackend>, transport: StdioTransport) {
    let ended = transport.ended();
    while !ended.is_cancelled() {
        let server = Server(Arc::clone(&connection));
        match server.serve(transport.clone()).await {
            Ok(running) => {
                if let Ok(QuitReason::Closed | QuitReason::Cancelled) | Err(_) =
                    running.waiting().await
                {
                    return;
                }
            }
            Err(
                ServerInitializeError::ConnectionClosed(_)
                | ServerInitializeError::TransportError { .. },
            ) => return,
            Err(_) => {}
        }
    }
}
