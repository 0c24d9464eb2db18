//! Reads the headers of a request: ids, credentials and options.

use std::time::Duration;

use axum::http::{HeaderMap, header};

use crate::service::authenticator::Credential;
use crate::service::caller::{Caller, is_id};
use crate::service::input_check::FieldProblem;
use crate::service::rejection::Rejection;
use karyi_core::limits;

/// Name of the front end in the ledger.
pub const HTTP: &str = "http";

/// Headers that every request needs.
const REQUIRED: [&str; 3] = ["X-Trace-ID", "X-Tenant-ID", "X-Site-ID"];

/// Headers that must not occur twice.
const SINGLE: [&str; 14] = [
    "X-Trace-ID",
    "X-Tenant-ID",
    "X-Site-ID",
    "X-Span-ID",
    "X-User-ID",
    "X-Session-ID",
    "X-NPC-ID",
    "X-Internal-API-Key",
    "X-Attempt",
    "X-Request-Timeout-Ms",
    "Idempotency-Key",
    "Authorization",
    "Content-Type",
    "Host",
];

/// Rejection of a request because of its headers.
#[derive(Debug)]
pub struct HeaderError {
    /// Response to the client.
    pub rejection: Rejection,
    /// The caller, if trace, tenant and site are valid: only then the ledger can record the
    /// rejection.
    pub caller: Option<Caller>,
}

/// Reads the caller of a request.
///
/// # Errors
/// 400 for duplicate headers; 422 with every missing or invalid header.
pub fn caller(headers: &HeaderMap) -> Result<Caller, Box<HeaderError>> {
    let mut problems = Vec::new();
    let ids = REQUIRED.map(|name| required(headers, name, &mut problems));
    let has_ids = problems.is_empty();
    if let Some(rejection) = duplicates(headers) {
        // If one of the three ids is ambiguous, the request cannot be attributed.
        let is_identified = has_ids && !REQUIRED.iter().any(|name| is_duplicate(headers, name));
        let caller = is_identified.then(|| caller_at(ids).ok()).flatten();
        return Err(Box::new(HeaderError { rejection, caller }));
    }
    let mut optional = |name| optional(headers, name, &mut problems);
    let [span, user] = ["X-Span-ID", "X-User-ID"].map(&mut optional);
    let [session, npc] = ["X-Session-ID", "X-NPC-ID"].map(&mut optional);
    let key = optional("Idempotency-Key");
    let attempt = number(headers, "X-Attempt", &mut problems);
    let patience = number(headers, "X-Request-Timeout-Ms", &mut problems);
    let header_error = |caller, problems| {
        let detail = "headers are missing or not valid";
        let rejection = Rejection::invalid(detail).with_errors(problems);
        Box::new(HeaderError { rejection, caller })
    };
    if !has_ids {
        return Err(header_error(None, problems));
    }
    let mut caller = caller_at(ids)?;
    if let Some(span) = span {
        caller.span_id = span;
    }
    (caller.user_id, caller.session_id, caller.npc_id) = (user, session, npc);
    caller.idempotency_key = key;
    caller.attempt = attempt.and_then(|attempt| u32::try_from(attempt).ok());
    caller.timeout = patience.map(Duration::from_millis);
    if let Some((trace, span)) = text(headers, "traceparent").and_then(traceparent) {
        (caller.w3c_trace_id, caller.parent_span_id) = (Some(trace.into()), Some(span.into()));
    }
    match problems.is_empty() {
        true => Ok(caller),
        false => Err(header_error(Some(caller), problems)),
    }
}

/// Creates a caller from trace, tenant and site.
fn caller_at([trace, tenant, site]: [String; 3]) -> Result<Caller, Box<HeaderError>> {
    Caller::new(HTTP, trace, tenant, site).map_err(|error| {
        let rejection = Rejection::internal(error.to_string());
        Box::new(HeaderError {
            rejection,
            caller: None,
        })
    })
}

/// Returns the credential of a request.
#[must_use]
pub fn credential(headers: &HeaderMap) -> Credential {
    let bearer = |value: &str| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned())
    };
    Credential {
        key: text(headers, "X-Internal-API-Key").map(str::to_owned),
        // Another scheme counts as an invalid token.
        token: text(headers, header::AUTHORIZATION.as_str())
            .map(|value| bearer(value).unwrap_or_default()),
    }
}

/// Tells whether the content type is JSON.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn is_duplicate(headers: &HeaderMap, name: &str) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

/// Returns a rejection if a header that must be unique occurs twice.
#[must_use]
pub fn duplicates(headers: &HeaderMap) -> Option<Rejection> {
    if headers.len() == headers.keys_len() {
        return None;
    }
    let duplicates = SINGLE.iter().filter(|name| is_duplicate(headers, name));
    let problems: Vec<FieldProblem> = duplicates
        .map(|name| FieldProblem::new(&["header", name], "occurs more than once"))
        .collect();
    let rejection = || Rejection::malformed("a header occurs more than once");
    (!problems.is_empty()).then(|| rejection().with_errors(problems))
}

/// Returns a header as text; empty if it is not text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or_default())
}

fn required(headers: &HeaderMap, name: &str, problems: &mut Vec<FieldProblem>) -> String {
    match text(headers, name).map(str::trim) {
        None => problems.push(FieldProblem::new(&["header", name], "field required")),
        Some("") => problems.push(FieldProblem::new(
            &["header", name],
            "expected a value, found none",
        )),
        Some(id) if is_id(id) => return id.to_owned(),
        Some(_) => problems.push(invalid_id(name)),
    }
    String::new()
}

fn optional(headers: &HeaderMap, name: &str, problems: &mut Vec<FieldProblem>) -> Option<String> {
    let value = text(headers, name).map(str::trim)?;
    if is_id(value) {
        return Some(value.to_owned());
    }
    problems.push(invalid_id(name));
    None
}

fn invalid_id(name: &str) -> FieldProblem {
    let words = format!(
        "expected 1 to {} of the characters A-Z a-z 0-9 . _ : -",
        limits::MAX_ID_CHARS
    );
    FieldProblem::new(&["header", name], words)
}

fn number(headers: &HeaderMap, name: &str, problems: &mut Vec<FieldProblem>) -> Option<u64> {
    let value = text(headers, name)?;
    // `parse` would also accept a sign or leading zeros.
    let is_plain = value.starts_with(|first: char| matches!(first, '1'..='9'));
    let found = is_plain
        .then(|| value.parse().ok())
        .flatten()
        .filter(|number| (1..=limits::MAX_HEADER_NUMBER).contains(number));
    if found.is_none() {
        let words = format!(
            "expected a whole number from 1 to {}",
            limits::MAX_HEADER_NUMBER
        );
        problems.push(FieldProblem::new(&["header", name], words));
    }
    found
}

/// Reads a W3C `traceparent`: trace and parent span. A malformed one is ignored.
fn traceparent(value: &str) -> Option<(&str, &str)> {
    let mut parts = value.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    let is_good = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Later versions may have more parts.
    let has_more = parts.next().is_some();
    let is_known = version != "ff" && !(version == "00" && has_more);
    (is_good && is_known && !is_zero(trace) && !is_zero(span)).then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in list {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    const GOOD: [(&str, &str); 3] = [
        ("x-trace-id", "trace-1"),
        ("x-tenant-id", "t"),
        ("x-site-id", "s"),
    ];

    #[track_caller]
    fn check(more: &[(&str, &str)], expected: Result<(), (u16, &str)>) {
        let found = caller(&headers(&[&GOOD[..], more].concat()));
        let problem = found.map(drop).map_err(|header_error| {
            // A rejection is recorded unless an id is ambiguous.
            let is_unclear = more.iter().any(|(name, _)| *name == "x-trace-id");
            assert_eq!(header_error.caller.is_none(), is_unclear);
            let rejection = header_error.rejection;
            let words = crate::service::input_check::summary(&rejection.errors);
            (rejection.status, words)
        });
        assert_eq!(
            problem,
            expected.map_err(|(status, words)| (status, words.to_owned()))
        );
    }

    #[test]
    fn ids_are_read_or_reported() {
        check(&[("x-user-id", "user-xxx"), ("x-attempt", "3")], Ok(()));
        let no_id = "expected 1 to 100 of the characters A-Z a-z 0-9 . _ : -";
        check(
            &[("x-user-id", "a b")],
            Err((422, &format!("header.X-User-ID: {no_id}"))),
        );
        check(
            &[("x-user-id", &"a".repeat(101))],
            Err((422, &format!("header.X-User-ID: {no_id}"))),
        );
        check(
            &[("x-user-id", "é")],
            Err((422, &format!("header.X-User-ID: {no_id}"))),
        );
        for attempt in ["0", "01", "+1", "1000000", "1.0", "one", ""] {
            check(
                &[("x-attempt", attempt)],
                Err((
                    422,
                    "header.X-Attempt: expected a whole number from 1 to 999999",
                )),
            );
        }
        check(
            &[("x-trace-id", "again")],
            Err((400, "header.X-Trace-ID: occurs more than once")),
        );
        check(
            &[("x-user-id", "a"), ("x-user-id", "b")],
            Err((400, "header.X-User-ID: occurs more than once")),
        );
        let missing = caller(&headers(&[("x-tenant-id", " "), ("x-site-id", "a/b")])).unwrap_err();
        assert!(missing.caller.is_none());
        let missing = missing.rejection;
        let words = crate::service::input_check::summary(&missing.errors);
        let expected = format!(
            "header.X-Trace-ID: field required; header.X-Tenant-ID: expected a value, found none; header.X-Site-ID: {no_id}"
        );
        assert_eq!((missing.status, words), (422, expected));
    }

    #[test]
    fn only_a_valid_traceparent_is_used() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let check = |value: &str, is_good: bool| {
            assert_eq!(
                traceparent(value),
                is_good.then_some((trace, span)),
                "{value}"
            );
        };
        check(&format!("00-{trace}-{span}-01"), true);
        check(&format!("cc-{trace}-{span}-01-more"), true);
        check(&format!("00-{trace}-{span}-01-more"), false);
        check(&format!("ff-{trace}-{span}-01"), false);
        check(&format!("00-{}-{span}-01", trace.to_uppercase()), false);
        check(&format!("00-{}-{span}-01", "0".repeat(32)), false);
        check(&format!("00-{trace}-{}-01", "0".repeat(16)), false);
        check(&format!("00-{trace}-{span}"), false);
        check("", false);
    }

    #[test]
    fn credentials_are_read() {
        let found = credential(&headers(&[("authorization", "bearer abc")]));
        assert_eq!((found.key, found.token.as_deref()), (None, Some("abc")));
        let found = credential(&headers(&[("authorization", "Basic abc")]));
        assert_eq!(found.token.as_deref(), Some(""));
    }
}
