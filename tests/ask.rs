//! `karyi ask` and `karyi model` against a server that plays answers on loopback.

mod headless;
mod server;
