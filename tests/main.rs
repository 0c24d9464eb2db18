//! Tests of the public interface.

// A test that cannot go on fails, and says why.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod session;
