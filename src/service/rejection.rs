//! Requests that are refused before a tool has its say.

use crate::service::input_check::{self, FieldProblem};
use karyi_vault::redact::Redactor;

/// Why a request is refused, in the words of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The HTTP status; 0 when there is no answer.
    pub status: u16,
    /// What kind of refusal it is, for programs.
    pub code: &'static str,
    /// The same for the ledger's column `error_type`.
    pub error_type: &'static str,
    /// What was wrong with this request.
    pub detail: String,
    /// Every problem by its place.
    pub errors: Vec<FieldProblem>,
    /// Seconds after which the request may be sent again.
    pub retry_after: Option<u64>,
}

macro_rules! rejections {
    ($($(#[$doc:meta])* $name:ident = $status:literal $code:literal $error_type:literal;)*) => {
        impl Rejection {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(detail: impl Into<String>) -> Self {
                    Self {
                        status: $status,
                        code: $code,
                        error_type: $error_type,
                        detail: detail.into(),
                        errors: Vec::new(),
                        retry_after: None,
                    }
                }
            )*
        }
    };
}

rejections! {
    /// The request is not well formed.
    malformed = 400 "malformed_request" "MalformedRequest";
    /// Nobody knows who calls.
    unauthorized = 401 "invalid_token" "Unauthorized";
    /// The caller may not do that.
    forbidden = 403 "permission_denied" "PermissionDenied";
    /// The body is about another tenant or site than the headers.
    context_mismatch = 403 "context_mismatch" "PermissionDenied";
    /// The host or the origin is not one of ours.
    foreign_origin = 403 "foreign_origin" "PermissionDenied";
    /// There is no such path.
    not_found = 404 "not_found" "NotFound";
    /// The path is not for this method.
    method_not_allowed = 405 "method_not_allowed" "MethodNotAllowed";
    /// The body did not come in time.
    request_timeout = 408 "request_timeout" "Timeout";
    /// A call with this key is under way, or was when the server ended.
    in_progress = 409 "idempotency_in_progress" "Conflict";
    /// The body is too large.
    too_large = 413 "body_too_large" "TooLarge";
    /// The body is not JSON.
    not_json = 415 "unsupported_media_type" "UnsupportedMediaType";
    /// The request is not what it should be.
    invalid = 422 "invalid_request" "ValidationError";
    /// The key was used for another input.
    key_reused = 422 "idempotency_key_reused" "Conflict";
    /// The head of the request is too large.
    head_too_large = 431 "head_too_large" "TooLarge";
    /// There were too many requests.
    rate_limited = 429 "rate_limited" "RateLimited";
    /// A part of the server broke.
    internal = 500 "internal" "Internal";
    /// The ledger cannot be written, so nothing may be done.
    audit_unavailable = 503 "audit_unavailable" "AuditUnavailable";
    /// The server cannot take more now.
    overloaded = 503 "overloaded" "Overloaded";
}

impl Rejection {
    /// The kind of [`Self::audit_unavailable`].
    pub const UNAUDITED: &str = "AuditUnavailable";

    /// Masks values of secrets in what a caller wrote.
    pub fn mask(&mut self, redactor: &Redactor) {
        if !redactor.is_idle() {
            redactor.redact_in_again(&mut self.detail);
            input_check::mask(&mut self.errors, redactor);
        }
    }

    /// Adds every problem by its place.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// Takes the answer away.
    #[must_use]
    pub fn without_response(mut self) -> Self {
        self.status = 0;
        self
    }

    /// Adds the seconds to wait.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}
