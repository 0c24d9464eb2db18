//! Handles MCP requests on every transport and in both eras of the protocol.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use karyi_core::limits;

/// Context of a request.
pub type McpContext = RequestContext<RoleServer>;

/// Supported methods. rmcp reports such a request as custom if its parameters do not fit.
const OWN_METHODS: [&str; 4] = ["initialize", "server/discover", "tools/list", "tools/call"];

/// Message for a call whose parameters do not fit.
const INVALID_CALL: &str = "invalid parameters for tools/call";

/// Lists and calls tools.
pub trait Backend: Send + Sync + 'static {
    /// Returns the instructions for models.
    fn instructions(&self) -> String;

    /// Returns the tools that this caller may call, in documentation order.
    fn tools(
        &self,
        context: &McpContext,
    ) -> impl Future<Output = Result<Vec<Tool>, ErrorData>> + Send;

    /// Records a call whose parameters do not fit, and returns its error; the name is empty if the call has none.
    fn refuse_call(
        &self,
        name: &str,
        problem: String,
        context: McpContext,
    ) -> impl Future<Output = ErrorData> + Send;

    /// Calls a tool.
    fn call(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send;
}

/// MCP server on top of a backend.
pub struct Server<B>(pub Arc<B>);

impl<B: Backend> ServerHandler for Server<B> {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_title("karyi");
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(self.0.instructions());
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: McpContext,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.tools(&context).await?;
        page(tools, request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: McpContext,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        let is_gone = version.is_some_and(|version| !version.has_initialize());
        match request.method.as_str() {
            "initialize" if is_gone => Err(no_method()),
            "tools/call" => Err(self.misunderstood_call(request.params, context).await),
            method => Err(misunderstood(method)),
        }
    }

    // Methods that are not declared return an error instead of an empty list.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: McpContext,
    ) -> Result<CompleteResult, ErrorData> {
        Err(misunderstood("completion/complete"))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(misunderstood("prompts/list"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(misunderstood("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(misunderstood("resources/templates/list"))
    }
}

impl<B: Backend> Server<B> {
    /// Builds the error for a call whose parameters do not fit. It names the tool; the backend masks the name of an
    /// unknown one.
    async fn misunderstood_call(&self, params: Option<Value>, context: McpContext) -> ErrorData {
        let params = params.unwrap_or_default();
        let name = params.get("name").and_then(Value::as_str);
        let arguments = params.get("arguments").unwrap_or(&Value::Null);
        let problem = match name {
            Some(name) if !arguments.is_object() && !arguments.is_null() => {
                format!("the arguments of {name} must be an object")
            }
            _ => INVALID_CALL.to_owned(),
        };
        self.0
            .refuse_call(name.unwrap_or_default(), problem, context)
            .await
    }
}

/// Builds the error for a request with an unknown method or wrong parameters. An unknown method is
/// not repeated, because it could contain a secret.
fn misunderstood(method: &str) -> ErrorData {
    match OWN_METHODS.contains(&method) {
        true => ErrorData::invalid_params(format!("invalid parameters for {method}"), None),
        false => no_method(),
    }
}

fn no_method() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method", None)
}

/// Returns one page of a list; the cursor is the index of its first tool.
fn page(tools: Vec<Tool>, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|start| *start > 0 && *start < tools.len())
            .ok_or_else(|| ErrorData::invalid_params("there is no such cursor", None))?,
    };
    let end = start + limits::TOOLS_PER_PAGE;
    let next = (end < tools.len()).then(|| end.to_string());
    let shown = tools.into_iter().skip(start).take(limits::TOOLS_PER_PAGE);
    let mut result = ListToolsResult::with_all_items(shown.collect());
    result.next_cursor = next;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let all: Vec<Tool> = (0..limits::TOOLS_PER_PAGE + 3)
            .map(|n| Tool::new(format!("t{n}"), "", rmcp::model::JsonObject::new()))
            .collect();
        let first = page(all.clone(), None).unwrap();
        assert_eq!(first.tools.len(), limits::TOOLS_PER_PAGE);
        let second = page(all.clone(), first.next_cursor).unwrap();
        assert_eq!(second.tools[..], all[limits::TOOLS_PER_PAGE..]);
        assert_eq!(second.next_cursor, None);
        for cursor in ["0", "-1", "x", "999", ""] {
            let code = page(all.clone(), Some(cursor.into())).unwrap_err().code;
            assert_eq!(code, ErrorCode::INVALID_PARAMS, "{cursor}");
        }
    }
}
