//! Spawns a shell with its terminal, FIFOs, files and environment.
//!
//! The thread that spawns the shell must live as long as the shell: the shell requests a signal for the end of its
//! parent, and to the kernel that is the thread.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{OnceLock, PoisonError, RwLock};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::termios::{self, InputFlags, LocalFlags, OutputFlags, SetArg, Termios};
use nix::unistd::mkfifo;
use portable_pty::{CommandBuilder, native_pty_system};

use crate::host::error_hints::MissingResource;
use crate::process;
use crate::shell::command_lines::STATUS_SCRIPT;
use crate::shell::description::override_lines;
use crate::shell::{SessionPaths, Shell};
use crate::sys;
use crate::teardown::registry;
use crate::teardown::stamp::{Stamp, stamp_argument};
use crate::terminal::bootstrap;
use crate::terminal::fast_path::FastPath;
use crate::terminal::live_shell::{LiveShell, ShellChild, Size};
use crate::terminal::output_hints::OutputHints;
use crate::terminal::script_file::ScriptFile;

/// Held while a shell is being started: until it has its own session, a signal to karyi's group reaches it, too.
static STARTING: RwLock<()> = RwLock::new(());

/// Does something while no shell is being started.
pub fn between_starts<T>(work: impl FnOnce() -> T) -> T {
    let _between = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Configuration of the shells of one session.
#[derive(Debug)]
pub(crate) struct SpawnConfig {
    pub(crate) shell: Shell,
    pub(crate) bootstrap: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Values for variables that the setup would set.
    pub(crate) overrides: Vec<(OsString, OsString)>,
    /// The session's private directory.
    pub(crate) directory: PathBuf,
    pub(crate) nonce: String,
    /// Name of the session within this program.
    pub(crate) tag: String,
    /// Resource limit that identifies its processes.
    pub(crate) stamp: Option<Stamp>,
}

impl SpawnConfig {
    /// Spawns the shell in a directory, on a terminal of a size.
    ///
    /// # Errors
    /// The system cannot create a terminal, a FIFO or a process.
    pub(crate) fn spawn(&self, cwd: &Path, size: Size) -> io::Result<(LiveShell, ShellChild)> {
        // The last OS error says the same.
        let pair = native_pty_system()
            .openpty(size.into())
            .map_err(|_| MissingResource::of_terminal(io::Error::last_os_error()))?;
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
        let default_modes = default_modes(&master)?;
        let slave = open(
            &terminal,
            OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        let paths = SessionPaths {
            directory: self.directory.clone(),
            terminal,
            nonce: self.nonce.clone(),
        };
        let fifo = make_fifo(&paths.file("in"))?;
        let marks = make_fifo(&paths.file("marks"))?;
        let snapshots = self.make_snapshot_fifo()?;
        let builder = self.command(&paths, cwd);
        let child = {
            let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
            pair.slave.spawn_command(builder)
        };
        let child = child.map_err(io::Error::other)?;
        // The type of the library has the name of a signal, not its number.
        let child: Box<dyn portable_pty::Child> = child;
        let child = child
            .downcast::<Child>()
            .map_err(|_| io::Error::other("no process"))?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let live = LiveShell {
            pid,
            fast_path: FastPath::of(pid, &fifo)?,
            master,
            slave,
            fifo,
            marks,
            process: process::open(pid),
            paths,
            hints: OutputHints::default(),
            shows_syscalls: shows_syscalls(),
            image: OnceLock::new(),
        };
        Ok((
            live,
            ShellChild {
                process: *child,
                snapshots,
                default_modes,
            },
        ))
    }

    /// Creates the FIFO for snapshots.
    ///
    /// # Errors
    /// The session's directory takes no files.
    pub(crate) fn make_snapshot_fifo(&self) -> io::Result<OwnedFd> {
        make_fifo(&self.directory.join("state"))
    }

    /// Creates the session's directory, if it is gone, and its files; returns the script file.
    ///
    /// # Errors
    /// The directory cannot be created, belongs to another user, or takes no files.
    pub(crate) fn write_files(&self) -> io::Result<ScriptFile> {
        own_directory(&self.directory)?;
        let paths = SessionPaths {
            directory: self.directory.clone(),
            terminal: PathBuf::new(),
            nonce: self.nonce.clone(),
        };
        let dialect = self.shell.dialect;
        let mut setup = dialect.setup_script(&paths).into_bytes();
        setup.extend(override_lines(&self.overrides));
        write_private(&paths.file("setup"), &setup)?;
        let snapshot = dialect.snapshot_script(&paths);
        write_private(&paths.file("snapshot"), snapshot.as_bytes())?;
        write_private(&paths.file("status"), STATUS_SCRIPT.as_bytes())?;
        let path = paths.file("script");
        ScriptFile::new(write_private(&path, b"")?, path)
    }

    /// Returns the names of the initial variables that a shell can unset.
    pub(crate) fn variables(&self) -> Vec<String> {
        let names = self.env.iter().filter_map(|(name, _)| name.to_str());
        let is_name = |name: &&str| karyi_core::secret::SecretName::parse(name).is_some();
        names.filter(is_name).map(str::to_owned).collect()
    }

    fn command(&self, paths: &SessionPaths, cwd: &Path) -> CommandBuilder {
        let mut builder = CommandBuilder::new(&self.bootstrap);
        builder.arg(bootstrap::ARGUMENT);
        builder.arg(paths.file("in"));
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
        // Neither unset nor empty: some shells would read a file of their own instead.
        builder.env("ENV", "/dev/null");
        // ksh would open the user's history before it can be told not to.
        builder.env("HISTFILE", "/dev/null");
        builder.env("TERM", "xterm-256color");
        builder.env("PWD", cwd);
        builder.env(registry::TAG_VARIABLE, &self.tag);
        builder.cwd(cwd);
        builder
    }

    /// Returns the line that sets the tag of this session.
    pub(crate) fn tag_line(&self) -> String {
        format!("\\export {}={}\n", registry::TAG_VARIABLE, self.tag)
    }
}

/// Returns the value of a variable in an environment.
pub(crate) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().rev().find(|(key, _)| key == name)?;
    Some(value)
}

/// Sets and returns the modes a person would expect, but without output processing: line feeds stay line feeds, and
/// the kernel is several times faster.
fn default_modes(master: &OwnedFd) -> io::Result<Termios> {
    let mut modes = termios::tcgetattr(master)?;
    modes.output_flags.remove(OutputFlags::OPOST);
    modes
        .input_flags
        .insert(InputFlags::ICRNL | InputFlags::IUTF8);
    // Ctrl+S would stop all output, marks included.
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

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn shows_syscalls() -> bool {
    crate::wait::syscall::is_readable()
}

#[cfg(not(target_os = "linux"))]
fn shows_syscalls() -> bool {
    false
}

/// Creates a directory that only this user can use, unless it exists.
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

fn write_private(path: &Path, text: &[u8]) -> io::Result<File> {
    remove(path)?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)?;
    Ok(file)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a private FIFO and opens both its ends, so that neither side ever sees it closed.
pub(crate) fn make_fifo(path: &Path) -> io::Result<OwnedFd> {
    remove(path)?;
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}
