//! The program that becomes the shell.
//!
//! The library that opens the terminal closes every descriptor above 2 and has no hook before the shell starts. So it
//! starts this program, which does what a hook would do: it makes the FIFO its standard input, requests a signal for
//! the end of its parent, sets the session's stamp, and then becomes the shell.
//!
//! The signal is for the case that the parent is killed. It is KILL, because the HUP of the vanished terminal can be
//! ignored, and the shell would wait forever for a reader of its last snapshot. With the shell, the leader of its
//! session, the job in the foreground loses its terminal and gets HUP. The kernel drops the request when a setuid
//! program replaces the shell. Such a program, background jobs and all that ignore HUP are ended by the next start
//! (`teardown::sweep`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;

use crate::teardown::stamp::Stamp;

/// First argument of the program that becomes the shell.
pub const ARGUMENT: &str = "__bootstrap";

/// Becomes the shell; `arguments` are the FIFO, the stamp, which may be empty, the program and the shell's own
/// arguments.
///
/// # Errors
/// Returns only on failure.
pub fn bootstrap(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut arguments = arguments.into_iter();
    let (Some(fifo), Some(stamp), Some(program)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        let message = "expected a FIFO, a stamp and a program";
        return io::Error::new(io::ErrorKind::InvalidInput, message);
    };
    if let Some(stamp) = stamp.to_str().and_then(Stamp::parse) {
        stamp.put_on();
    }
    if let Err(error) = prepare(Path::new(&fifo)) {
        return error;
    }
    become_shell(&program, arguments)
}

fn prepare(fifo: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // Without O_NONBLOCK it would block forever if the other end is closed already.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let input = open(fifo, flags, Mode::empty())?;
    fcntl(&input, FcntlArg::F_SETFL(OFlag::empty()))?;
    nix::unistd::dup2_stdin(&input)?;
    Ok(())
}

fn become_shell(program: &OsStr, arguments: impl Iterator<Item = OsString>) -> io::Error {
    Command::new(program).args(arguments).exec()
}
