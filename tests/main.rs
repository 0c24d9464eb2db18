//! The one test binary.

mod session;
mod toolsxml;
