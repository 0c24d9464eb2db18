//! One call of a server, whatever protocol brought it: who calls, how often, is it valid, may it be
//! repeated, ledger, run, outcome.
//!
//! ```text
//! Caller ─ admit: guard ─ tenant and site ─ tenant's bucket
//!        ─ call:  tool ─ scope ─ tool's bucket ─ fields ─ repeat key ─ intent ─ run ─ record
//! ```
//!
//! Front ends turn their requests into a [`Caller`] and a [`Request`] and show the [`Reply`]; they
//! decide nothing. Every path through here leaves one record in the ledger.

pub mod books;
pub mod caller;
pub mod canonical;
mod contexts;
pub mod desk;
pub mod envelope;
pub mod fields;
pub mod guard;
pub mod jwt;
pub mod log;
mod lookout;
pub mod metrics;
pub mod offer;
pub mod parts;
pub mod principal;
pub mod rates;
pub mod recording;
pub mod rejection;
mod rule;
pub mod running;
mod serving;
mod shards;
pub mod spans;

pub use caller::{Caller, Request};
pub use desk::{Desk, Parts, Reply};
pub use rejection::Rejection;
