//! `karyi serve`: the tools of sites over HTTP.
//!
//! The routes turn requests into calls of the desk ([`crate::service`]) and its replies into
//! responses; [`listen`] owns the sockets, [`start`] puts everything together.

pub mod bodies;
pub mod client;
pub mod connection;
pub mod front;
pub mod headers;
pub mod lines;
pub mod listen;
pub mod local;
pub mod logging;
pub mod openapi;
pub mod otlp;
pub mod outgoing;
pub mod problem;
pub mod routes;
pub mod start;
pub mod tls;
pub mod wire;
