//! MCP front end: on standard input and output, and at `/mcp` of the server.
//!
//! ```text
//! stdio ─ transport ──┐
//! HTTP ── middleware ─┴─ protocol (rmcp) ─ Server ─ Backend ─┬─ executor: this machine, one session
//!                                                            └─ dispatcher: a site, with its ledger
//! ```
//!
//! rmcp implements both eras of the protocol. [`server::Server`] declares the capabilities;
//! [`listing`] and [`tool_result`] translate tools and results. The only tool known here by name is
//! `get_value`, whose question goes to the user and not to the model.

pub mod call_queue;
pub mod elicitation;
pub mod executor;
pub mod hints;
#[cfg(feature = "serve")]
pub mod http;
pub mod listing;
pub mod progress;
#[cfg(feature = "serve")]
pub mod replay;
#[cfg(feature = "serve")]
pub mod request_ids;
pub mod result_text;
pub mod secret_form;
pub mod server;
#[cfg(feature = "serve")]
pub mod sessions;
#[cfg(feature = "serve")]
pub mod site_call;
#[cfg(feature = "serve")]
pub mod site_result;
#[cfg(feature = "serve")]
pub mod site_tools;
pub mod stdio;
pub mod stdio_transport;
pub mod tool_result;
