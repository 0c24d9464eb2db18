//! Tracks the terminal of the job in the foreground: full-screen programs and terminal queries.
//!
//! Shells name the file of a script in their messages. That path is private, so output shows only its last part.
//!
//! A program that queries the cursor position waits for the reply, so it is typed, but only while the terminal neither
//! echoes input nor collects it into lines: there the reply would look like the user's input, or become part of a
//! password.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use memchr::memmem::Finder;
use nix::sys::termios::{LocalFlags, OutputFlags, tcgetattr};

use karyi_core::limits;

use crate::engine::notices::NoticeFilter;
use crate::text::TerminalText;

/// Terminal state of one job.
pub(crate) struct ScreenTracker {
    job: Option<u64>,
    terminal: TerminalText,
    /// Replies waiting to be typed.
    replies: String,
    has_replied: bool,
    /// True while a person has the terminal: theirs answers the queries, and gets the output as it is.
    is_persons: bool,
    /// Buffer for text that is discarded.
    unread: String,
    /// Private directory of the session's files, with a slash at its end.
    private: Finder<'static>,
    /// End of the last output.
    tail: Vec<u8>,
    notices: NoticeFilter,
}

impl ScreenTracker {
    /// Creates a tracker that hides a directory.
    pub(crate) fn new(private: &Path) -> Self {
        let directory = [private.as_os_str().as_bytes(), b"/"].concat();
        Self::hiding(Finder::new(&directory).into_owned())
    }

    fn hiding(private: Finder<'static>) -> Self {
        Self {
            private,
            tail: Vec::new(),
            notices: NoticeFilter::new(true),
            job: None,
            terminal: TerminalText::for_replies(),
            replies: String::new(),
            has_replied: false,
            is_persons: false,
            unread: String::new(),
        }
    }

    /// Sets the job whose output comes next; another job starts on an empty terminal. `may_notify` says that the shell
    /// may tell meanwhile that a background job has ended.
    pub(crate) fn follow(&mut self, job: Option<u64>, may_notify: bool) {
        if self.job != job {
            let fresh = Self::hiding(self.private.clone());
            *self = Self {
                job,
                notices: NoticeFilter::new(may_notify),
                ..fresh
            };
        }
    }

    /// Returns true if the job shows the alternate screen.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.terminal.is_alternate()
    }

    /// Sets whether a person has the terminal.
    pub(crate) fn show_to_person(&mut self, is_persons: bool) {
        self.is_persons = is_persons;
    }

    /// Returns true if something was typed that the job may not have read: a reply, or keys of a person.
    pub(crate) fn may_leave_input(&self) -> bool {
        self.has_replied || self.is_persons
    }

    /// Tracks output on its way to `sink`.
    pub(crate) fn send_output(
        &mut self,
        output: &[u8],
        master: &OwnedFd,
        sink: &mut dyn FnMut(&[u8]),
    ) {
        let output = self.without_private(output);
        let output = self.notices.filter(output, self.is_full_screen());
        self.pass_on(&output, master, sink);
    }

    /// Sends what may have been the start of a notice: nothing follows it.
    pub(crate) fn send_held(&mut self, master: &OwnedFd, sink: &mut dyn FnMut(&[u8])) {
        let held = self.notices.take_held();
        if !held.is_empty() {
            self.pass_on(&held, master, sink);
        }
    }

    fn pass_on(&mut self, output: &[u8], master: &OwnedFd, sink: &mut dyn FnMut(&[u8])) {
        if !output.is_empty() {
            let end = output.len().saturating_sub(limits::OPEN_LINE_BYTES);
            self.tail.extend(output.iter().skip(end));
            let excess = self.tail.len().saturating_sub(limits::OPEN_LINE_BYTES);
            self.tail.drain(..excess);
        }
        if self.job.is_none() {
            return sink(output);
        }
        let was_full_screen = self.is_full_screen();
        if !was_full_screen {
            self.watch(output);
        }
        if !self.is_full_screen() && !was_full_screen && !self.is_persons {
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

    /// Returns the end of the last output, in lower case.
    pub(crate) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).to_lowercase()
    }

    /// Removes the private directory from output.
    fn without_private<'a>(&self, output: &'a [u8]) -> Cow<'a, [u8]> {
        if self.private.find(output).is_none() {
            return Cow::Borrowed(output);
        }
        let (mut rest, mut shown) = (output, Vec::with_capacity(output.len()));
        while let Some((before, after)) = self.private.find(rest).and_then(|at| {
            let after = rest.get(at + self.private.needle().len()..)?;
            Some((rest.get(..at)?, after))
        }) {
            shown.extend_from_slice(before);
            rest = after;
        }
        shown.extend_from_slice(rest);
        Cow::Owned(shown)
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
        if self.is_persons {
            self.replies.clear();
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
