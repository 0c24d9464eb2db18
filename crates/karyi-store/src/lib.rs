//! What outlives a call of the server: the ledger and the data of sites.
//!
//! Everything above speaks to the traits [`Ledger`] and [`SiteStore`]; [`sqlite`] is the one that
//! needs no other program. A store knows no tool, no principal and no protocol.

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
