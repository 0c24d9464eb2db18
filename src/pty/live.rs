//! A running shell: its terminal, its FIFOs, its process.
//!
//! The thread that starts the shell must live as long as the shell: the shell asks the kernel for
//! a signal when its parent ends, and to the kernel that is the thread.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::Mode;
use nix::sys::termios::{
    self, InputFlags, LocalFlags, OutputFlags, SetArg, SpecialCharacterIndices, Termios,
};
use nix::unistd::{Pid, mkfifo, tcgetpgrp};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::limits;

use super::bootstrap;
use super::ending;
use super::gate::Gate;
use super::hints::Hints;
use super::kept::Kept;
use super::key::Key;
use super::process;
use super::shell::{Places, STATUS_SCRIPT, Shell, variable};
use super::stamp::{Stamp, stamp_argument};
use super::sys;
use super::wait::Subject;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: u16,
    pub(super) columns: u16,
}

impl From<Size> for PtySize {
    fn from(size: Size) -> Self {
        Self {
            rows: size.rows,
            cols: size.columns,
            pixel_width: 0,
            pixel_height: 0,
        }
    }
}

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
    /// What its processes are known by.
    pub(super) stamp: Option<Stamp>,
}

/// The file that scripts are written to.
#[derive(Debug)]
pub(super) struct ScriptFile {
    pub(super) file: File,
    path: PathBuf,
    /// Its device and number.
    identity: (u64, u64),
}

impl ScriptFile {
    /// Whether the shell would find it: a command may have removed it, or its directory.
    pub(super) fn is_there(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|file| (file.dev(), file.ino()) == self.identity)
    }
}

/// A running shell, as everyone may use it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) pid: i32,
    pub(super) master: OwnedFd,
    pub(super) slave: OwnedFd,
    pub(super) fifo: OwnedFd,
    /// Readable when the shell has ended.
    pub(super) process: Option<OwnedFd>,
    pub(super) places: Places,
    /// Between the terminal's output and the session's thread, where a caller may read it as well.
    pub(super) gate: Option<Gate>,
    /// What the output told about the job.
    pub(super) hints: Hints,
    /// Whether the kernel tells what threads are blocked in.
    is_told: bool,
    /// What makes a command cheap.
    pub(super) kept: Kept,
}

/// Where the FIFO is among a shell's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputPlace {
    /// On 0: the shell reads its next line from it.
    Here,
    /// Put aside: a script runs.
    Elsewhere,
    /// A command has closed it, or the shell was replaced.
    Nowhere,
}

/// What only the thread that started the shell needs.
pub(super) struct Owned {
    pub(super) child: Child,
    /// Where the shell writes its snapshots.
    pub(super) state: Arc<OwnedFd>,
    /// The terminal's modes between commands.
    pub(super) sane: Termios,
}

impl Plan {
    /// Starts the shell in a directory, on a terminal of a size.
    ///
    /// # Errors
    /// When the system cannot make a terminal, a FIFO or a process.
    pub(super) fn spawn(&self, cwd: &Path, size: Size) -> io::Result<(Live, Owned)> {
        let pair = native_pty_system().openpty(size.into()).map_err(|_| {
            // It tells the same in its own words.
            let error = io::Error::last_os_error();
            io::Error::new(error.kind(), format!("opening a terminal: {error}"))
        })?;
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
        let state = self.make_state_fifo()?;
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
            kept: Kept::of(pid, &fifo)?,
            gate: Gate::new(&master),
            master,
            slave,
            fifo,
            process: process::open(pid),
            places,
            hints: Hints::default(),
            is_told: is_told(),
        };
        Ok((
            live,
            Owned {
                child: *child,
                state,
                sane,
            },
        ))
    }

    /// Makes the FIFO into which the shell describes itself.
    ///
    /// # Errors
    /// When the session's directory takes no files.
    pub(super) fn make_state_fifo(&self) -> io::Result<Arc<OwnedFd>> {
        Ok(Arc::new(make_fifo(&self.directory.join("state"))?))
    }

    /// Makes the session's directory, if it is gone, and its files; returns the one for scripts.
    ///
    /// # Errors
    /// When the directory cannot be made, is not ours alone, or takes no files.
    pub(super) fn write_files(&self) -> io::Result<ScriptFile> {
        own_directory(&self.directory)?;
        let places = Places {
            directory: self.directory.clone(),
            terminal: PathBuf::new(),
            nonce: self.nonce.clone(),
        };
        let kind = self.shell.kind;
        write_private(&places.file("setup"), &kind.setup_script(&places))?;
        write_private(&places.file("snapshot"), &kind.snapshot_script(&places))?;
        write_private(&places.file("status"), STATUS_SCRIPT)?;
        let path = places.file("script");
        let file = write_private(&path, "")?;
        let found = file.metadata()?;
        let identity = (found.dev(), found.ino());
        Ok(ScriptFile {
            file,
            path,
            identity,
        })
    }

    /// Returns the names of the variables a shell starts with that a shell could unset.
    pub(super) fn variables(&self) -> Vec<String> {
        let names = self.env.iter().filter_map(|(name, _)| name.to_str());
        let is_name = |name: &&str| crate::secret::SecretName::parse(name).is_some();
        names.filter(is_name).map(str::to_owned).collect()
    }

    fn command(&self, places: &Places, cwd: &Path) -> CommandBuilder {
        let mut builder = CommandBuilder::new(&self.bootstrap);
        builder.arg(bootstrap::ARGUMENT);
        builder.arg(places.file("in"));
        builder.arg(stamp_argument(self.stamp));
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
        if let Some(file) = variable(&self.env, "ENV") {
            builder.env("KARYI_ENV", file);
        }
        // Not removed: some shells would read a file of their own instead.
        builder.env("ENV", "");
        // ksh would open the user's before it can be told not to.
        builder.env("HISTFILE", "/dev/null");
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

    /// Types a key into the terminal. Where the terminal turns keys into signals, Ctrl+C, Ctrl+Z and
    /// Ctrl+\\ are whatever it has in their place; where it does not, Ctrl+C reaches the job all the
    /// same.
    ///
    /// # Errors
    /// When the terminal takes no more input.
    pub(super) fn press(&self, key: Key) -> io::Result<()> {
        let place = match key {
            Key::INTERRUPT => SpecialCharacterIndices::VINTR,
            Key::SUSPEND => SpecialCharacterIndices::VSUSP,
            Key::QUIT => SpecialCharacterIndices::VQUIT,
            _ if self.hints.has_application_keys() => {
                return write_all(&self.master, &key.application_bytes());
            }
            _ => return write_all(&self.master, &key.bytes()),
        };
        let modes = termios::tcgetattr(&self.master)?;
        let character = modes.control_chars[place as usize];
        if modes.local_flags.contains(LocalFlags::ISIG) && character != 0 {
            return write_all(&self.master, &[character]);
        }
        if key != Key::INTERRUPT {
            return write_all(&self.master, &key.bytes());
        }
        Ok(killpg(self.foreground_group()?, Signal::SIGINT)?)
    }

    /// Returns the process group in the foreground of the terminal.
    ///
    /// # Errors
    /// When there is none: a signal to the group 0 would reach this very program.
    pub(super) fn foreground_group(&self) -> io::Result<Pid> {
        foreground_group(&self.master)
    }

    /// Sets the size of the terminal; the job in the foreground is told.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn resize(&self, size: Size) -> io::Result<()> {
        sys::set_size(&self.master, size.rows, size.columns)
    }

    /// Whether an exit status says that a job was stopped, and a job of the shell is.
    pub(super) fn has_stopped_child(&self, exit_code: i32) -> bool {
        const STOPS: [Signal; 4] = [
            Signal::SIGSTOP,
            Signal::SIGTSTP,
            Signal::SIGTTIN,
            Signal::SIGTTOU,
        ];
        let is_stop = STOPS.iter().any(|stop| exit_code == 128 + *stop as i32);
        is_stop
            && process::children(self.pid)
                .into_iter()
                .rev()
                .take(limits::MAX_SCANNED_PROCESSES)
                .filter_map(process::find)
                .any(|child| child.is_stopped())
    }

    /// Returns what wait detection looks at.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            shell: self.pid,
            master: &self.master,
            slave: &self.slave,
            fifo: &self.fifo,
            is_told: self.is_told,
            is_line_open: self.hints.is_line_open(),
        }
    }

    /// Sends a signal to the shell, and to nobody else once that has ended.
    pub(super) fn signal_shell(&self, signal: Signal) {
        let _ = match &self.process {
            Some(process) => process::send(process, signal),
            None => kill(Pid::from_raw(self.pid), signal).map_err(io::Error::from),
        };
    }

    /// Has a stopped shell go on: nobody else could, and no command would ever end.
    pub(super) fn wake_if_stopped(&self) {
        if process::find(self.pid).is_some_and(|shell| shell.is_stopped()) {
            self.signal_shell(Signal::SIGCONT);
        }
    }

    /// Whether the shell has too few descriptors left to put its own aside for a script.
    pub(super) fn is_starved(&self) -> bool {
        let soft = process::limits_of(self.pid, "Max open files").and_then(|(soft, _)| soft);
        soft.is_some_and(|soft| soft < limits::MIN_SHELL_DESCRIPTORS)
    }

    /// Whether the terminal is nobody's: a program took it from the shell and has ended. No key is a
    /// signal there any more.
    pub(super) fn has_lost_terminal(&self) -> bool {
        super::wait::is_nobodys(&self.master)
    }

    /// Returns where the shell's own input is, between two commands or in the middle of one.
    pub(super) fn input_place(&self) -> InputPlace {
        if self.kept.has_input(self.process.as_ref()) {
            return InputPlace::Here;
        }
        let own = self.kept.fifo;
        let is_fifo = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.dev(), file.ino()) == own)
        };
        // A shell that has ended, or that cannot be looked at, has lost nothing.
        let directory = format!("/proc/{}/fd", self.pid);
        match is_fifo(Path::new(&format!("{directory}/0"))) {
            Some(true) => return InputPlace::Here,
            None if !Path::new(&directory).exists() => return InputPlace::Here,
            _ => {}
        }
        let mut all = fs::read_dir(directory).into_iter().flatten().flatten();
        if all.any(|entry| is_fifo(&entry.path()) == Some(true)) {
            InputPlace::Elsewhere
        } else {
            InputPlace::Nowhere
        }
    }

    /// Returns the name of the program in the foreground; in a pipeline of the one started last.
    pub(super) fn foreground_program(&self) -> Option<String> {
        let group = tcgetpgrp(&self.master).ok()?;
        let all = process::all().into_iter();
        let running = all.filter(|p| p.group == group.as_raw() && !p.is_zombie());
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

    /// Throws away input that nobody has read; it was typed for a command that has ended.
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

/// Returns the process group in the foreground of a terminal; a terminal nobody has gives 0, which
/// is none.
pub(super) fn foreground_group(master: impl AsFd) -> io::Result<Pid> {
    let group = tcgetpgrp(master)?;
    if group.as_raw() > 0 {
        Ok(group)
    } else {
        Err(Errno::ESRCH.into())
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
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
fn is_told() -> bool {
    super::syscall::is_told()
}

#[cfg(not(target_os = "linux"))]
fn is_told() -> bool {
    false
}

/// Makes a directory that only we can use, unless it is there.
fn own_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn write_private(path: &Path, text: &str) -> io::Result<File> {
    remove(path)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a FIFO only we can use and opens both its ends, so that neither side ever sees it closed.
pub(super) fn make_fifo(path: &Path) -> io::Result<OwnedFd> {
    remove(path)?;
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
