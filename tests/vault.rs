//! Stores, the index and `karyi var`, with real keyrings and real encrypted files.

mod bus;
mod contract;
pub mod home;
mod keep;
mod keyring;
mod run;
mod var;
