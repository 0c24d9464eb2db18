//! The stores over SQLite: one thread that writes, several connections that read.
//!
//! The ledger and the data of sites are two files, so that neither can take the other down with
//! it. Both are in WAL mode and synced at every commit; what arrives while a commit is synced is
//! committed together with the next one.

mod connection;
mod error;
mod group;
mod index;
mod json;
mod keys;
mod ledger;
mod library;
mod lock;
mod private;
mod queue;
mod readers;
mod recent;
mod revision;
mod score;
mod search;
mod site;
mod writer;

pub use ledger::{LedgerFile, SqliteLedger, Verdict};
pub use lock::Lock;
pub use private::make_directory;
pub use site::SqliteSites;
