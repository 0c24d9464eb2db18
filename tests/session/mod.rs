//! Sessions with real shells.

mod astray;
mod basics;
mod detection;
mod drawing;
mod driving;
mod ending;
mod faults;
mod gating;
mod hazards;
mod keys;
mod lacks;
mod mending;
mod no_proc;
mod output;
mod restart;
mod secrets;
mod shells;
mod soak;
mod support;
mod surroundings;
mod waiting;
