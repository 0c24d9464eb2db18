//! A safe pair of hands for any language model: `<tools>` blocks in, exact results out.
//!
//! ```text
//! bytes ─ scan ─ complete slice ─ XML text ─┐
//! JSON ─────────────────────────────────────┴─ RawCall ─ decode ─ Call
//!    ─ plan: lanes by effect ─ [resolve secrets ─ run ─ redact ─ cap] per call
//!    ─ Outcome ─ Report in document order ─ render xml | json | jsonl | text
//! ```
//!
//! `examples/library.rs` shows how a program reads a message. The engines below are crates that are
//! usable alone. A module imports only from the layers above it in this list
//! (`docs/architecture.md`). Sessions and file tools need Unix; elsewhere the library is the parser and
//! the vault.

// The engines.
#[cfg(unix)]
pub use karyi_core::shell_word;
pub use karyi_core::{
    call, error, head_tail, ids, limits, outcome, secret, similar_names, span, temporary_files,
};
#[cfg(all(unix, feature = "serve"))]
pub use karyi_store as store;
#[cfg(unix)]
pub use {karyi_files as files, karyi_model as model, karyi_net as net, karyi_pty as pty};
pub use {karyi_syntax as syntax, karyi_vault as vault};

// What tools work on: pages of the web, TODO files and contacts.
#[cfg(unix)]
pub mod notebook;
#[cfg(unix)]
pub mod web;

// What a tool is, and the tools.
#[cfg(unix)]
pub mod tool;
#[cfg(unix)]
pub mod tools;

// Execution.
#[cfg(unix)]
pub mod approval;
#[cfg(unix)]
pub mod exec;
#[cfg(all(unix, feature = "serve"))]
pub mod service;

// Output.
#[cfg(unix)]
pub mod reference;
#[cfg(unix)]
pub mod render;

// Conversations.
#[cfg(unix)]
pub mod chat;

// Front ends.
#[cfg(unix)]
pub mod cli;
#[cfg(unix)]
pub mod http;
#[cfg(unix)]
pub mod mcp;
#[cfg(unix)]
pub mod supervisor;
