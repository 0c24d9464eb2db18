//! How commands of a shell become cheap.
//!
//! bash keeps a descriptor of the terminal for itself, and a mark printed there costs no opening of
//! the terminal. A command can close it, or make the terminal one that the next script could not be
//! run on; then marks go to the terminal by its name again, which fails where a script would fail,
//! too.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat};

use super::kept::identity;
use super::live::Live;
use super::marks::Mark;
use super::shell::{KEPT_TERMINAL, Kind};

impl Live {
    /// Finds out whether the shell keeps a descriptor of the terminal that marks can be printed to.
    pub(super) fn find_kept_terminal(&self, kind: Kind) {
        let entry = format!("/proc/{}/fd/{KEPT_TERMINAL}", self.pid);
        let is_ours = fs::read_link(entry).is_ok_and(|path| path == self.places.terminal);
        let keeps = kind == Kind::Bash && is_ours && self.is_blocking(KEPT_TERMINAL);
        self.kept.has_terminal.store(keeps, Ordering::Relaxed);
    }

    /// Has marks go to the terminal by its name: the shell's own descriptor is not to be relied on.
    pub(super) fn distrust_kept_terminal(&self) {
        self.kept.has_terminal.store(false, Ordering::Relaxed);
    }

    /// Returns the lines that run the script file and print the command's mark there, if marks go
    /// there.
    pub(super) fn lines_with_kept_terminal(&self, kind: Kind, number: u64) -> Option<String> {
        if !self.keeps_terminal() {
            return None;
        }
        let parts = self.kept.lines.get_or_init(|| {
            // No path has this character.
            let lines = kind.lines_with_kept_terminal(&self.places, "\0");
            lines.split('\0').map(str::to_owned).collect()
        });
        Some(parts.join(&number.to_string()))
    }

    /// Whether marks go to the descriptor the shell keeps.
    fn keeps_terminal(&self) -> bool {
        self.kept.has_terminal.load(Ordering::Relaxed)
    }

    /// Whether a mark came to the descriptor the shell keeps although the shell cannot open the
    /// terminal any more, as it must for the next script.
    pub(super) fn is_misled_by(&self, mark: &Mark) -> bool {
        let owner = Mode::S_IRUSR | Mode::S_IWUSR;
        let opens = || {
            let found = fstat(&self.slave);
            found.is_ok_and(|file| Mode::from_bits_truncate(file.st_mode).contains(owner))
        };
        self.keeps_terminal() && (mark.is_restricted || !opens())
    }

    /// Whether the shell has its FIFO as its input, so far as that can be seen at a glance.
    pub(super) fn has_its_input(&self) -> bool {
        // To take a copy of the descriptor is half the work of following its name.
        let input = self.copy_input().and_then(|copy| fstat(copy).ok());
        let input = input.or_else(|| self.kept.files.input());
        input.is_some_and(|input| identity(&input) == self.kept.fifo)
    }

    #[cfg(target_os = "linux")]
    fn copy_input(&self) -> Option<OwnedFd> {
        if self.kept.refuses_copies.load(Ordering::Relaxed) {
            return None;
        }
        let copy = super::sys::descriptor_of(self.process.as_ref()?, 0);
        // Asked again for every command, some kernels would put that into their log.
        let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        if copy.as_ref().is_err_and(is_refused) {
            self.kept.refuses_copies.store(true, Ordering::Relaxed);
        }
        copy.ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn copy_input(&self) -> Option<OwnedFd> {
        None
    }

    /// Whether the shell waits when a descriptor of it takes no more: else half a mark may come.
    fn is_blocking(&self, descriptor: i32) -> bool {
        let path = format!("/proc/{}/fdinfo/{descriptor}", self.pid);
        let text = fs::read_to_string(path).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| !OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK))
    }
}
