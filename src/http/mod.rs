//! HTTP: the tool server of `karyi serve`, and the connections of the local page for a secret.
//!
//! [`routes`] turns requests into calls of the dispatcher ([`crate::service`]) and its replies into
//! responses; [`listen`] owns the sockets, [`server`] starts and stops everything.

#[cfg(feature = "serve")]
pub mod app_state;
#[cfg(feature = "serve")]
pub mod bodies;
#[cfg(feature = "serve")]
pub mod client;
pub mod connection;
#[cfg(feature = "serve")]
pub mod headers;
pub mod listen;
#[cfg(feature = "serve")]
pub mod local_tools;
#[cfg(feature = "serve")]
pub mod openapi;
#[cfg(feature = "serve")]
pub mod otlp;
#[cfg(feature = "serve")]
pub mod problem;
#[cfg(feature = "serve")]
pub mod routes;
#[cfg(feature = "serve")]
pub mod server;
#[cfg(feature = "serve")]
pub mod tls;
#[cfg(not(feature = "serve"))]
#[path = "no_tls.rs"]
pub mod tls;
