//! `karyi ask` and `karyi model` against a server that plays answers on loopback.

pub mod headless;
mod real_model;
mod secrets;
pub mod server;
