//! Stores over SQLite: one writing thread, several reading connections.
//!
//! The ledger and the data of sites are separate files, so that neither can break the other. Both use WAL
//! mode and sync every commit; writes that arrive during a sync share the next commit.

mod connection;
mod error;
mod group_commit;
mod json;
mod keys;
mod ledger;
mod private_files;
mod queue;
mod readers;
mod score;
mod search;
mod server_lock;
mod site;
mod word_index;
mod writer;

pub use ledger::{LedgerFile, SqliteLedger, Verdict};
pub use private_files::make_directory;
pub use server_lock::ServerLock;
pub use site::SqliteSites;
