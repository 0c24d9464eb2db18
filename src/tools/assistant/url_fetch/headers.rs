//! Rules for the headers of a request.
//!
//! A literal value may stand in few headers. A secret may stand in any other header, alone or after `Bearer ` or
//! `Basic `: its policy says which hosts get it. Headers that belong to the connection are never set.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::Template;

/// Headers that a call may set to any value.
const ALLOWED: &[&str] = &[
    "accept",
    "content-type",
    "user-agent",
    "if-none-match",
    "if-modified-since",
    "range",
];

/// Headers that belong to the connection, or that name another sender.
const OF_THE_CONNECTION: &[&str] = &[
    "host",
    "contentlength",
    "transferencoding",
    "connection",
    "keepalive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "forwarded",
    "cookie",
    "setcookie",
];

/// Checks the name of a header, and that a secret stands in it in a known form.
///
/// # Errors
/// `bad_arguments` for a name that a call must not set, `unsafe_context` for a secret among other text.
pub(super) fn check(name: &str, value: &Template) -> Result<(), ToolError> {
    let lower = name.trim().to_ascii_lowercase();
    let plain: String = lower
        .chars()
        .filter(|sign| !matches!(sign, '-' | '_'))
        .collect();
    let is_forwarding = ["proxy-", "proxy_", "x-forwarded-", "x_forwarded_"]
        .iter()
        .any(|start| lower.starts_with(start));
    let is_of_connection = OF_THE_CONNECTION.contains(&plain.as_str()) || is_forwarding;
    if value.has_placeholder() {
        let is_alone = secret_part(value.source()).is_some();
        return match (is_of_connection, is_alone) {
            (true, _) => Err(refused(name, "")),
            (false, true) => Ok(()),
            (false, false) => {
                let message = format!("the header {name} has a placeholder among other text");
                let hint = "write $KARYI{NAME} alone, or after `Bearer ` or `Basic `";
                Err(ToolError::new(ErrorCode::UnsafeContext, message).with_hint(hint))
            }
        };
    }
    let is_for_secrets =
        plain == "authorization" || plain.contains("apikey") || plain.contains("token");
    if is_of_connection && plain != "contentlength" || is_for_secrets {
        return Err(refused(name, ""));
    }
    match ALLOWED.contains(&lower.as_str()) {
        true => Ok(()),
        false => Err(refused(name, " (allowlist enforced)")),
    }
}

fn refused(name: &str, why: &str) -> ToolError {
    let shown: String = name.chars().take(60).collect();
    let message = format!("header {shown:?} is not allowed{why}");
    ToolError::new(ErrorCode::BadArguments, message).with_hint(
        "literal values go in Accept, Content-Type, User-Agent, If-None-Match, If-Modified-Since and Range; a key goes as \
         $KARYI{NAME}, or in an auth_profile",
    )
}

/// Returns the placeholder of a value that is one, alone or after the word of a scheme.
fn secret_part(value: &str) -> Option<&str> {
    let value = value.trim();
    let part = ["Bearer ", "Basic "].iter().find_map(|word| {
        let (start, rest) = value.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then(|| rest.trim())
    });
    let part = part.unwrap_or(value);
    let inner = part.strip_prefix("$KARYI{")?.strip_suffix('}')?;
    let is_one = !inner.is_empty() && !inner.contains(['{', '}', '$', ' ']);
    is_one.then_some(part)
}

/// Returns the value of a header as it is sent. A name and password after `Basic ` are encoded.
pub(super) fn sent(value: &str) -> String {
    match value.split_at_checked("Basic ".len()) {
        Some((word, credentials))
            if word.eq_ignore_ascii_case("Basic ") && credentials.contains(':') =>
        {
            format!("{word}{}", STANDARD.encode(credentials.trim()))
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_all(names: &[&str], value: &str, expected: Result<(), &str>) {
        for name in names {
            let found = check(name, &Template::new(value));
            match (found, expected) {
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{name}: {error}"),
                (found, expected) => {
                    assert_eq!(found.is_ok(), expected.is_ok(), "{name}: {found:?}")
                }
            }
        }
    }

    #[test]
    fn literal_values_stand_in_few_headers() {
        check_all(
            &[
                "Accept",
                "CONTENT-TYPE",
                "user-agent",
                "If-None-Match",
                "If-Modified-Since",
                "Range",
            ],
            "x",
            Ok(()),
        );
        check_all(
            &[
                "Authorization",
                "AUTHORIZATION",
                "authorization",
                "Cookie",
                "cookie",
                "COOKIE",
                "Set-Cookie",
                "Set_Cookie",
                "Host",
                "HOST",
                "host",
                "Proxy-X",
                "Proxy-Authorization",
                "proxy_authorization",
                "X-Forwarded-For",
                "x_forwarded_host",
                "X-API-Key",
                "X_Api_Key",
                "xapikey",
                "X-Csrf-Token",
                "x-token",
                "TOKEN",
                "Transfer-Encoding",
                "Connection",
                "Keep-Alive",
                "Upgrade",
                "TE",
                "Trailer",
                "Expect",
                "Forwarded",
            ],
            "x",
            Err("is not allowed"),
        );
        check_all(
            &["X-Custom", "Content-Length", "Accept-Language", ""],
            "x",
            Err("is not allowed (allowlist enforced)"),
        );
    }

    #[test]
    fn a_secret_stands_alone_or_after_a_scheme() {
        for value in ["$KARYI{K}", "Bearer $KARYI{K}", "basic  $KARYI{K} "] {
            check_all(&["Authorization", "X-Api-Key", "X-Any"], value, Ok(()));
            check_all(
                &[
                    "Host",
                    "Content-Length",
                    "Transfer-Encoding",
                    "Connection",
                    "Cookie",
                    "Proxy-Authorization",
                    "X-Forwarded-For",
                    "keep_alive",
                    "Upgrade",
                    "te",
                    "Trailer",
                    "Expect",
                    "Forwarded",
                ],
                value,
                Err("is not allowed"),
            );
        }
        for value in [
            "key=$KARYI{K}",
            "$KARYI{A}$KARYI{B}",
            "Bearer $KARYI{A} $KARYI{B}",
            "Token $KARYI{K}",
        ] {
            check_all(&["Authorization"], value, Err("among other text"));
        }
    }

    #[test]
    fn name_and_password_are_encoded() {
        assert_eq!(sent("Basic user:pass"), "Basic dXNlcjpwYXNz");
        assert_eq!(sent("Basic dXNlcjpwYXNz"), "Basic dXNlcjpwYXNz");
        assert_eq!(sent("Bearer a:b"), "Bearer a:b");
        assert_eq!(sent("ab"), "ab");
    }
}
