//! Stores, the index and `karyi var`, with real keyrings and real encrypted files.

mod ahead;
mod asked;
mod bus;
mod consistency;
mod contract;
mod control_socket;
mod first;
mod given;
mod hanging;
pub mod home;
mod import;
mod keyring;
mod killed;
mod listing;
mod lost;
mod mistaken;
mod opened;
mod own;
mod passphrase;
mod run;
mod stopped;
mod stores;
mod systems;
mod told;
mod var;
