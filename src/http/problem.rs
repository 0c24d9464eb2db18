//! Problem documents (RFC 9457) for rejections.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::service::rejection::Rejection;

/// Builds the response for a rejection, with the trace and the id of the call if they are known.
#[must_use]
pub fn response(rejection: &Rejection, call: Option<[&str; 2]>) -> Response<Body> {
    let status =
        StatusCode::from_u16(rejection.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = Map::from_iter([
        ("type".to_owned(), json!("about:blank")),
        (
            "title".to_owned(),
            json!(status.canonical_reason().unwrap_or("Error")),
        ),
        ("status".to_owned(), json!(rejection.status)),
        ("detail".to_owned(), json!(rejection.detail)),
        ("error_code".to_owned(), json!(rejection.code)),
    ]);
    if let Some([trace_id, call_id]) = call {
        body.insert("instance".into(), json!(format!("urn:uuid:{call_id}")));
        body.insert("trace_id".into(), json!(trace_id));
    }
    if !rejection.errors.is_empty() {
        body.insert("errors".into(), json!(rejection.errors));
    }
    if let Some(seconds) = rejection.retry_after {
        body.insert("retry_after".into(), json!(seconds));
    }
    let mut response = Response::new(Body::from(Value::Object(body).to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(seconds) = rejection.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if rejection.status == 401 {
        let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
