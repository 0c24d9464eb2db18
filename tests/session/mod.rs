//! Sessions with real shells.

mod basics;
mod drawing;
mod ending;
mod hazards;
mod output;
mod restart;
mod secrets;
mod shells;
mod support;
mod waiting;
