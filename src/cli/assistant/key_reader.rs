//! The thread that reads the keys of the screen. It lets go of the terminal while another program has it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc::UnboundedSender;

use karyi_core::limits;
use karyi_screen::keys::{KeyDecoder, TerminalInput};

/// Orders to the thread.
const PAUSE: u8 = 1;
const RESUME: u8 = 2;

/// Input of the screen.
#[derive(Debug)]
pub(super) enum Typed {
    /// Keys, pastes and changes of focus.
    Input(TerminalInput),
    /// The terminal is gone.
    HungUp,
}

/// The thread that reads keys. Dropping it ends the thread.
pub(super) struct KeyReader {
    orders: UnixStream,
    paused: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    /// Starts to read.
    pub(super) fn start(terminal: File, typed: UnboundedSender<Typed>) -> io::Result<Self> {
        let (orders, received) = UnixStream::pair()?;
        let (told, paused) = mpsc::channel();
        let mut thread = ReaderThread {
            terminal,
            orders: received,
            told,
            typed,
            decoder: KeyDecoder::default(),
        };
        let builder = std::thread::Builder::new().name("keys".into());
        let thread = builder.spawn(move || while thread.step() {})?;
        Ok(Self {
            orders,
            paused,
            thread: Some(thread),
        })
    }

    /// Leaves the keys to another program. Returns once no read is under way.
    pub(super) fn pause(&mut self) {
        let _ = self.orders.write_all(&[PAUSE]);
        // A thread that has ended reads nothing.
        let _ = self.paused.recv();
    }

    /// Reads keys again.
    pub(super) fn resume(&mut self) {
        let _ = self.orders.write_all(&[RESUME]);
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        let _ = self.orders.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct ReaderThread {
    terminal: File,
    orders: UnixStream,
    told: mpsc::Sender<()>,
    /// Takes everything: the thread must not wait for the loop, which waits for it.
    typed: UnboundedSender<Typed>,
    decoder: KeyDecoder,
}

impl ReaderThread {
    /// Waits for keys or an order. Returns false at the end.
    fn step(&mut self) -> bool {
        let timeout = match self.decoder.is_waiting() {
            true => PollTimeout::try_from(limits::ESCAPE_WAIT).unwrap_or(PollTimeout::MAX),
            false => PollTimeout::NONE,
        };
        let mut polled = [
            PollFd::new(self.orders.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN),
        ];
        let count = poll(&mut polled, timeout);
        let [order, keys] = polled.map(|fd| fd.any() == Some(true));
        match count {
            Ok(0) => {
                let found = self.decoder.pause();
                self.pass_on(found)
            }
            Ok(_) if order => self.order(),
            Ok(_) if keys => self.read(),
            _ => true,
        }
    }

    fn order(&mut self) -> bool {
        let mut order = [0];
        let mut next = || self.orders.read(&mut order).is_ok_and(|count| count > 0);
        if !next() {
            return false;
        }
        if order != [PAUSE] {
            return true;
        }
        let _ = self.told.send(());
        // The next order resumes, or is the end.
        let mut order = [0];
        self.orders.read(&mut order).is_ok_and(|count| count > 0)
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.terminal.read(&mut bytes) {
            Ok(count @ 1..) => {
                let found = self.decoder.push(bytes.get(..count).unwrap_or_default());
                self.pass_on(found)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(_) | Err(_) => {
                let _ = self.typed.send(Typed::HungUp);
                false
            }
        }
    }

    fn pass_on(&self, found: Vec<TerminalInput>) -> bool {
        let mut found = found.into_iter();
        found.all(|input| self.typed.send(Typed::Input(input)).is_ok())
    }
}
