//! The program that becomes the shell.
//!
//! The library that makes the terminal closes every descriptor above 2 and has no hook before the
//! shell starts. So it starts karyi again, which does the two things a hook would do - it makes the
//! named FIFO its standard input and asks for a signal when its parent ends - and then becomes the
//! shell.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// First argument of the hidden call.
pub const ARGUMENT: &str = "__bootstrap";

/// Becomes the shell; `arguments` are the FIFO, the program and the shell's own arguments.
///
/// # Errors
/// Returns only when that failed.
pub fn bootstrap(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut arguments = arguments.into_iter();
    let (Some(fifo), Some(program)) = (arguments.next(), arguments.next()) else {
        return io::Error::new(io::ErrorKind::InvalidInput, "expected a FIFO and a program");
    };
    if let Err(error) = prepare(Path::new(&fifo)) {
        return error;
    }
    become_shell(&program, arguments)
}

fn prepare(fifo: &Path) -> io::Result<()> {
    // First, because opening the FIFO blocks when its other end is gone already.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGHUP)?;
    let input = std::fs::File::open(fifo)?;
    nix::unistd::dup2_stdin(&input)?;
    Ok(())
}

fn become_shell(program: &OsStr, arguments: impl Iterator<Item = OsString>) -> io::Error {
    Command::new(program).args(arguments).exec()
}
