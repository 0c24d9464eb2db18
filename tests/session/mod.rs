//! Sessions with real shells.

mod basics;
mod detection;
mod drawing;
mod ending;
mod faults;
mod gating;
mod hazards;
mod keys;
mod lacks;
mod no_proc;
mod output;
mod person;
mod quick_commands;
mod restart;
mod secrets;
mod shell_repair;
mod shells;
mod soak;
mod stolen_input;
mod support;
mod surroundings;
mod waiting;
