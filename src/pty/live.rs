//! A running shell: its terminal, its FIFOs, its process.
//!
//! The thread that starts the shell must live as long as the shell: the shell asks the kernel for
//! a signal when its parent ends, and to the kernel that is the thread.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::Mode;
use nix::sys::termios::{
    self, InputFlags, LocalFlags, OutputFlags, SetArg, SpecialCharacterIndices, Termios,
};
use nix::unistd::{mkfifo, tcgetpgrp};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::limits;

use super::bootstrap;
use super::ending;
use super::key::Key;
use super::process;
use super::shell::{Places, Shell, variable};
use super::sys;
use super::wait::Subject;

/// What is needed to start a shell.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) shell: Shell,
    pub(super) bootstrap: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The session's private directory.
    pub(super) directory: PathBuf,
    pub(super) nonce: String,
    /// The session's name among those of this program.
    pub(super) tag: String,
}

/// A running shell, as everyone may use it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) pid: i32,
    pub(super) master: OwnedFd,
    pub(super) slave: OwnedFd,
    pub(super) fifo: OwnedFd,
    /// Where the shell writes its snapshots.
    pub(super) state: OwnedFd,
    /// Readable when the shell has ended.
    pub(super) process: Option<OwnedFd>,
    pub(super) places: Places,
}

/// What only the thread that started the shell needs.
pub(super) struct Owned {
    pub(super) child: Child,
    /// The terminal's modes between commands.
    pub(super) sane: Termios,
}

impl Plan {
    /// Starts the shell in a directory.
    ///
    /// # Errors
    /// When the system cannot make a terminal, a FIFO or a process.
    pub(super) fn spawn(&self, cwd: &Path) -> io::Result<(Live, Owned)> {
        let size = PtySize {
            rows: limits::TERMINAL_ROWS,
            cols: limits::TERMINAL_COLUMNS,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system()
            .openpty(size)
            .map_err(io::Error::other)?;
        let raw = pair
            .master
            .as_raw_fd()
            .ok_or_else(|| io::Error::other("no terminal"))?;
        let terminal = pair
            .master
            .tty_name()
            .ok_or_else(|| io::Error::other("no terminal name"))?;
        let master = sys::duplicate(raw)?;
        set_nonblocking(&master)?;
        let sane = sane_modes(&master)?;
        let slave = open(
            &terminal,
            OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        let places = Places {
            directory: self.directory.clone(),
            terminal,
            nonce: self.nonce.clone(),
        };
        let fifo = make_fifo(&places.file("in"))?;
        let state = make_fifo(&places.file("state"))?;
        let builder = self.command(&places, cwd);
        let child = pair
            .slave
            .spawn_command(builder)
            .map_err(io::Error::other)?;
        // The library's own type tells the name of a signal, not its number.
        let child: Box<dyn portable_pty::Child> = child;
        let child = child
            .downcast::<Child>()
            .map_err(|_| io::Error::other("no process"))?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let live = Live {
            pid,
            master,
            slave,
            fifo,
            state,
            process: open_process(pid),
            places,
        };
        Ok((
            live,
            Owned {
                child: *child,
                sane,
            },
        ))
    }

    fn command(&self, places: &Places, cwd: &Path) -> CommandBuilder {
        let mut builder = CommandBuilder::new(&self.bootstrap);
        builder.arg(bootstrap::ARGUMENT);
        builder.arg(places.file("in"));
        builder.arg(&self.shell.path);
        builder.args(&self.shell.arguments);
        builder.env_clear();
        for (name, value) in &self.env {
            builder.env(name, value);
        }
        for name in [
            "COLUMNS",
            "LINES",
            "PROMPT_COMMAND",
            "PS1",
            "TMOUT",
            "OLDPWD",
        ] {
            builder.env_remove(name);
        }
        if variable(&self.env, "PATH").is_none() {
            builder.env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            );
        }
        builder.env("TERM", "xterm-256color");
        builder.env("PWD", cwd);
        builder.env(ending::TAG_VARIABLE, &self.tag);
        builder.cwd(cwd);
        builder
    }
}

impl Live {
    /// Gives the shell lines to run.
    ///
    /// # Errors
    /// When the FIFO is full: the shell has not read for a long time.
    pub(super) fn write_lines(&self, lines: &[u8]) -> io::Result<()> {
        write_all(&self.fifo, lines)
    }

    /// Types a key into the terminal; Ctrl+C reaches the job even when the terminal does not turn
    /// it into a signal.
    ///
    /// # Errors
    /// When the terminal takes no more input.
    pub(super) fn press(&self, key: Key) -> io::Result<()> {
        if key != Key::INTERRUPT {
            return write_all(&self.master, &key.bytes());
        }
        let modes = termios::tcgetattr(&self.master)?;
        let interrupt = modes.control_chars[SpecialCharacterIndices::VINTR as usize];
        if modes.local_flags.contains(LocalFlags::ISIG) && interrupt != 0 {
            return write_all(&self.master, &[interrupt]);
        }
        Ok(killpg(tcgetpgrp(&self.master)?, Signal::SIGINT)?)
    }

    /// Returns what wait detection looks at.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            shell: self.pid,
            master: &self.master,
            slave: &self.slave,
            fifo: &self.fifo,
        }
    }

    /// Returns the name of the program in the foreground; in a pipeline of the one started last.
    pub(super) fn foreground_program(&self) -> Option<String> {
        let group = tcgetpgrp(&self.master).ok()?;
        let members = process::group_members(self.pid, group.as_raw());
        let running = members.iter().filter(|member| !member.is_zombie());
        let pid = running.map(|member| member.pid).max()?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// Returns the directory the shell is in: as the shell spells it when that is true.
    pub(super) fn directory(&self, claimed: PathBuf) -> PathBuf {
        let link = format!("/proc/{}/cwd", self.pid);
        let Ok(real) = fs::read_link(&link) else {
            return claimed;
        };
        if claimed == real || real.to_string_lossy().ends_with(" (deleted)") {
            return claimed;
        }
        let is_same = is_same_file(&claimed, Path::new(&link)) && claimed.is_absolute();
        if is_same { claimed } else { real }
    }

    /// Throws away input that nobody has read.
    pub(super) fn flush_input(&self) {
        let _ = termios::tcflush(&self.slave, termios::FlushArg::TCIFLUSH);
    }
}

impl Owned {
    /// Sets the terminal's modes back if a command changed them.
    pub(super) fn reset_modes(&self, live: &Live) {
        if termios::tcgetattr(&live.master).is_ok_and(|modes| modes != self.sane) {
            let _ = termios::tcsetattr(&live.master, SetArg::TCSANOW, &self.sane);
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(one).is_some_and(|found| Some(found) == file(other))
}

/// Sets and returns the modes of a terminal that a person would expect, without output processing:
/// line feeds stay line feeds, and the kernel is several times faster.
fn sane_modes(master: &OwnedFd) -> io::Result<Termios> {
    let mut modes = termios::tcgetattr(master)?;
    modes.output_flags.remove(OutputFlags::OPOST);
    modes
        .input_flags
        .insert(InputFlags::ICRNL | InputFlags::IUTF8);
    // Ctrl+S would stop all output, the marks too.
    modes.input_flags.remove(InputFlags::IXON);
    modes.local_flags.insert(
        LocalFlags::ISIG
            | LocalFlags::ICANON
            | LocalFlags::IEXTEN
            | LocalFlags::ECHO
            | LocalFlags::ECHOE,
    );
    termios::tcsetattr(master, SetArg::TCSANOW, &modes)?;
    Ok(termios::tcgetattr(master)?)
}

#[cfg(target_os = "linux")]
fn open_process(pid: i32) -> Option<OwnedFd> {
    sys::open_process(pid).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_process(_pid: i32) -> Option<OwnedFd> {
    None
}

/// Makes a FIFO only we can use and opens both its ends, so that neither side ever sees it closed.
pub(super) fn make_fifo(path: &Path) -> io::Result<OwnedFd> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn write_all(descriptor: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match nix::unistd::write(descriptor, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what is there; nothing when that is nothing, or when the other side is gone.
pub(super) fn read_some(descriptor: impl AsFd, buffer: &mut [u8]) -> usize {
    loop {
        match nix::unistd::read(descriptor.as_fd(), buffer) {
            Err(Errno::EINTR) => {}
            Ok(count) => return count,
            Err(_) => return 0,
        }
    }
}
