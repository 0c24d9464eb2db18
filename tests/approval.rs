//! Which calls run, which are asked about, and whether the judge sees everything that runs.

mod live_shell;
mod oracle;
mod policy;
mod stage;
mod support;
