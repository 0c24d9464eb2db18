//! Sessions with real shells.

mod basics;
mod ending;
mod hazards;
mod output;
mod restart;
mod secrets;
mod shells;
mod soak;
mod support;
mod waiting;
