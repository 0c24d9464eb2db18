//! One persistent shell on a pseudo-terminal per session.
//!
//! The shell's own standard input is a private FIFO, so it never reads the terminal: there is no
//! line editor, no echo, no limit of a line, and nothing a command does to the terminal can reach
//! the next one. Per command the shell sources a private file with the terminal on 0, 1 and 2, then
//! prints a mark that says how the command ended. A [`Session`] is the handle; a
//! thread per session reads the terminal, and asks the kernel what the job in the foreground waits
//! for.

mod alarm;
mod answering;
mod attend;
pub mod background;
mod beside;
pub mod bootstrap;
mod call;
mod choice;
mod closing;
mod delivery;
mod describe;
#[cfg(target_os = "linux")]
mod descriptor;
mod drive;
mod ending;
mod engine;
mod gate;
mod group;
pub mod guard;
pub mod health;
mod hints;
pub mod inherited;
mod job;
mod kept;
mod kept_files;
pub mod key;
mod ladder;
mod live;
mod marks;
mod mend;
pub mod options;
mod place;
mod plan;
mod process;
mod record;
mod remedy;
mod request;
mod restart;
pub mod runtime;
mod secrets;
pub mod session;
mod shell;
mod shell_secrets;
mod sight;
mod snapshot;
mod stamp;
mod starting;
mod state;
mod sweep;
mod sys;
#[cfg(target_os = "linux")]
mod syscall;
mod taken;
pub mod text;
mod told;
mod tracker;
mod wait;
mod withhold;

pub use background::Background;
pub use call::{Progress, Restart, Sink};
pub use choice::find as find_shell;
pub use options::{CommandRequest, InputRequest, Rc, Seed, SessionOptions};
pub use session::Session;
pub use shell_secrets::ShellSecrets;
pub use sys::lacks_output;
