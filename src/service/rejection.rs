//! Requests that are refused before they reach a tool.

use crate::service::input_check::{self, FieldProblem};
use karyi_vault::redact::Redactor;

/// Reason for refusing a request, in terms of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// HTTP status; 0 if there is no response.
    pub status: u16,
    /// Code of the rejection, for programs.
    pub code: &'static str,
    /// Value of the ledger's column `error_type`.
    pub error_type: &'static str,
    /// Message about this request.
    pub detail: String,
    /// Problems of fields, each with its path.
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
    /// The request is malformed.
    malformed = 400 "malformed_request" "MalformedRequest";
    /// The caller is not authenticated.
    unauthorized = 401 "invalid_token" "Unauthorized";
    /// The caller lacks permission.
    forbidden = 403 "permission_denied" "PermissionDenied";
    /// The body names another tenant or site than the headers.
    context_mismatch = 403 "context_mismatch" "PermissionDenied";
    /// The host or the origin is not allowed.
    foreign_origin = 403 "foreign_origin" "PermissionDenied";
    /// The path does not exist.
    not_found = 404 "not_found" "NotFound";
    /// The path does not support this method.
    method_not_allowed = 405 "method_not_allowed" "MethodNotAllowed";
    /// The body did not arrive in time.
    request_timeout = 408 "request_timeout" "Timeout";
    /// A call with this key is in progress, or ended without a response.
    in_progress = 409 "idempotency_in_progress" "Conflict";
    /// An earlier call with this key failed, and may have taken effect.
    effect_unknown = 409 "idempotency_effect_unknown" "Conflict";
    /// The body is too large.
    too_large = 413 "body_too_large" "TooLarge";
    /// The body is not JSON.
    not_json = 415 "unsupported_media_type" "UnsupportedMediaType";
    /// The request is not valid.
    invalid = 422 "invalid_request" "ValidationError";
    /// The key was used for another input.
    key_reused = 422 "idempotency_key_reused" "Conflict";
    /// The head of the request is too large.
    head_too_large = 431 "head_too_large" "TooLarge";
    /// There were too many requests.
    rate_limited = 429 "rate_limited" "RateLimited";
    /// The server failed.
    internal = 500 "internal" "Internal";
    /// The ledger cannot be written, so nothing may be changed.
    audit_unavailable = 503 "audit_unavailable" "AuditUnavailable";
    /// The server is overloaded.
    overloaded = 503 "overloaded" "Overloaded";
}

impl Rejection {
    /// Value of `error_type` for [`Self::audit_unavailable`].
    pub const UNAUDITED: &str = "AuditUnavailable";

    /// Masks secrets in text from the caller.
    pub fn mask(&mut self, redactor: &Redactor) {
        if !redactor.is_idle() {
            redactor.redact_in_again(&mut self.detail);
            input_check::mask(&mut self.errors, redactor);
        }
    }

    /// Adds problems of fields.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// Adds the seconds to wait.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}
