//! `karyi serve`: the tools of sites over HTTP.
//!
//! The routes turn requests into calls of the dispatcher ([`crate::service`]) and its replies into
//! responses; [`listen`] owns the sockets, [`start`] puts everything together.

#[cfg(feature = "serve")]
pub mod bodies;
#[cfg(feature = "serve")]
pub mod client;
pub mod connection;
#[cfg(feature = "serve")]
pub mod front;
#[cfg(feature = "serve")]
pub mod headers;
pub mod lines;
pub mod listen;
#[cfg(feature = "serve")]
pub mod local;
#[cfg(feature = "serve")]
pub mod logging;
#[cfg(feature = "serve")]
pub mod openapi;
#[cfg(feature = "serve")]
pub mod otlp;
#[cfg(feature = "serve")]
pub mod outgoing;
#[cfg(feature = "serve")]
pub mod problem;
#[cfg(feature = "serve")]
pub mod routes;
#[cfg(feature = "serve")]
pub mod start;
#[cfg(feature = "serve")]
pub mod tls;
#[cfg(not(feature = "serve"))]
#[path = "no_tls.rs"]
pub mod tls;
pub mod wire;
