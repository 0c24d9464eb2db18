//! Tools of the suite that speak with the client while they run.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ErrorData,
    ServerNotification, ServerRequest,
};
use serde_json::{Value, json};

use super::fixtures::{DATA, Listeners, complete, read};
use super::rounds;
use karyi::mcp::server::Asked;

/// Answers with one text.
pub fn text(text: impl Into<String>) -> CallToolResponse {
    let text: String = text.into();
    complete::<CallToolResult>(json!({"content": [{"type": "text", "text": text}]})).into()
}

/// Calls one of them.
pub async fn call(
    request: CallToolRequestParams,
    asked: &Asked,
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
        "test_tool_with_logging" => logging(asked).await,
        "test_tool_with_progress" => progress(asked).await,
        "test_logging_tool" => {
            if let Some(level) = asked.meta.log_level() {
                log(asked, json!(level), "asked for").await;
            }
            text("done")
        }
        "test_sampling" => sample(asked, argument("prompt")).await,
        "test_elicitation" => elicit(asked, &request.name, argument("message")).await,
        "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            elicit(asked, &request.name, json!("Please choose")).await
        }
        "test_streaming_elicitation" => {
            let form = rounds::form("Please give a value", "value", "string");
            rounds::required(json!({"value": form}), None)
        }
        "test_missing_capability" => needs_sampling(asked)?,
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

async fn tell(asked: &Asked, notification: Value) {
    let notification = read::<ServerNotification>(notification);
    asked.peer.send_notification(notification).await.unwrap();
}

async fn log(asked: &Asked, level: Value, words: &str) {
    let params = json!({"level": level, "logger": "fixtures", "data": words});
    tell(
        asked,
        json!({"method": "notifications/message", "params": params}),
    )
    .await;
}

async fn logging(asked: &Asked) -> CallToolResponse {
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        log(asked, json!("info"), words).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("logged three times")
}

async fn progress(asked: &Asked) -> CallToolResponse {
    let token = asked.meta.get_progress_token();
    for step in [0, 50, 100] {
        if let Some(token) = &token {
            let params = json!({"progressToken": token, "progress": step, "total": 100});
            tell(
                asked,
                json!({"method": "notifications/progress", "params": params}),
            )
            .await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("told three times")
}

/// Asks the client; what it says, or why it says nothing.
async fn ask(asked: &Asked, method: &str, params: Value) -> Result<Value, String> {
    let request = read::<ServerRequest>(json!({"method": method, "params": params}));
    let answer = asked.peer.send_request(request).await;
    answer
        .map(|answer| serde_json::to_value(answer).unwrap())
        .map_err(|error| error.to_string())
}

fn failed(words: &str) -> CallToolResponse {
    let content = json!([{"type": "text", "text": words}]);
    complete::<CallToolResult>(json!({"isError": true, "content": content})).into()
}

async fn sample(asked: &Asked, prompt: Value) -> CallToolResponse {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": 100});
    match ask(asked, "sampling/createMessage", params).await {
        Ok(answer) => text(format!("LLM response: {}", answer["content"]["text"])),
        Err(error) => failed(&error),
    }
}

async fn elicit(asked: &Asked, tool: &str, message: Value) -> CallToolResponse {
    let params = json!({"message": message, "requestedSchema": DATA.forms[tool]});
    match ask(asked, "elicitation/create", params).await {
        Ok(answer) => text(format!(
            "User response: action={}, content={}",
            answer["action"].as_str().unwrap(),
            answer["content"]
        )),
        Err(error) => failed(&error),
    }
}

fn needs_sampling(asked: &Asked) -> Result<CallToolResponse, ErrorData> {
    let declared = asked.meta.client_capabilities().unwrap_or_default();
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
