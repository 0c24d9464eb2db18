//! `karyi ask` and `karyi model` against a server that plays answers on loopback.

pub mod headless;
mod secrets;
pub mod server;
