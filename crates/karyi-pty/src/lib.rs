//! One persistent shell on a pseudo-terminal per session.
//!
//! The shell's own standard input is a private FIFO, so it never reads the terminal: there is no
//! line editor, no echo, no limit of a line, and nothing a command does to the terminal can reach
//! the next one. Per command the shell sources a private file with the terminal on 0, 1 and 2, then
//! prints a mark that says how the command ended. A [`Session`] is the handle; a
//! thread per session reads the terminal, and asks the kernel what the job in the foreground waits
//! for.

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
pub use session::options::{CommandRequest, ForkState, InputRequest, SessionOptions, StartupFiles};
pub use shell::choice::find as find_shell;
pub use shell::secrets::ShellSecrets;
pub use sys::lacks_output;
pub use terminal::{bootstrap, key};
