//! `karyi mcp`: one connection on standard input and output, for the user who started it.

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
use crate::tools::offer::Offer;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_vault::session::Secrets;

/// Instructions for models.
const INSTRUCTIONS: &str = "Calls run as if one after another, in the order of arrival.";

/// Instructions about the shell.
const OF_COMMANDS: &str = "All `command` \
    calls share one shell: directory, variables and functions carry over to the next call. A call \
    whose command keeps running returns an `id`, the job's id for `input`, `ctrl` and `read` (src \
    job:ID).";

/// Instructions about secrets.
const OF_SECRETS: &str =
    "Secrets: write $KARYI{NAME} where the value belongs; you never see the value.";

/// Tools of a site, offered beside those of the session.
pub trait SiteTools: Send + Sync {
    /// Returns the listings of the tools.
    fn tools(&self) -> Vec<Tool>;

    /// Returns true if a tool of this name exists.
    fn has(&self, name: &str) -> bool;

    /// Records a call, by its name and its problem, whose parameters do not fit, and returns its error.
    fn refuse<'a>(
        &'a self,
        secrets: Secrets,
        refused: (&'a str, String),
        context: &'a McpContext,
    ) -> Boxed<'a, ErrorData>;

    /// Runs a call; these secrets are masked in its records.
    fn call<'a>(
        &'a self,
        secrets: Secrets,
        request: CallToolRequestParams,
        context: &'a McpContext,
    ) -> Boxed<'a, Result<CallToolResponse, ErrorData>>;

    /// Writes the records that are left; returns how many are lost.
    fn close(&self) -> Boxed<'_, usize>;
}

/// Returns the current secrets of the session; prepares it first if necessary.
pub type SecretsGetter = Arc<dyn Fn() -> Boxed<'static, Result<Secrets, ToolError>> + Send + Sync>;

/// Starts background work of the connection; it ends when the returned value is dropped.
pub type StartBackground = Box<dyn FnOnce(SecretsGetter) -> Box<dyn Send>>;

/// Options of a connection.
pub struct StdioOptions {
    /// Local tools.
    pub offer: Offer,
    /// Creates the session.
    pub prepare: PrepareSession,
    /// Sentence about the shell, for the model.
    pub shell: String,
    /// True if the session is created before the first message.
    pub is_eager: bool,
    /// Site whose tools are offered too.
    pub site: Option<Box<dyn SiteTools>>,
    /// Background work.
    pub background: StartBackground,
}

/// Backend for local tools and one site.
struct StdioBackend {
    executor: Executor,
    shell: String,
    site: Option<Box<dyn SiteTools>>,
}

impl Backend for StdioBackend {
    fn instructions(&self) -> String {
        let of_commands = self.executor.has("command").then_some(OF_COMMANDS);
        let shell = of_commands.map(|_| self.shell.as_str());
        let own = self.executor.own_rules();
        let parts = [
            Some(INSTRUCTIONS),
            of_commands,
            Some(OF_SECRETS),
            shell,
            Some(own.trim_end()),
        ];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }

    async fn tools(&self, _: &McpContext) -> Result<Vec<Tool>, ErrorData> {
        let mut tools = self.executor.tools();
        tools.extend(self.site.iter().flat_map(|site| site.tools()));
        Ok(tools)
    }

    async fn refuse_call(&self, name: &str, problem: String, context: McpContext) -> ErrorData {
        let site = self.site.as_ref().filter(|site| site.has(name));
        if let Some(site) = site {
            return match self.executor.secrets().await {
                Ok(secrets) => site.refuse(secrets, (name, problem), &context).await,
                Err(_) => ErrorData::invalid_params(problem, None),
            };
        }
        if !name.is_empty() && !self.executor.has(name) {
            let call = CallToolRequestParams::new(name.to_owned());
            if let Err(error) = self.executor.call(call, &context).await {
                return error;
            }
        }
        ErrorData::invalid_params(problem, None)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        match &self.site {
            Some(site) if site.has(&request.name) => {
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

/// Serves until the client disconnects or `stopped` completes; returns the number of records lost
/// because the ledger could not be written.
///
/// # Errors
/// An eager session cannot be created, or a thread cannot be started.
pub async fn serve(
    options: StdioOptions,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<usize> {
    let ending = Cancel::default();
    let connection = Arc::new(StdioBackend {
        executor: Executor::new(options.offer, options.prepare, ending.clone()),
        shell: options.shell,
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

/// Reads standard input on a detached thread.
fn stdin() -> anyhow::Result<mpsc::Receiver<stdio_transport::InputLine>> {
    let (sender, receiver) = mpsc::channel(limits::MAX_MCP_MESSAGES);
    std::thread::Builder::new()
        .name("messages".into())
        .spawn(move || stdio_transport::read_lines(io::stdin(), &sender))
        .context("starting to read")?;
    Ok(receiver)
}

/// Serves until the end of input. After a malformed handshake the next message may start a new one.
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
