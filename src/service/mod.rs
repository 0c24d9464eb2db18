//! The tool server's core: [`dispatcher`] leads one call, whatever protocol carried it, from its caller
//! to its ledger record.
//!
//! Front ends turn their requests into a [`Caller`] and a [`CallRequest`] and present the
//! [`CallReply`]; they decide nothing. Every path through this module leaves one record in the
//! ledger.

pub mod audit;
pub mod authenticator;
pub mod caller;
pub mod canonical;
pub mod catalog;
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
pub mod secret_refresher;
pub mod spans;

pub use caller::{CallRequest, Caller};
pub use dispatcher::{CallReply, Dispatcher};
pub use rejection::Rejection;
