//! The one test binary: architecture, the library through its public API, and the program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test that meets the unexpected stops there and says so"
)]

mod approval;
mod architecture;
mod ask;
mod assistant;
mod bad_input;
mod chat;
mod chats;
mod cli;
mod compact;
mod config;
mod conformance;
mod crash;
mod doctor;
mod edit;
mod examples;
mod execution;
mod grammar;
mod harness;
mod history;
mod import;
mod jobs;
mod lanes;
mod mcp;
mod mcp_clients;
mod memory;
mod notebook;
mod offer;
mod own_tools;
mod parallel;
mod parse;
mod reading;
mod readme;
mod redaction;
mod registry;
mod report;
mod secrets;
mod seed;
mod serve;
mod session;
mod session_calls;
mod session_setup;
mod sizes;
mod stopping;
mod streaming;
mod supervise;
mod supervisor;
mod terminal;
mod toolsxml;
mod vault;
mod watching;
