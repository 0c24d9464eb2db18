//! Tests of the public interface.

mod session;
