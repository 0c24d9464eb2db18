//! Classifies the descriptors of another process: our terminal, something only the process itself can make ready, or
//! something that others make ready.
//!
//! A program that waits for the terminal and for a pipe to itself cannot continue without the user. One that waits for
//! the terminal and for a socket can.

use std::fs::{self, Metadata};
use std::os::linux::fs::MetadataExt;
use std::path::PathBuf;

use nix::libc::{major, makedev, minor};

use karyi_core::limits;

use crate::process::Process;
use crate::wait::syscall;

/// The device number of `/dev/tty`.
const CONTROLLING_TERMINAL: (u32, u32) = (5, 0);
/// The device number of `/dev/ptmx`, the master side of every terminal.
const MASTER: (u32, u32) = (5, 2);
/// The major device number of the slave sides.
const SLAVES: u32 = 136;

/// A pseudo-terminal, named by its slave side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    device: u64,
    /// Device of the file system its file is in; unknown for an inner terminal.
    filesystem: Option<u64>,
}

impl Terminal {
    /// Returns the terminal on which a descriptor of ours is open.
    pub(crate) fn of_own(slave: &std::os::fd::OwnedFd) -> Option<Self> {
        let file = nix::sys::stat::fstat(slave).ok()?;
        Some(Self {
            device: file.st_rdev,
            filesystem: Some(file.st_dev),
        })
    }

    /// Returns the terminal with an index among the pseudo-terminals.
    pub(crate) fn numbered(index: u32) -> Self {
        Self {
            device: makedev(SLAVES, index),
            filesystem: None,
        }
    }

    /// Returns true if it is the controlling terminal of a process.
    pub(crate) fn controls(self, process: &Process) -> bool {
        // `stat` packs the number as the kernel does.
        let (upper, lower) = (major(self.device), minor(self.device));
        let packed = (lower & 0xff) | (upper << 8) | ((lower & !0xff) << 12);
        process.terminal == packed.cast_signed()
    }

    /// Returns the path of its slave side.
    pub(crate) fn path(self) -> PathBuf {
        PathBuf::from(format!("/dev/pts/{}", minor(self.device)))
    }

    fn is(self, file: &Metadata, process: &Process) -> bool {
        let device = file.st_rdev();
        if (major(device), minor(device)) == CONTROLLING_TERMINAL {
            return self.controls(process);
        }
        device == self.device && self.filesystem.is_none_or(|known| known == file.st_dev())
    }

    /// Returns true if a descriptor of a process is open on it.
    pub(crate) fn is_open_as(self, descriptor: i32, process: &Process) -> bool {
        let path = format!("/proc/{}/fd/{descriptor}", process.pid);
        fs::metadata(path).is_ok_and(|file| self.is(&file, process))
    }
}

/// Everything a thread waits for, all descriptors together.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Sources {
    /// True if the terminal is among them.
    pub(crate) has_terminal: bool,
    /// True if the wait ends by itself: a timer among them is set.
    pub(crate) has_timer: bool,
    /// True if other processes or the system can make one of them ready.
    pub(crate) has_others: bool,
    /// True if another terminal is among them.
    has_other_terminal: bool,
    /// Terminals whose master side is among them.
    pub(crate) inner: Vec<u32>,
    /// Pipes and sockets that may lead to the process itself.
    channels: Vec<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    Pipe(u64),
    Socket(u64),
}

impl Sources {
    /// Classifies the descriptors that a process waits for.
    pub(crate) fn of(process: &Process, descriptors: Vec<i32>, terminal: Terminal) -> Self {
        let mut sources = Self::default();
        sources.add(process, descriptors, terminal, 0);
        // Only then do the others matter.
        sources.has_others |= sources.has_terminal && sources.has_other_terminal;
        if sources.has_terminal && !sources.has_others && !sources.channels.is_empty() {
            let own = channels(process.pid);
            let waited = &sources.channels;
            sources.has_others = waited.iter().any(|channel| !channel.is_loop(&own, waited));
        }
        sources
    }

    fn add(&mut self, process: &Process, descriptors: Vec<i32>, terminal: Terminal, depth: usize) {
        const TYPE: u32 = nix::libc::S_IFMT;
        for descriptor in descriptors {
            let path = format!("/proc/{}/fd/{descriptor}", process.pid);
            let Ok(file) = fs::metadata(&path) else {
                continue;
            };
            if terminal.is(&file, process) {
                self.has_terminal = true;
                continue;
            }
            let device = (major(file.st_rdev()), minor(file.st_rdev()));
            match file.st_mode() & TYPE {
                nix::libc::S_IFCHR if device == MASTER => self.add_master(process.pid, descriptor),
                nix::libc::S_IFCHR if is_terminal(device) => self.has_other_terminal = true,
                nix::libc::S_IFCHR => self.has_others = true,
                nix::libc::S_IFIFO => self.channels.push(Channel::Pipe(file.st_ino())),
                nix::libc::S_IFSOCK => self.channels.push(Channel::Socket(file.st_ino())),
                // Files and directories are always ready: no program waits for them.
                nix::libc::S_IFREG | nix::libc::S_IFDIR => {}
                _ if depth < limits::MAX_EPOLL_DEPTH => {
                    self.add_special(process, descriptor, terminal, depth)
                }
                _ => self.has_others = true,
            }
        }
    }

    /// Returns true if a wait for these sources, none of them our terminal, ends without another process of the job.
    pub(crate) fn end_without_job(&self, process: &Process) -> bool {
        let mut sockets = self.channels.iter().filter(|channel| channel.is_socket());
        let is_free = |channel: &Channel| {
            let own = channels(process.pid);
            !channel.is_loop(&own, &self.channels)
        };
        self.has_timer || self.has_others || sockets.any(is_free)
    }

    fn add_master(&mut self, pid: i32, descriptor: i32) {
        match field(pid, descriptor, "tty-index:").and_then(|index| index.parse().ok()) {
            Some(index) => self.inner.push(index),
            None => self.has_others = true,
        }
    }

    /// Adds a descriptor without a file: an event, a timer, a set of other descriptors.
    fn add_special(
        &mut self,
        process: &Process,
        descriptor: i32,
        terminal: Terminal,
        depth: usize,
    ) {
        let pid = process.pid;
        let name = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap_or_default();
        let name = name.to_string_lossy();
        match name.strip_prefix("anon_inode:").unwrap_or(&name) {
            "[eventfd]" | "[signalfd]" => {}
            "[timerfd]" => {
                let value = field(pid, descriptor, "it_value:");
                self.has_timer |= value.is_some_and(|value| value != "(0, 0)");
            }
            "[eventpoll]" => {
                let registered = syscall::registrations(pid, descriptor);
                self.add(process, registered, terminal, depth + 1);
            }
            "[io_uring]" => {
                let pending = syscall::pending(pid, descriptor);
                self.has_others |= pending.has_others;
                self.add(process, pending.reads, terminal, depth + 1);
            }
            _ => self.has_others = true,
        }
    }
}

/// Returns true if a process that reads a descriptor, or writes it, waits for another process of its job: it is a pipe
/// or another terminal. ksh makes a pipeline of sockets.
pub(crate) fn leads_to_job(pid: i32, descriptor: i32) -> bool {
    let path = format!("/proc/{pid}/fd/{descriptor}");
    let Ok(file) = fs::metadata(&path) else {
        return false;
    };
    match file.st_mode() & nix::libc::S_IFMT {
        nix::libc::S_IFIFO => true,
        nix::libc::S_IFSOCK => descriptor <= nix::libc::STDOUT_FILENO,
        nix::libc::S_IFCHR => is_terminal((major(file.st_rdev()), minor(file.st_rdev()))),
        _ => {
            let name = fs::read_link(path).unwrap_or_default();
            let name = name.to_string_lossy();
            name.contains("[eventfd]") || name.contains("[signalfd]")
        }
    }
}

/// Returns true if a device is the slave side of a terminal.
fn is_terminal(device: (u32, u32)) -> bool {
    device.0 == SLAVES || device == CONTROLLING_TERMINAL
}

impl Channel {
    fn is_socket(self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Returns true if its other end is in the same process.
    fn is_loop(self, own: &[(Self, bool)], waited: &[Self]) -> bool {
        let Self::Socket(number) = self else {
            return own.contains(&(self, true));
        };
        // The kernel does not name the other end. Both ends of a pair are created at once, usually with consecutive
        // inodes, and no program waits for both of them.
        let is_other = |channel: &Self| matches!(channel, Self::Socket(_)) && *channel != self;
        let others: Vec<Self> = own
            .iter()
            .map(|(channel, _)| *channel)
            .filter(is_other)
            .collect();
        let is_near = |channel: &Self| match channel {
            Self::Socket(other) => other.abs_diff(number) == 1,
            Self::Pipe(_) => false,
        };
        let is_only = others.len() == 1 && !others.iter().any(|other| waited.contains(other));
        is_only || others.iter().any(is_near)
    }
}

/// Returns the pipes and sockets of a process, each with true if the process can write to it.
fn channels(pid: i32) -> Vec<(Channel, bool)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries
        .into_iter()
        .flatten()
        .flatten()
        .take(limits::MAX_SEARCHED_DESCRIPTORS);
    let channel = |entry: fs::DirEntry| {
        // The link is writable when the descriptor is.
        let is_writable = entry.metadata().ok()?.st_mode() & 0o200 != 0;
        let target = fs::read_link(entry.path()).ok()?;
        let (kind, number) = target.to_str()?.strip_suffix(']')?.split_once(":[")?;
        let number = number.parse().ok()?;
        match kind {
            "pipe" => Some((Channel::Pipe(number), is_writable)),
            "socket" => Some((Channel::Socket(number), is_writable)),
            _ => None,
        }
    };
    entries.filter_map(channel).collect()
}

/// Returns a field of a descriptor's `fdinfo`.
fn field(pid: i32, descriptor: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    Some(values.next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::process;

    /// Classifies descriptors of this program; `/dev/null` stands for the terminal.
    fn look(descriptors: &[&dyn AsRawFd]) -> Sources {
        let own = process::find(i32::try_from(std::process::id()).unwrap()).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let mut numbers: Vec<i32> = descriptors.iter().map(|one| one.as_raw_fd()).collect();
        numbers.push(null.as_raw_fd());
        let sources = Sources::of(&own, numbers, Terminal::of_own(&null.into()).unwrap());
        assert!(sources.has_terminal);
        sources
    }

    #[test]
    fn a_pipe_in_one_process_is_a_loop() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        assert!(!look(&[&reader]).has_others);
        drop(writer);
        assert!(look(&[&reader]).has_others);
    }

    #[test]
    fn a_socket_pair_in_one_process_is_a_loop() {
        let number = |socket: &UnixStream| {
            let file = nix::sys::stat::fstat(socket).unwrap();
            file.st_ino
        };
        let mut pairs = std::iter::repeat_with(|| UnixStream::pair().unwrap());
        let (one, other) = pairs
            .find(|(one, other)| number(one).abs_diff(number(other)) == 1)
            .unwrap();
        assert!(!look(&[&one]).has_others);
        assert!(!look(&[&other]).has_others);
        let pair = |number| [(Channel::Socket(9), true), (Channel::Socket(number), true)];
        let is_loop =
            |number, waited: &[Channel]| Channel::Socket(9).is_loop(&pair(number), waited);
        assert!(is_loop(500, &[Channel::Socket(9)]));
        assert!(!is_loop(500, &[Channel::Socket(9), Channel::Socket(500)]));
        assert!(!Channel::Socket(9).is_loop(&[(Channel::Socket(9), true)], &[]));
        // A parallel test may create a socket at the same time, with the next inode.
        let listener = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut listeners = std::iter::repeat_with(listener).take(100);
        assert!(listeners.any(|listener| look(&[&one, &listener]).has_others));
    }

    #[test]
    fn a_terminal_inside_is_named() {
        let master = nix::pty::posix_openpt(nix::fcntl::OFlag::O_RDWR).unwrap();
        let sources = look(&[&master]);
        assert!(!sources.has_others);
        let name = nix::pty::ptsname_r(&master).unwrap();
        let [index] = sources.inner[..] else {
            panic!("{sources:?}");
        };
        assert_eq!(
            Terminal::numbered(index).path().to_str(),
            Some(name.as_str())
        );
    }

    #[test]
    fn packed_numbers_are_compared() {
        let terminal = |index| Terminal::numbered(index);
        let mut process = process::find(i32::try_from(std::process::id()).unwrap()).unwrap();
        process.terminal = 34818;
        assert!(terminal(2).controls(&process));
        assert!(!terminal(3).controls(&process));
        // Minor 300 = 0x12c: the lower byte, the major, then the rest.
        process.terminal = (1 << 20) | (136 << 8) | 0x2c;
        assert!(terminal(300).controls(&process));
    }
}
