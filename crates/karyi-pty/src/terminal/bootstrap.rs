//! The program that becomes the shell.
//!
//! The library that makes the terminal closes every descriptor above 2 and has no hook before the
//! shell starts. So it starts karyi again, which does the things a hook would do - it makes the
//! named FIFO its standard input, asks for a signal when its parent ends and puts the session's
//! stamp on - and then becomes the shell.
//!
//! The signal comes when this program was killed. It is KILL: HUP, which the vanished terminal sends
//! as well, can be ignored, and would let the shell wait for ever for somebody to read its last
//! snapshot. With the shell, the leader of its session, the job in the foreground loses its terminal
//! and gets HUP. The kernel forgets the wish when the shell is replaced by a setuid program; that,
//! jobs in the background and whatever ignores HUP are ended by the next start (`sweep`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;

use crate::teardown::stamp::Stamp;

/// First argument of the hidden call.
pub const ARGUMENT: &str = "__bootstrap";

/// Becomes the shell; `arguments` are the FIFO, the stamp, which may be empty, the program and the
/// shell's own arguments.
///
/// # Errors
/// Returns only when that failed.
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
    // Without O_NONBLOCK it would wait for ever when the other end is gone already.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let input = open(fifo, flags, Mode::empty())?;
    fcntl(&input, FcntlArg::F_SETFL(OFlag::empty()))?;
    nix::unistd::dup2_stdin(&input)?;
    Ok(())
}

fn become_shell(program: &OsStr, arguments: impl Iterator<Item = OsString>) -> io::Error {
    Command::new(program).args(arguments).exec()
}
