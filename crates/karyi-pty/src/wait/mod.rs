//! Detects what the job in the foreground does: read the terminal, poll it, work, or nothing because it is stopped.
//!
//! The kernel shows the system call each thread is blocked in. A read from the terminal, or a wait for descriptors
//! with the terminal among them, means that the job cannot continue without the user. A wait with a time limit, or for
//! other sources as well, ends by itself: the job accepts input, no more. Where the kernel does not show system calls,
//! the result comes from the modes of the terminal and from silence, and is only probable.

#[cfg(target_os = "linux")]
mod descriptors;
mod detection;
mod guess;
#[cfg(target_os = "linux")]
mod scan;
#[cfg(target_os = "linux")]
mod stuck_shell;
#[cfg(target_os = "linux")]
pub(crate) mod syscall;
mod watch;
mod watched_terminal;

#[cfg(not(target_os = "linux"))]
pub(crate) use detection::Scanner;
#[cfg(target_os = "linux")]
pub(crate) use scan::Scanner;
pub(crate) use watch::{Certainty, Finding, Watch};
#[cfg(test)]
pub(crate) use watched_terminal::Activity;
pub(crate) use watched_terminal::{WatchedTerminal, has_no_session, shows_input};
