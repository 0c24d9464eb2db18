//! Lines of standard input, one at a time: between two of them the terminal belongs to questions for values.

use std::io;

use nix::sys::termios::{FlushArg, tcflush};

use tokio::sync::mpsc;

use crate::cli::prompt::tty::is_in_front;

/// Lines of standard input.
pub(super) struct InputLines {
    wanted: mpsc::Sender<()>,
    lines: mpsc::Receiver<String>,
    is_reading: bool,
}

impl InputLines {
    /// Starts the thread that reads. It is left alone at the end.
    pub(super) fn start() -> Self {
        let (wanted, mut requests) = mpsc::channel(1);
        let (sender, lines) = mpsc::channel(1);
        // Without a thread the input ends at once.
        let _ = std::thread::Builder::new()
            .name("lines".into())
            .spawn(move || {
                while requests.blocking_recv().is_some() {
                    let mut line = String::new();
                    match io::stdin().read_line(&mut line) {
                        Ok(1..) if sender.blocking_send(line).is_ok() => {}
                        _ => return,
                    }
                }
            });
        Self {
            wanted,
            lines,
            is_reading: false,
        }
    }

    /// Drops the lines that were typed on a terminal and not read yet.
    pub(super) fn forget_typed(&mut self) {
        if !is_in_front(io::stdin()) {
            return;
        }
        // A terminal that is gone is noticed by the next read.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        if self.lines.try_recv().is_ok() {
            self.is_reading = false;
        }
    }

    /// Returns the next line; nothing at the end. Cancel-safe: a read that has begun goes on.
    pub(super) async fn next(&mut self) -> Option<String> {
        if !self.is_reading {
            self.wanted.send(()).await.ok()?;
            self.is_reading = true;
        }
        let line = self.lines.recv().await;
        self.is_reading = false;
        line
    }
}
