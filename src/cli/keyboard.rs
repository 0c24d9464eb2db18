//! The keyboard while calls run: its keys go to the command that waits for them, and nowhere else.
//!
//! The terminal neither echoes keys nor collects lines meanwhile: the terminal of the command does both, as the command
//! wants it. Keys that no command waits for are dropped, so that the shell that started karyi does not get them either.
//! Ctrl+C stays a signal. Ctrl+Z stops karyi, and its shell has the terminal as it was. A background process touches
//! nothing.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use nix::libc::_POSIX_VDISABLE;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::cli::prompt::tty::{self, has_shell, is_echoing, is_in_front, stop_job};
use crate::cli::terminal_lock::TerminalLock;
use crate::tool::sessions::Sessions;
use karyi_core::limits;

/// Keys that were typed together, and the time.
type Keys = (Zeroizing<Vec<u8>>, Instant);

/// The keyboard of a run. Dropping it gives the terminal back.
pub(super) struct Keyboard {
    control: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Opens the keyboard, if the terminal is that of this process; must be called within a runtime. It is left alone
    /// until a call starts.
    pub(super) fn open(sessions: Arc<Sessions>, terminal_lock: TerminalLock) -> Option<Self> {
        let terminal = tty::open().ok().filter(|terminal| is_in_front(terminal))?;
        let (control, commands) = UnixStream::pair().ok()?;
        let (keys, typed) = mpsc::channel(limits::CHANNEL_DEPTH);
        let reader = KeyReader {
            terminal,
            commands,
            keys,
            prior: None,
            is_closed: false,
        };
        let thread = std::thread::Builder::new().name("keyboard".into());
        let thread = thread.spawn(move || reader.run(&terminal_lock)).ok()?;
        tokio::spawn(pass_on(typed, sessions));
        Some(Self {
            control,
            thread: Some(thread),
        })
    }

    /// Returns the function that takes the keyboard.
    pub(super) fn start(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut control = self.control.try_clone().ok()?;
        Some(Box::new(move || drop(control.write_all(&[1]))))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Types keys into the command that waits for them, until the keyboard is closed.
async fn pass_on(mut typed: mpsc::Receiver<Keys>, sessions: Arc<Sessions>) {
    while let Some((keys, at)) = typed.recv().await {
        for terminal in sessions.all() {
            let until = at + limits::KEYS_GRACE;
            if terminal.session.type_keys(&keys, until).await {
                break;
            }
        }
    }
}

/// The thread that reads keys.
struct KeyReader {
    terminal: File,
    /// Has a byte for each start, and its end when the keyboard is closed.
    commands: UnixStream,
    keys: mpsc::Sender<Keys>,
    /// Modes to restore, while they are changed.
    prior: Option<Termios>,
    is_closed: bool,
}

impl KeyReader {
    fn run(mut self, terminal_lock: &TerminalLock) {
        // A background process must not be stopped for its look at the terminal.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTTOU);
        signals.add(Signal::SIGTTIN);
        let _ = signals.thread_block();
        self.read_command();
        while !self.is_closed {
            if let Some(turn) = terminal_lock.lock_for_keys() {
                while !self.is_closed && turn.goes_on() {
                    self.step();
                }
                self.leave();
            }
        }
    }

    /// Waits for keys for a moment and passes them on.
    fn step(&mut self) {
        let is_in_front = is_in_front(&self.terminal);
        if is_in_front {
            self.enter();
        }
        let mut polled = vec![PollFd::new(self.commands.as_fd(), PollFlags::POLLIN)];
        if is_in_front {
            polled.push(PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN));
        }
        let timeout = PollTimeout::try_from(limits::KEY_WAIT).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut polled, timeout);
        let is_ready = |index: usize| polled.get(index).and_then(PollFd::any) == Some(true);
        let (has_command, has_keys) = (is_ready(0), is_ready(1));
        if has_command {
            self.read_command();
        } else if has_keys {
            self.read_keys();
        }
    }

    fn read_command(&mut self) {
        self.is_closed = !self.commands.read(&mut [0]).is_ok_and(|count| count > 0);
    }

    fn read_keys(&mut self) {
        let mut keys = Zeroizing::new(vec![0; limits::KEYS_BYTES]);
        let Ok(count @ 1..) = self.terminal.read(&mut keys) else {
            // The terminal is gone, or the program has just left the foreground.
            return std::thread::sleep(limits::KEY_WAIT);
        };
        keys.truncate(count);
        let suspend = self.prior.as_ref().map(suspend_key).unwrap_or_default();
        let end = keys.iter().position(|key| *key == suspend && suspend != 0);
        keys.truncate(end.unwrap_or(count));
        // What is more than a command reads is dropped.
        let _ = self.keys.try_send((keys, Instant::now()));
        if end.is_some() && has_shell() {
            self.leave();
            let _ = stop_job(Signal::SIGTSTP);
        }
    }

    /// Turns echo and lines off, unless they are: another program may have set the modes while this one was stopped.
    fn enter(&mut self) {
        let Ok(mut modes) = tcgetattr(&self.terminal) else {
            return;
        };
        if !is_echoing(&modes) {
            return;
        }
        self.prior = Some(modes.clone());
        let shown = LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON;
        modes.local_flags.remove(shown);
        for (place, value) in [
            (SpecialCharacterIndices::VMIN, 1),
            (SpecialCharacterIndices::VTIME, 0),
            (SpecialCharacterIndices::VSUSP, _POSIX_VDISABLE),
        ] {
            modes.control_chars[place as usize] = value;
        }
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &modes);
    }

    /// Drops what was typed and restores the modes, unless another program has the terminal.
    fn leave(&mut self) {
        if let Some(prior) = self.prior.take()
            && is_in_front(&self.terminal)
        {
            let _ = tcflush(&self.terminal, FlushArg::TCIFLUSH);
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &prior);
        }
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.leave();
    }
}

fn suspend_key(modes: &Termios) -> u8 {
    modes.control_chars[SpecialCharacterIndices::VSUSP as usize]
}
