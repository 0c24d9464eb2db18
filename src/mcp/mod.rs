//! The tools for MCP clients: over standard input and output, and at `/mcp` of the server.
//!
//! ```text
//! lines ─ transport ─┐
//! HTTP ─ door ───────┴─ protocol (rmcp) ─ Server ─ Backend ─┬─ bench: this machine, one session
//!                                                           └─ site: the dispatcher, with its ledger
//! ```
//!
//! rmcp speaks both eras of the protocol; [`server::Server`] says what it may, [`listing`] and
//! [`tool_result`] turn tools and results into its words. Nothing here knows a tool by name but
//! `get_value`, whose question goes to the user and not to the model.

pub mod call_queue;
pub mod elicitation;
pub mod executor;
#[cfg(feature = "serve")]
pub mod http;
pub mod listing;
pub mod progress;
#[cfg(feature = "serve")]
pub mod replay;
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
