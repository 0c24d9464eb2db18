//! Tools of the suite that speak with the client while they run.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ErrorData,
    ServerNotification, ServerRequest,
};
use serde_json::{Value, json};

use super::fixtures::{DATA, Listeners, complete, read};
use super::rounds;
use karyi::mcp::server::McpContext;

/// Answers with one text.
pub fn text(text: impl Into<String>) -> CallToolResponse {
    let text: String = text.into();
    complete::<CallToolResult>(json!({"content": [{"type": "text", "text": text}]})).into()
}

/// Calls one of them.
pub async fn call(
    request: CallToolRequestParams,
    context: &McpContext,
    listeners: &Listeners,
) -> Result<CallToolResponse, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.cloned().unwrap_or_default()
    };
    let answer = match &*request.name {
        name if DATA.answers.contains_key(name) => {
            complete::<CallToolResult>(DATA.answers[name].clone()).into()
        }
        "test_tool_with_logging" => logging(context).await,
        "test_tool_with_progress" => progress(context).await,
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(context, json!(level), "asked for").await;
            }
            text("done")
        }
        "test_sampling" => sample(context, argument("prompt")).await,
        "test_elicitation" => elicit(context, &request.name, argument("message")).await,
        "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            elicit(context, &request.name, json!("Please choose")).await
        }
        "test_streaming_elicitation" => {
            let form = rounds::form("Please give a value", "value", "string");
            rounds::required(json!({"value": form}), None)
        }
        "test_missing_capability" => needs_sampling(context)?,
        "test_trigger_tool_change" => {
            for listener in listeners.all() {
                let _ = listener.notify_tool_list_changed().await;
            }
            text("the tools changed")
        }
        "test_trigger_prompt_change" => {
            for listener in listeners.all() {
                let _ = listener.notify_prompt_list_changed().await;
            }
            text("the prompts changed")
        }
        "test_custom_header" => text(argument("value").as_str().unwrap_or_default()),
        name => panic!("no fixture for {name}"),
    };
    Ok(answer)
}

async fn tell(context: &McpContext, notification: Value) {
    let notification = read::<ServerNotification>(notification);
    context.peer.send_notification(notification).await.unwrap();
}

async fn log(context: &McpContext, level: Value, words: &str) {
    let params = json!({"level": level, "logger": "fixtures", "data": words});
    tell(
        context,
        json!({"method": "notifications/message", "params": params}),
    )
    .await;
}

async fn logging(context: &McpContext) -> CallToolResponse {
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        log(context, json!("info"), words).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("logged three times")
}

async fn progress(context: &McpContext) -> CallToolResponse {
    let token = context.meta.get_progress_token();
    for step in [0, 50, 100] {
        if let Some(token) = &token {
            let params = json!({"progressToken": token, "progress": step, "total": 100});
            tell(
                context,
                json!({"method": "notifications/progress", "params": params}),
            )
            .await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("told three times")
}

/// Asks the client; what it says, or why it says nothing.
async fn ask(context: &McpContext, method: &str, params: Value) -> Result<Value, String> {
    let request = read::<ServerRequest>(json!({"method": method, "params": params}));
    let answer = context.peer.send_request(request).await;
    answer
        .map(|answer| serde_json::to_value(answer).unwrap())
        .map_err(|error| error.to_string())
}

fn failed(words: &str) -> CallToolResponse {
    let content = json!([{"type": "text", "text": words}]);
    complete::<CallToolResult>(json!({"isError": true, "content": content})).into()
}

async fn sample(context: &McpContext, prompt: Value) -> CallToolResponse {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": 100});
    match ask(context, "sampling/createMessage", params).await {
        Ok(answer) => text(format!("LLM response: {}", answer["content"]["text"])),
        Err(error) => failed(&error),
    }
}

async fn elicit(context: &McpContext, tool: &str, message: Value) -> CallToolResponse {
    let params = json!({"message": message, "requestedSchema": DATA.forms[tool]});
    match ask(context, "elicitation/create", params).await {
        Ok(answer) => text(format!(
            "User response: action={}, content={}",
            answer["action"].as_str().unwrap(),
            answer["content"]
        )),
        Err(error) => failed(&error),
    }
}

fn needs_sampling(context: &McpContext) -> Result<CallToolResponse, ErrorData> {
    let declared = context.meta.client_capabilities().unwrap_or_default();
    let declared = serde_json::to_value(declared).unwrap();
    match declared["sampling"].is_object() {
        true => Ok(text("the client can sample")),
        false => Err(ErrorData::missing_required_client_capability(read::<
            ClientCapabilities,
        >(
            json!({"sampling": {}}),
        ))),
    }
}
