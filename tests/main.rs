//! Tests through the public API and the binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected stops there"
)]

mod toolsxml;
