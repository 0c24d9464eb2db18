//! The stores over SQLite: one thread that writes, several connections that read.
//!
//! The ledger and the data of sites are two files, so that neither can take the other down with
//! it. Both are in WAL mode and synced at every commit; what arrives while a commit is synced is
//! committed together with the next one.

mod change_counter;
mod connection;
mod error;
mod group_commit;
mod json;
mod keys;
mod ledger;
mod memory_index;
mod private_files;
mod query_cache;
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
