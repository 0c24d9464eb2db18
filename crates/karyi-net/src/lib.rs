//! The HTTP client of everything that karyi asks over a network.
//!
//! [`ServerUrl`] is a checked address, [`HttpClient`] a client of that one server, [`HttpRequest`] and
//! [`HttpResponse`] one exchange with it. Redirects are never followed, so that a key stays with its host. What an
//! answer means, and if a request may be repeated, is the caller's concern.
//!
//! [`WebClient`] asks for any [`WebUrl`] that a [`Guard`] admits, and connects only to addresses that it admits.

mod client;
mod error;
mod failure;
mod guard;
mod request;
mod response;
mod retry_after;
mod server_url;
mod tls;
mod web_client;
mod web_url;

pub use client::{ClientOptions, HttpClient, IdleConnections, ProxyUse, Timeouts};
pub use error::{NetError, NetErrorKind, RedirectAnswer};
pub use guard::{Guard, Lookup, NameSource, SystemNames, UrlRule};
pub use request::{FormPart, HttpRequest};
pub use response::HttpResponse;
pub use retry_after::{parse_retry_after, retry_after};
pub use server_url::ServerUrl;
pub use web_client::{Redirects, WebClient, WebOptions, WebRequest};
pub use web_url::WebUrl;
