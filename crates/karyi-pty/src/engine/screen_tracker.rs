//! Tracks the terminal of the job in the foreground: full-screen programs and terminal queries.
//!
//! A program that queries the cursor position waits for the reply, so it is typed, but only while the terminal neither
//! echoes input nor collects it into lines: there the reply would look like the user's input, or become part of a
//! password.

use std::os::fd::OwnedFd;

use nix::sys::termios::{LocalFlags, OutputFlags, tcgetattr};

use crate::text::TerminalText;

/// Terminal state of one job.
pub(crate) struct ScreenTracker {
    job: Option<u64>,
    terminal: TerminalText,
    /// Replies waiting to be typed.
    replies: String,
    has_replied: bool,
    /// Buffer for text that is discarded.
    unread: String,
}

impl ScreenTracker {
    pub(crate) fn new() -> Self {
        Self {
            job: None,
            terminal: TerminalText::for_replies(),
            replies: String::new(),
            has_replied: false,
            unread: String::new(),
        }
    }

    /// Sets the job whose output comes next; another job starts on an empty terminal.
    pub(crate) fn follow(&mut self, job: Option<u64>) {
        if self.job != job {
            *self = Self { job, ..Self::new() };
        }
    }

    /// Returns true if the job shows the alternate screen.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.terminal.is_alternate()
    }

    /// Returns true if a reply was typed.
    pub(crate) fn has_replied(&self) -> bool {
        self.has_replied
    }

    /// Tracks output on its way to `sink`.
    pub(crate) fn send_output(
        &mut self,
        output: &[u8],
        master: &OwnedFd,
        sink: &mut dyn FnMut(&[u8]),
    ) {
        if self.job.is_none() {
            return sink(output);
        }
        let was_full_screen = self.is_full_screen();
        if !was_full_screen {
            self.watch(output);
        }
        if !self.is_full_screen() && !was_full_screen {
            return sink(output);
        }
        // Otherwise a line feed is always a new line. A full-screen program also uses it to move down; it does so when
        // it has turned the translation to CR LF off.
        let output = match means_new_line(master) {
            true => with_returns(output),
            false => output.to_vec(),
        };
        if was_full_screen {
            self.watch(&output);
        }
        sink(&output);
    }

    fn watch(&mut self, output: &[u8]) {
        self.terminal.push(output, &mut self.unread);
        self.unread.clear();
    }

    /// Returns true if replies wait to be typed.
    pub(crate) fn has_replies(&mut self) -> bool {
        if self.replies.is_empty() {
            self.replies = self.terminal.take_replies();
        }
        !self.replies.is_empty()
    }

    /// Types the replies, unless the terminal would echo them or collect them into lines.
    pub(crate) fn send_replies(&mut self, master: &OwnedFd) {
        let replies = std::mem::take(&mut self.replies);
        let is_raw = tcgetattr(master).is_ok_and(|modes| {
            let cooked = LocalFlags::ECHO | LocalFlags::ICANON;
            !modes.local_flags.intersects(cooked)
        });
        if is_raw && nix::unistd::write(master, replies.as_bytes()).is_ok() {
            self.has_replied = true;
        }
    }
}

/// Returns true if a line feed would become CR LF if the terminal processed output, which it never does in a session.
fn means_new_line(master: &OwnedFd) -> bool {
    tcgetattr(master).is_ok_and(|modes| {
        modes.output_flags.contains(OutputFlags::ONLCR)
            && !modes.output_flags.contains(OutputFlags::OPOST)
    })
}

fn with_returns(output: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(output.len() + output.len() / 16);
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(content) => {
                bytes.extend_from_slice(content);
                bytes.extend_from_slice(b"\r\n");
            }
            None => bytes.extend_from_slice(line),
        }
    }
    bytes
}
