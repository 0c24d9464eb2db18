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

// Floor 0: plain values.
pub mod capped;
pub mod limits;
pub mod span;

// Floor 1: the words everything else speaks.
pub mod call;
pub mod error;
pub mod outcome;
pub mod secret;

// Floor 2: engines that know no tool.
pub mod files;
pub mod pty;
pub mod store;
pub mod syntax;
pub mod vault;

// Floor 3: tools.
pub mod tool;
pub mod tools;

// Floor 4: execution.
pub mod exec;
pub mod service;

// Floor 5: output.
pub mod reference;
pub mod render;

// Floor 6: front ends.
pub mod cli;
pub mod http;
pub mod mcp;
