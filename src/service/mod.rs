//! The tool server's core: runs one call, whatever protocol carried it, from authentication to its
//! ledger record.
//!
//! ```text
//! Caller ─ admit: authenticator ─ tenant and site ─ tenant's bucket
//!        ─ call:  tool ─ scope ─ tool's bucket ─ input ─ idempotency key ─ intent ─ run ─ record
//! ```
//!
//! Front ends turn their requests into a [`Caller`] and a [`CallRequest`] and present the
//! [`CallReply`]; they decide nothing. Every path through this module leaves one record in the
//! ledger.

pub mod audit;
pub mod audit_record;
pub mod authenticator;
mod call;
pub mod caller;
pub mod canonical;
pub mod catalog;
pub mod config;
pub mod deadline;
pub mod dispatcher;
pub mod envelope;
pub mod input_check;
pub mod jwt;
pub mod local_tools;
pub mod log;
pub mod metrics;
pub mod principal;
pub mod rate_limit;
pub mod rejection;
mod schema_rule;
mod secret_refresher;
pub mod spans;

pub use caller::{CallRequest, Caller};
pub use dispatcher::{CallReply, Dispatcher, DispatcherConfig};
pub use rejection::Rejection;
