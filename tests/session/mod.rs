//! Sessions with real shells.

mod basics;
mod hazards;
mod support;
