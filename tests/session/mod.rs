//! Sessions with real shells.

mod basics;
mod detection;
mod ending;
mod gating;
mod hazards;
mod keys;
mod no_proc;
mod output;
mod restart;
mod secrets;
mod shells;
mod support;
mod waiting;
