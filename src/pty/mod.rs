//! One persistent shell on a pseudo-terminal per session.
