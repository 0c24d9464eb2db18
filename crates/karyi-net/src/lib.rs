//! The HTTP client of everything that karyi asks over a network.
//!
//! [`ServerUrl`] is a checked address, [`HttpClient`] a client of that one server, [`HttpRequest`] and
//! [`HttpResponse`] one exchange with it. Redirects are never followed, so that a key stays with its host. What an
//! answer means, and if a request may be repeated, is the caller's concern.

mod client;
mod error;
mod failure;
mod request;
mod response;
mod retry_after;
mod server_url;
mod tls;

pub use client::{ClientOptions, HttpClient, IdleConnections, ProxyUse, Timeouts};
pub use error::{NetError, NetErrorKind};
pub use request::{FormPart, HttpRequest};
pub use response::HttpResponse;
pub use retry_after::{parse_retry_after, retry_after};
pub use server_url::ServerUrl;
