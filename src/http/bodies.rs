//! Reads and validates request bodies.

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::http::headers::is_json;
use crate::service::caller::{self, BodyContext};
use crate::service::dispatcher::ListRequest;
use crate::service::input_check::FieldProblem;
use crate::service::{CallRequest, Rejection};
use crate::tool::json_text;
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

/// Fields of a body, and their problems.
struct Fields {
    map: Map<String, Value>,
    problems: Vec<FieldProblem>,
}

impl Fields {
    /// Parses a body, which may have these fields.
    fn parse(body: &Bytes, known: &[&str]) -> Result<Self, Rejection> {
        let text =
            std::str::from_utf8(body).map_err(|_| Rejection::malformed("the body is not UTF-8"))?;
        let value = json_text::parse(text)
            .map_err(|error| Rejection::malformed(format!("the body is not JSON: {error}")))?;
        let Value::Object(map) = value else {
            return Err(invalid(vec![FieldProblem::new(
                &["body"],
                "expected an object",
            )]));
        };
        let unknown = map.keys().filter(|key| !known.contains(&key.as_str()));
        let unknown = unknown.take(10).map(|key| {
            let key: String = key.chars().take(limits::MAX_ID_CHARS).collect();
            FieldProblem::new(&["body", &key], "unknown field")
        });
        let problems = unknown.collect();
        Ok(Self { map, problems })
    }

    /// Takes a field out; `read` returns none if its value is not as expected.
    fn take<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        let found = read(self.map.shift_remove(name)?);
        if found.is_none() {
            let problem = FieldProblem::new(&["body", name], expected);
            self.problems.push(problem);
        }
        found
    }

    /// Returns the request if its body has no problems.
    fn finish<T>(self, request: T) -> Result<T, Rejection> {
        match self.problems.is_empty() {
            true => Ok(request),
            false => Err(invalid(self.problems)),
        }
    }
}

fn invalid(problems: Vec<FieldProblem>) -> Rejection {
    Rejection::invalid("the body is not valid").with_errors(problems)
}

/// Reads a filter for the list of tools.
///
/// # Errors
/// 400 or 422.
pub fn list_request(body: &Bytes) -> Result<ListRequest, Rejection> {
    let text = match body.is_empty() {
        true => &Bytes::from_static(b"{}"),
        false => body,
    };
    let mut fields = Fields::parse(text, &["category", "ai_callable_only"])?;
    let category = fields.take("category", "expected text", |value| match value {
        Value::Null => Some(None),
        Value::String(name) => Some(Some(name)),
        _ => None,
    });
    let expected = "expected true or false";
    let ai_callable_only = fields.take("ai_callable_only", expected, |value| match value {
        Value::Null => Some(true),
        value => value.as_bool(),
    });
    fields.finish(ListRequest {
        category: category.flatten(),
        has_internal: ai_callable_only == Some(false),
    })
}

/// Reads a call.
///
/// # Errors
/// 400 or 422.
pub fn call_request(body: &Bytes) -> Result<CallRequest, Rejection> {
    let mut fields = Fields::parse(body, &["tool_name", "input", "context"])?;
    if !fields.map.contains_key("tool_name") {
        let problem = FieldProblem::new(&["body", "tool_name"], "field required");
        fields.problems.push(problem);
    }
    let expected = "expected the name of a tool";
    let tool_name = fields.take("tool_name", expected, |value| match value {
        Value::String(name) if !name.is_empty() => Some(name),
        _ => None,
    });
    let input = fields.take("input", "expected an object", |value| match value {
        Value::Null => Some(Map::new()),
        Value::Object(input) => Some(input),
        _ => None,
    });
    let expected = "expected an object of identifiers";
    let context = fields.take("context", expected, |value| match value {
        Value::Null => Some(BodyContext::default()),
        value => serde_json::from_value(value).ok(),
    });
    let context = context.unwrap_or_default();
    for (name, id) in context.ids() {
        if id.as_deref().is_some_and(|id| !caller::is_id(id)) {
            let path = ["body", "context", name];
            let problem = FieldProblem::new(&path, "expected an identifier");
            fields.problems.push(problem);
        }
    }
    fields.finish(CallRequest {
        tool_name: tool_name.unwrap_or_default(),
        input: Value::Object(input.unwrap_or_default()),
        context,
    })
}
