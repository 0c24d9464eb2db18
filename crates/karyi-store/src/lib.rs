//! Durable storage of the tool server: the audit ledger and the data of sites.
//!
//! Callers use two traits. A [`Ledger`] appends one hash-linked [`Record`](ledger::Record) per call and
//! detects calls that a crash interrupted. A [`SiteStore`] imports sites ([`import`] reads them from files and
//! [`rules`] validates them), answers searches over their contents, and keeps idempotency keys.
//!
//! [`sqlite`] implements both: [`SqliteLedger`](sqlite::SqliteLedger) and
//! [`SqliteSites`](sqlite::SqliteSites), each with one writing thread that commits in groups.
//! [`LedgerFile`](sqlite::LedgerFile) reads and verifies a ledger; [`ServerLock`](sqlite::ServerLock) admits
//! one server per database. A store knows no tool, no principal and no protocol. Limits are in
//! `karyi_core::limits`. `examples/audit_ledger.rs` is a whole program.

pub mod error;
pub mod import;
pub mod ledger;
pub mod members;
pub mod rules;
pub mod site;
pub mod sqlite;
pub mod tokenizer;

use std::future::Future;
use std::pin::Pin;

pub use error::StoreError;
pub use ledger::Ledger;
pub use site::SiteStore;

/// Future of a store operation.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
