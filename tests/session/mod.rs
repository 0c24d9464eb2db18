//! Sessions with real shells.

mod basics;
mod detection;
mod ending;
mod hazards;
mod mending;
mod output;
mod restart;
mod secrets;
mod shells;
mod soak;
mod support;
mod waiting;
