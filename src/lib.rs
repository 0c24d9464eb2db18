//! A safe pair of hands for any language model: `<tools>` blocks in, exact results out.
//!
//! ```text
//! bytes ─ scan ─ complete slice ─ quick-xml ─┐
//! JSON ──────────────────────────────────────┴─ RawCall ─ decode ─ Call
//!    ─ plan: lanes by effect ─ [resolve secrets ─ run ─ redact ─ cap] per call
//!    ─ Outcome ─ Report in document order ─ render xml | json | jsonl | text
//! ```
//!
//! The modules stand on floors; each imports only from floors below it (`docs/architecture.md`).

// Floor 0: plain values.
pub mod span;
pub mod limits;
pub mod capped;

// Floor 1: the words everything else speaks.
pub mod call;
pub mod outcome;
pub mod error;
pub mod secret;

// Floor 2: engines that know no tool.
pub mod syntax;
pub mod vault;
pub mod pty;
pub mod files;
