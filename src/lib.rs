//! A safe pair of hands for any language model: `<tools>` blocks in, exact results out.
//!
//! ```text
//! bytes ─ scan ─ complete slice ─ XML text ─┐
//! JSON ─────────────────────────────────────┴─ RawCall ─ decode ─ Call
//!    ─ plan: lanes by effect ─ [resolve secrets ─ run ─ redact ─ cap] per call
//!    ─ Outcome ─ Report in document order ─ render xml | json | jsonl | text
//! ```
//!
//! The modules stand on floors; each imports only from floors below it (`docs/architecture.md`).
//! Sessions and file tools are made of what Unix has, so elsewhere there is only what stands below
//! them: the parser, and the vault with its stores.

// The crates below, under one roof for users of the library.
#[cfg(unix)]
pub use karyi_core::shell_word;
pub use karyi_core::{
    call, capped, error, ids, limits, outcome, secret, similar_names, span, temporary_files,
};
#[cfg(all(unix, feature = "serve"))]
pub use karyi_store as store;
#[cfg(unix)]
pub use {karyi_files as files, karyi_pty as pty};
pub use {karyi_syntax as syntax, karyi_vault as vault};

// Floor 3: tools.
#[cfg(unix)]
pub mod tool;
#[cfg(unix)]
pub mod tools;

// Floor 4: execution.
#[cfg(unix)]
pub mod exec;
#[cfg(all(unix, feature = "serve"))]
pub mod service;

// Floor 5: output.
#[cfg(unix)]
pub mod reference;
#[cfg(unix)]
pub mod render;

// Floor 6: front ends.
#[cfg(unix)]
pub mod cli;
#[cfg(unix)]
pub mod http;
#[cfg(unix)]
pub mod mcp;
