//! Tools of the suite that need input of the client: they answer with what they need, and are
//! called again with it.

use ring::hmac;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptResponse, GetPromptResult,
    InputRequiredResult, InputResponses,
};
use serde_json::{Value, json};

use super::fixtures::{complete, read};
use super::tools::text;
use karyi::mcp::server::McpContext;

/// The key that seals what a client brings back; the fixtures hold nothing worth a better one.
const KEY: &[u8] = b"a key of the conformance fixtures";

/// A form with one field.
pub fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {field: {"type": kind}},
        "required": [field],
    });
    let params = json!({"message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn sample(prompt: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": 100});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}

fn needed(requests: Value, state: Option<Value>) -> InputRequiredResult {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(seal(&state));
    }
    read(result)
}

/// Answers with what is needed.
pub fn required(requests: Value, state: Option<Value>) -> CallToolResponse {
    needed(requests, state).into()
}

fn seal(state: &Value) -> String {
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, KEY),
        state.to_string().as_bytes(),
    );
    json!({"state": state, "tag": tag.as_ref()}).to_string()
}

/// Reads what was sealed; nothing else is believed.
fn unseal(sealed: &str) -> Result<Value, ErrorData> {
    let parts: Value = serde_json::from_str(sealed).unwrap_or_default();
    match seal(&parts["state"]) == sealed {
        true => Ok(parts["state"].clone()),
        false => Err(ErrorData::invalid_params("the state is not ours", None)),
    }
}

/// What the client says to one of the requests; nothing when it is no answer.
fn given<'a>(responses: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    responses?.get(key).filter(|value| value.is_object())
}

/// Calls one of them, by what it needs.
pub fn call(
    needs: &str,
    request: CallToolRequestParams,
    context: &McpContext,
) -> Result<CallToolResponse, ErrorData> {
    let given = |key: &str| given(request.input_responses.as_ref(), key);
    let state = request.request_state.as_deref().map(unseal).transpose()?;
    let name = form("What is your name?", "name", "string");
    let answer = match needs {
        "elicitation" => match given("user_name") {
            Some(answer) => text(format!("Hello, {}!", answer["content"]["name"])),
            None => required(json!({"user_name": name}), None),
        },
        "sampling" => match given("capital_question") {
            Some(answer) => text(answer["content"]["text"].to_string()),
            None => {
                let question = sample("What is the capital of France?");
                required(json!({"capital_question": question}), None)
            }
        },
        "list_roots" => match given("client_roots") {
            Some(answer) => text(answer["roots"].to_string()),
            None => required(json!({"client_roots": roots()}), None),
        },
        "request_state" | "tampered_state" => match (given("confirm"), state) {
            (Some(_), Some(_)) => text("state-ok"),
            _ => {
                let confirm = form("Please confirm", "ok", "boolean");
                required(json!({"confirm": confirm}), Some(json!("confirm")))
            }
        },
        "multiple_inputs" => {
            let wishes = json!({
                "user_name": name,
                "greeting": sample("Generate a greeting"),
                "client_roots": roots(),
            });
            let keys = ["user_name", "greeting", "client_roots"];
            match state.is_some() && keys.iter().all(|key| given(key).is_some()) {
                true => text("all three came"),
                false => required(wishes, Some(json!("gather"))),
            }
        }
        "multi_round" => {
            let color = form("Step 2: What is your favorite color?", "color", "string");
            let name = form("Step 1: What is your name?", "name", "string");
            match (
                state.and_then(|state| state.as_u64()),
                given("step1"),
                given("step2"),
            ) {
                (Some(2), _, Some(_)) => text("both came"),
                (Some(1), Some(_), _) => required(json!({"step2": color}), Some(json!(2))),
                _ => required(json!({"step1": name}), Some(json!(1))),
            }
        }
        "capabilities" if request.input_responses.is_some() => text("that will do"),
        "capabilities" => by_capability(context),
        _ => panic!("no fixture for {needs}"),
    };
    Ok(answer)
}

/// Asks only for what the client says it can give.
fn by_capability(context: &McpContext) -> CallToolResponse {
    let declared = context.meta.client_capabilities().unwrap_or_default();
    let declared = serde_json::to_value(declared).unwrap();
    let wishes = [
        ("elicitation", form("What is your name?", "name", "string")),
        ("sampling", sample("Generate a greeting")),
        ("roots", roots()),
    ];
    let wishes = wishes
        .into_iter()
        .filter(|(name, _)| declared[*name].is_object());
    let wishes: serde_json::Map<String, Value> = wishes
        .map(|(name, wish)| (format!("{name}_wish"), wish))
        .collect();
    match wishes.is_empty() {
        true => text("the client can give nothing"),
        false => required(Value::Object(wishes), None),
    }
}

/// The prompt that needs input.
pub fn prompt(responses: Option<&InputResponses>) -> GetPromptResponse {
    match given(responses, "user_context") {
        Some(answer) => {
            let text = format!("The context is {}.", answer["content"]["context"]);
            let message = json!({"role": "user", "content": {"type": "text", "text": text}});
            complete::<GetPromptResult>(json!({"messages": [message]})).into()
        }
        None => {
            let context = form("What context should the prompt use?", "context", "string");
            needed(json!({"user_context": context}), None).into()
        }
    }
}
