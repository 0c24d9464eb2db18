//! Sessions with real shells.

mod basics;
mod ending;
mod faults;
mod hazards;
mod mending;
mod output;
mod restart;
mod secrets;
mod shells;
mod support;
mod waiting;
