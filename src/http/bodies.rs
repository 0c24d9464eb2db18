//! Reads and validates request bodies.

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::http::headers::is_json;
use crate::service::caller::{self, BodyContext};
use crate::service::dispatcher::ListRequest;
use crate::service::input_check::FieldProblem;
use crate::service::{CallRequest, Rejection};
use crate::tool::json_text::{self, Object};
use karyi_core::limits;

/// Reads a JSON body within limits of size and time.
///
/// # Errors
/// 408, 413, 415, 400 if the body was cut off, or those of `parse`.
pub async fn read<B, T>(
    parts: &Parts,
    body: B,
    parse: fn(&Bytes) -> Result<T, Rejection>,
) -> Result<T, Rejection>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    if !is_json(&parts.headers) {
        return Err(Rejection::not_json(
            "expected Content-Type: application/json",
        ));
    }
    // A body that is announced as too large is not waited for.
    if body.size_hint().lower() > limits::MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let limited = Limited::new(body, limits::MAX_BODY_BYTES);
    let read = timeout(limits::BODY_TIMEOUT, limited.collect()).await;
    match read {
        Err(_) => Err(Rejection::request_timeout(
            "the body did not arrive in time",
        )),
        Ok(Ok(body)) => parse(&body.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Ok(Err(_)) => Err(Rejection::malformed("the body was cut off")),
    }
}

fn too_large() -> Rejection {
    let detail = format!("the body is limited to {} bytes", limits::MAX_BODY_BYTES);
    Rejection::too_large(detail)
}

/// Finishes a response to a request whose body was not read. A small body that has arrived is
/// discarded; otherwise the connection closes after the response.
pub async fn drain_or_close(
    mut response: Response<Body>,
    headers: &HeaderMap,
    body: Body,
) -> Response<Body> {
    // Reading would request a body that the client only announced.
    let is_announced = headers.contains_key(header::EXPECT);
    if is_announced || !is_drained(body).await {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// Reads a small body to its end; false if it is too large or late.
async fn is_drained(body: Body) -> bool {
    if body.size_hint().lower() > limits::REFUSED_BODY_BYTES as u64 {
        return false;
    }
    let body = Limited::new(body, limits::REFUSED_BODY_BYTES).collect();
    matches!(timeout(limits::REFUSED_BODY_WAIT, body).await, Ok(Ok(_)))
}

fn parse(body: &Bytes) -> Result<Map<String, Value>, Rejection> {
    let text =
        std::str::from_utf8(body).map_err(|_| Rejection::malformed("the body is not UTF-8"))?;
    let value = json_text::parse(text)
        .map_err(|error| Rejection::malformed(format!("the body is not JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(invalid_body(vec![FieldProblem::new(
            &["body"],
            "expected an object",
        )])),
    }
}

fn invalid_body(problems: Vec<FieldProblem>) -> Rejection {
    Rejection::invalid("the body is not valid").with_errors(problems)
}

fn unknown_fields(map: &Map<String, Value>, known: &[&str], problems: &mut Vec<FieldProblem>) {
    for key in map
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .take(10)
    {
        let key: String = key.chars().take(limits::MAX_ID_CHARS).collect();
        problems.push(FieldProblem::new(&["body", &key], "unknown field"));
    }
}

/// Reads a filter for the list of tools.
///
/// # Errors
/// 400 or 422.
pub fn list_request(body: &Bytes) -> Result<ListRequest, Rejection> {
    let map = if body.is_empty() {
        Map::new()
    } else {
        parse(body)?
    };
    let mut problems = Vec::new();
    unknown_fields(&map, &["category", "ai_callable_only"], &mut problems);
    let category = match map.get("category") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => {
            problems.push(FieldProblem::new(&["body", "category"], "expected text"));
            None
        }
    };
    let ai_callable_only = match map.get("ai_callable_only") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(only)) => *only,
        Some(_) => {
            problems.push(FieldProblem::new(
                &["body", "ai_callable_only"],
                "expected true or false",
            ));
            true
        }
    };
    match problems.is_empty() {
        true => Ok(ListRequest {
            category,
            has_internal: !ai_callable_only,
        }),
        false => Err(invalid_body(problems)),
    }
}

/// Valid body of a call. Any other body is parsed again to report its problems.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidBody {
    tool_name: String,
    input: Object,
    context: Option<ValidContext>,
}

/// Fields of `context`, and no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "BodyContext")]
struct ValidContextFields {
    tenant_id: Option<String>,
    site_id: Option<String>,
    trace_id: Option<String>,
    user_id: Option<String>,
    session_id: Option<String>,
    npc_id: Option<String>,
}

#[derive(Deserialize)]
struct ValidContext(#[serde(with = "ValidContextFields")] BodyContext);

/// Reads a valid body of a call.
fn valid_request(body: &Bytes) -> Option<CallRequest> {
    let valid: ValidBody = serde_json::from_slice(body).ok()?;
    let context = valid
        .context
        .map_or_else(BodyContext::default, |context| context.0);
    let is_good = !valid.tool_name.is_empty() && invalid_ids(&context).next().is_none();
    is_good.then_some(CallRequest {
        tool_name: valid.tool_name,
        input: Value::Object(valid.input.0),
        context,
    })
}

/// Reads a call.
///
/// # Errors
/// 400 or 422.
pub fn call_request(body: &Bytes) -> Result<CallRequest, Rejection> {
    if let Some(request) = valid_request(body) {
        return Ok(request);
    }
    let mut map = parse(body)?;
    let mut problems = Vec::new();
    unknown_fields(&map, &["tool_name", "input", "context"], &mut problems);
    let tool_name = match map.shift_remove("tool_name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        None => {
            problems.push(FieldProblem::new(&["body", "tool_name"], "field required"));
            String::new()
        }
        Some(_) => {
            problems.push(FieldProblem::new(
                &["body", "tool_name"],
                "expected the name of a tool",
            ));
            String::new()
        }
    };
    let input = match map.shift_remove("input") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Object(input)) => Value::Object(input),
        Some(_) => {
            problems.push(FieldProblem::new(&["body", "input"], "expected an object"));
            Value::Null
        }
    };
    let context = context(map.shift_remove("context"), &mut problems);
    match problems.is_empty() {
        true => Ok(CallRequest {
            tool_name,
            input,
            context,
        }),
        false => Err(invalid_body(problems)),
    }
}

fn context(value: Option<Value>, problems: &mut Vec<FieldProblem>) -> BodyContext {
    let value = match value {
        None | Some(Value::Null) => return BodyContext::default(),
        Some(value) => value,
    };
    let Ok(context) = serde_json::from_value::<BodyContext>(value) else {
        problems.push(FieldProblem::new(
            &["body", "context"],
            "expected an object of identifiers",
        ));
        return BodyContext::default();
    };
    let invalid_id = |name| FieldProblem::new(&["body", "context", name], "expected an identifier");
    problems.extend(invalid_ids(&context).map(invalid_id));
    context
}

/// Returns the names of fields that are not valid ids.
fn invalid_ids(context: &BodyContext) -> impl Iterator<Item = &'static str> {
    let ids = [
        ("tenant_id", &context.tenant_id),
        ("site_id", &context.site_id),
        ("trace_id", &context.trace_id),
        ("user_id", &context.user_id),
        ("session_id", &context.session_id),
        ("npc_id", &context.npc_id),
    ];
    let is_wrong = |id: &Option<String>| id.as_deref().is_some_and(|id| !caller::is_id(id));
    ids.into_iter()
        .filter_map(move |(name, id)| is_wrong(id).then_some(name))
}
