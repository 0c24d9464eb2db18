//! What the official suite asks of a server beyond tools: it stands in front of karyi's own MCP
//! front end, which answers everything else. The texts are in `fixtures.json`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{SubscriptionContext, SubscriptionSink};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{rounds, tools};
use karyi::mcp::server::McpContext;

/// What the suite expects to find.
#[derive(Deserialize)]
pub struct Data {
    tools: Vec<Value>,
    /// What tools answer that do nothing else.
    pub answers: Map<String, Value>,
    /// What tools ask the user.
    pub forms: Map<String, Value>,
    resources: Value,
    templates: Value,
    contents: Map<String, Value>,
    prompts: Value,
    messages: Map<String, Value>,
}

/// The file of this module.
pub static DATA: LazyLock<Data> =
    LazyLock::new(|| serde_json::from_str(include_str!("fixtures.json")).unwrap());

/// Reads what is written here as JSON.
pub fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Reads a result that needs nothing more; clients before 2026-07-28 are not told that.
pub fn complete<T: DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    read(value)
}

/// Everybody who listens for changes.
#[derive(Clone, Default)]
pub struct Listeners(Arc<(AtomicU64, Mutex<BTreeMap<u64, SubscriptionSink>>)>);

impl Listeners {
    pub fn all(&self) -> Vec<SubscriptionSink> {
        self.0.1.lock().unwrap().values().cloned().collect()
    }
}

/// A server with the fixtures in front of it.
#[derive(Clone)]
pub struct Fixtures<S> {
    front: S,
    listeners: Listeners,
}

impl<S> Fixtures<S> {
    pub fn new(front: S, listeners: Listeners) -> Self {
        Self { front, listeners }
    }
}

impl<S: ServerHandler> ServerHandler for Fixtures<S> {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.front.get_info();
        let own = json!({
            "completions": {}, "logging": {},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "tools": {"listChanged": true},
        });
        info.capabilities = read::<ServerCapabilities>(own);
        info
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let own = DATA.tools.iter().find(|tool| tool["name"] == name);
        own.map(|tool| read(tool.clone()))
            .or_else(|| self.front.get_tool(name))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: McpContext,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.front.list_tools(request, context).await?;
        if listed.next_cursor.is_none() {
            listed
                .tools
                .extend(DATA.tools.iter().cloned().map(read::<Tool>));
        }
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(needed) = request.name.strip_prefix("test_input_required_result_") {
            let needed = needed.to_owned();
            return rounds::call(&needed, request, &context);
        }
        if DATA.tools.iter().any(|tool| tool["name"] == *request.name) {
            return tools::call(request, &context, &self.listeners).await;
        }
        self.front.call_tool(request, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        let found = complete::<ListResourcesResult>(json!({"resources": DATA.resources}));
        Ok(found.with_ttl_ms(60_000))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(complete(json!({"resourceTemplates": DATA.templates})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: McpContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/");
        let content = match id.and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) => {
                let text =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                Some(json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()}))
            }
            None => DATA.contents.get(uri).cloned(),
        };
        let missing = || ErrorData::resource_not_found("there is none", Some(json!({"uri": uri})));
        let content = content.ok_or_else(missing)?;
        Ok(complete::<ReadResourceResult>(json!({"contents": [content]})).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: McpContext) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: McpContext,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(complete(json!({"prompts": DATA.prompts})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: McpContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return Ok(rounds::prompt(request.input_responses.as_ref()));
        }
        let found = DATA.messages.get(&request.name);
        let unknown = || ErrorData::invalid_params("there is no such prompt", None);
        let mut text = found.ok_or_else(unknown)?.to_string();
        for (name, value) in request.arguments.unwrap_or_default() {
            text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap());
        }
        let messages: Value = serde_json::from_str(&text).unwrap();
        Ok(complete::<GetPromptResult>(json!({"messages": messages})).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: McpContext,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = &request.argument.value;
        let words = ["paris", "park", "party", "hello"];
        let found = words.iter().filter(|word| word.starts_with(begun));
        Ok(complete(
            json!({"completion": {"values": found.collect::<Vec<_>>()}}),
        ))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: McpContext) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (next, listening) = &*self.listeners.0;
        let id = next.fetch_add(1, Ordering::Relaxed);
        listening.lock().unwrap().insert(id, context.sink().clone());
        context.cancelled().await;
        listening.lock().unwrap().remove(&id);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: McpContext,
    ) -> Result<CustomResult, ErrorData> {
        self.front.on_custom_request(request, context).await
    }
}
