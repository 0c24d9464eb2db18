//! The tools for MCP clients: over standard input and output, and at `/mcp` of the server.
//!
//! ```text
//! lines ─ transport ─┐
//! HTTP ─ door ───────┴─ protocol (rmcp) ─ Server ─ Backend ─┬─ bench: this machine, one session
//!                                                           └─ site: the dispatcher, with its ledger
//! ```
//!
//! rmcp speaks both eras of the protocol; [`server::Server`] says what it may, [`listing`] and
//! [`answer`] turn tools and results into its words. Nothing here knows a tool by name but
//! `get_value`, whose question goes to the user and not to the model.

pub mod answer;
pub mod bench;
#[cfg(feature = "serve")]
pub mod http;
pub mod lanes;
pub mod lines;
pub mod listing;
pub mod page;
pub mod progress;
pub mod questions;
#[cfg(feature = "serve")]
pub mod replay;
pub mod server;
#[cfg(feature = "serve")]
pub mod sessions;
#[cfg(feature = "serve")]
pub mod site;
#[cfg(feature = "serve")]
pub mod site_answer;
#[cfg(feature = "serve")]
pub mod site_tools;
pub mod stdio;
