//! One persistent shell on a pseudo-terminal per session.
//!
//! # Use
//! Fill in [`SessionOptions`] and call [`Session::start`]. [`Session::command`] runs a script; its output goes to a
//! [`Sink`], its result is a [`Progress`]: ended with an exit status, waiting for input, stopped, or still running.
//! [`Session::input`] and [`Session::key`] type into a running job. [`text::TerminalText`] turns the raw output into
//! the text a person would have seen. [`Session::take_background`] returns what commands left running, as
//! [`Background`] jobs; [`Session::names`] tells what names mean in the shell. `examples/one_session.rs` is a whole
//! program.
//!
//! The program in [`SessionOptions::bootstrap`] must call [`bootstrap::bootstrap`]: it becomes the shell.
//!
//! # How it works
//! The standard input of the shell is a private FIFO, so it never reads the terminal: there is no line editor, no echo
//! and no limit of a line, and nothing a command does to the terminal can reach the next one. For each command the
//! shell sources a private file with the terminal on 0, 1 and 2, then prints a mark with the exit status. The mark is
//! the exact end of the output. To learn whether the job waits for input, the session reads from the kernel which
//! system call each thread of it is blocked in.
//!
//! # Threads
//! Each session has one thread, `karyi-session`, which owns its engine: it starts the shell, reads the terminal, answers
//! calls and starts the shell again when it ends. A caller itself writes the lines of its command and its keys.
//! The values of secrets are written by a thread `secret` that ends with its command. The async functions need a tokio
//! runtime with time enabled.
//!
//! # Limits
//! Every time limit and size limit is a constant in `karyi_core::limits`. Dropping the last handle of a [`Session`]
//! kills everything it started; after a crash the next session in the same runtime directory does.
//!
//! # Modules
//! - `engine`: thread of a session, and the state it shares with callers.
//! - `host`: this process and its system: checks, protection, runtime directory.
//! - `process`: processes and groups, as the kernel shows them.
//! - `session`: handle of a session.
//! - `shell`: dialects, snapshots and secrets of shells.
//! - `sys`: system calls that no safe crate wraps.
//! - `teardown`: ends the processes of sessions.
//! - `terminal`: terminal and FIFOs of a shell, and how it is spawned.
//! - `text`: terminal output as text.
//! - `wait`: detects what the foreground job waits for.

mod engine;
mod host;
mod process;
mod session;
mod shell;
mod sys;
mod teardown;
mod terminal;
pub mod text;
mod wait;

pub use engine::background::{self, Background};
pub use engine::pending_call::{Progress, Restart, Sink};
pub use host::{guard, health, inherited, runtime};
pub use session::Session;
pub use session::names::{Meaning, ShellNames};
pub use session::options::{CommandRequest, ForkState, InputRequest, SessionOptions, StartupFiles};
pub use shell::choice::{find as find_shell, usable as usable_shell};
pub use shell::secrets::ShellSecrets;
pub use sys::lacks_output;
pub use terminal::spawn::between_starts;
pub use terminal::{bootstrap, key};
