//! A running shell: its terminal, its FIFOs, its process.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use nix::unistd::{Pid, tcgetpgrp};
use portable_pty::PtySize;

use karyi_core::limits;

use crate::process;
use crate::process::group::Group;
use crate::shell::SessionPaths;
use crate::sys;
use crate::terminal::fast_path::FastPath;
use crate::terminal::key::Key;
use crate::terminal::output_hints::OutputHints;
use crate::wait::WatchedTerminal;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
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

/// A running shell, shared by callers and the session's thread.
#[derive(Debug)]
pub(crate) struct LiveShell {
    pub(crate) pid: i32,
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
    pub(crate) fifo: OwnedFd,
    /// The FIFO that is the standard output of bash between commands.
    pub(crate) marks: OwnedFd,
    /// Readable when the shell has ended.
    pub(crate) process: Option<OwnedFd>,
    pub(crate) paths: SessionPaths,
    /// Terminal modes and line state from the output of the job.
    pub(crate) hints: OutputHints,
    /// True if the kernel shows the system calls of threads.
    pub(crate) shows_syscalls: bool,
    /// State for cheaper commands.
    pub(crate) fast_path: FastPath,
    /// Identity of the shell's program, once it runs.
    pub(crate) image: OnceLock<Vec<u8>>,
}

/// Location of the FIFO among a shell's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputLocation {
    /// On 0: the shell reads its next line from it.
    Stdin,
    /// Saved on another descriptor: a script runs.
    SetAside,
    /// A command has closed it, or the shell was replaced.
    Lost,
}

/// Handles for the thread that started the shell.
pub(crate) struct ShellChild {
    pub(crate) process: Child,
    /// FIFO of snapshots.
    pub(crate) snapshots: OwnedFd,
    /// The terminal's modes between commands.
    pub(crate) default_modes: Termios,
}

impl LiveShell {
    /// Sends lines to the shell.
    ///
    /// # Errors
    /// The FIFO is full: the shell has not read for a long time.
    pub(crate) fn write_lines(&self, lines: &[u8]) -> io::Result<()> {
        write_all(&self.fifo, lines)
    }

    /// Types the line that lets the shell read its own lines again. Shells other than bash go on reading the terminal
    /// when Ctrl+C breaks off a file that they source with the terminal as its input.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn type_input_line(&self) -> io::Result<()> {
        let line = format!("\\exec <{}\n", self.paths.quoted("in"));
        write_all(&self.master, line.as_bytes())
    }

    /// Types a key into the terminal. Where the terminal turns keys into signals, Ctrl+C, Ctrl+Z and Ctrl+\\ become
    /// the characters it has for them; where it does not, Ctrl+C sends INT to the job.
    ///
    /// # Errors
    /// The terminal takes no more input.
    pub(crate) fn press(&self, key: Key) -> io::Result<()> {
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
        let group = self.foreground_group().ok_or(Errno::ESRCH)?;
        Ok(group.signal_now(Signal::SIGINT)?)
    }

    /// Returns the process group in the foreground of the terminal, unless a signal to it would reach processes
    /// outside the shell's session.
    pub(crate) fn foreground_group(&self) -> Option<Group> {
        Group::new(tcgetpgrp(&self.master).ok()?.as_raw(), self.pid)
    }

    /// Sets the size of the terminal; the job in the foreground gets WINCH.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        sys::set_size(&self.master, size.rows, size.columns)
    }

    /// Returns true if an exit status means that a job was stopped, and a child of the shell is.
    pub(crate) fn has_stopped_child(&self, exit_code: i32) -> bool {
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

    /// Returns the descriptors that wait detection needs.
    pub(crate) fn watched_terminal(&self) -> WatchedTerminal<'_> {
        WatchedTerminal {
            shell: self.pid,
            master: &self.master,
            slave: &self.slave,
            fifo: &self.fifo,
            shows_syscalls: self.shows_syscalls,
            is_line_open: self.hints.is_line_open(),
        }
    }

    /// Sends a signal to the shell, and to no other process if the shell has ended.
    pub(crate) fn signal_shell(&self, signal: Signal) {
        let _ = match &self.process {
            Some(process) => process::send(process, signal),
            None => kill(Pid::from_raw(self.pid), signal).map_err(io::Error::from),
        };
    }

    /// Continues a stopped shell: otherwise no command would ever end.
    pub(crate) fn continue_if_stopped(&self) {
        let is_stopped = match process::are_shown() {
            true => process::find(self.pid).is_some_and(|shell| shell.is_stopped()),
            false => process::is_child_stopped(self.pid),
        };
        if is_stopped {
            self.signal_shell(Signal::SIGCONT);
        }
    }

    /// Returns true if the shell has no input and runs no script: a command has closed its input, and it retries the
    /// read forever. `script` is device and inode of the script file.
    pub(crate) fn has_lost_input(&self, script: (u64, u64)) -> bool {
        let directory = format!("/proc/{}/fd", self.pid);
        let is_script = |path: &Path| {
            let file = fs::metadata(path).ok();
            file.is_some_and(|file| (file.dev(), file.ino()) == script)
        };
        let mut all = fs::read_dir(&directory).into_iter().flatten().flatten();
        process::children(self.pid).is_empty()
            && self.input_location() == InputLocation::Lost
            && !all.any(|entry| is_script(&entry.path()))
            && self
                .image
                .get()
                .is_some_and(|image| self.program().as_ref() == Some(image))
    }

    /// Records the identity of the shell's program, once it runs.
    pub(crate) fn note_program(&self) {
        if let Some(image) = self.program() {
            let _ = self.image.set(image);
        }
    }

    /// Returns an identity that changes when a program is replaced, even by itself: its arguments and its address
    /// layout.
    fn program(&self) -> Option<Vec<u8>> {
        let read = |name| fs::read(format!("/proc/{}/{name}", self.pid)).ok();
        Some([read("cmdline")?, read("auxv").unwrap_or_default()].concat())
    }

    /// Returns true if the shell has too few free descriptors to save its own for a script.
    pub(crate) fn lacks_descriptors(&self) -> bool {
        let soft = process::limits_of(self.pid, "Max open files").and_then(|(soft, _)| soft);
        soft.is_some_and(|soft| soft < limits::MIN_SHELL_DESCRIPTORS)
    }

    /// Returns true if the terminal has no session: a program took it from the shell and has ended. Then no key is a
    /// signal.
    pub(crate) fn has_lost_terminal(&self) -> bool {
        crate::wait::has_no_session(&self.master)
    }

    /// Returns the location of the shell's input.
    pub(crate) fn input_location(&self) -> InputLocation {
        if self.fast_path.has_input(self.process.as_ref()) {
            return InputLocation::Stdin;
        }
        let own = self.fast_path.fifo;
        let is_fifo = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.dev(), file.ino()) == own)
        };
        // A shell that has ended, or cannot be inspected, has lost nothing.
        let directory = format!("/proc/{}/fd", self.pid);
        match is_fifo(Path::new(&format!("{directory}/0"))) {
            Some(true) => return InputLocation::Stdin,
            None if !Path::new(&directory).exists() => return InputLocation::Stdin,
            _ => {}
        }
        let mut all = fs::read_dir(directory).into_iter().flatten().flatten();
        if all.any(|entry| is_fifo(&entry.path()) == Some(true)) {
            InputLocation::SetAside
        } else {
            InputLocation::Lost
        }
    }

    /// Returns the name of the program in the foreground; in a pipeline, of the one started last.
    pub(crate) fn foreground_program(&self) -> Option<String> {
        let group = tcgetpgrp(&self.master).ok()?;
        let (all, _) = process::tree();
        let running = all
            .into_iter()
            .filter(|p| p.group == group.as_raw() && !p.is_zombie());
        let pid = running.map(|member| member.pid).max()?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// Returns the shell's directory, spelled as the shell does if that is true.
    pub(crate) fn directory(&self, claimed: PathBuf) -> PathBuf {
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

    /// Returns true if the shell's directory was removed.
    pub(crate) fn is_directory_deleted(&self) -> bool {
        // Its parents are gone as well, or it would have a name.
        let found = fs::metadata(format!("/proc/{}/cwd", self.pid));
        found.is_ok_and(|directory| directory.nlink() == 0)
    }

    /// Returns true if the shell is known to be in a directory.
    pub(crate) fn is_in(&self, directory: &Path) -> bool {
        is_same_file(directory, Path::new(&format!("/proc/{}/cwd", self.pid)))
    }

    /// Discards unread input: it was typed for a command that has ended.
    pub(crate) fn flush_input(&self) {
        let _ = termios::tcflush(&self.slave, termios::FlushArg::TCIFLUSH);
    }
}

impl ShellChild {
    /// Restores the terminal's modes if a command changed them.
    pub(crate) fn reset_modes(&self, live: &LiveShell) {
        if termios::tcgetattr(&live.master).is_ok_and(|modes| modes != self.default_modes) {
            let _ = termios::tcsetattr(&live.master, SetArg::TCSANOW, &self.default_modes);
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(one).is_some_and(|found| Some(found) == file(other))
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

/// Reads available bytes; returns 0 when there are none, or when the other side is closed.
pub(crate) fn read_some(descriptor: impl AsFd, buffer: &mut [u8]) -> usize {
    loop {
        match nix::unistd::read(descriptor.as_fd(), buffer) {
            Err(Errno::EINTR) => {}
            Ok(count) => return count,
            Err(_) => return 0,
        }
    }
}
