//! Reads completion marks that bash writes to a side FIFO instead of the PTY.
//!
//! bash prints the mark of most commands to a FIFO that is its standard output between commands. A byte on a terminal
//! passes through a kernel worker, which must be woken first; a byte in a FIFO does not. The mark still comes after
//! all output of its command. So after the mark the terminal is read until the kernel reports that it is empty, for
//! which the kernel waits for that worker. Then the mark is handled as if it had come on the terminal.
//!
//! Other output there, of a `PROMPT_COMMAND` or a trap, is discarded.

use std::os::fd::OwnedFd;

use karyi_core::limits;

use crate::terminal::live_shell::read_some;
use crate::terminal::marks::MarkExtractor;

/// Buffer of the FIFO, and the mark found in it.
#[derive(Debug, Default)]
pub(crate) struct MarkFifo {
    /// Bytes after the last mark.
    buffer: Vec<u8>,
    mark: Option<PendingMark>,
}

/// A mark; output from before it may still be unread.
#[derive(Debug)]
struct PendingMark {
    job: u64,
    bytes: Vec<u8>,
    /// Number of bytes of output that may still come before it.
    left: usize,
}

impl MarkFifo {
    /// Reads the FIFO; returns true if it has the mark the extractor waits for.
    pub(crate) fn poll(
        &mut self,
        from: &OwnedFd,
        mark_extractor: &MarkExtractor,
        job: Option<u64>,
    ) -> bool {
        if self.mark.as_ref().is_some_and(|mark| Some(mark.job) == job) {
            return true;
        }
        let mut buffer = [0; 1024];
        for _ in 0..limits::MAX_MARK_FIFO_READS {
            let count = read_some(from, &mut buffer);
            self.buffer
                .extend_from_slice(buffer.get(..count).unwrap_or_default());
            if count < buffer.len() {
                break;
            }
        }
        if let (Some(job), Some(at)) = (job, mark_extractor.find_mark(&self.buffer)) {
            // The script may have written this one; the genuine mark follows.
            let rest = self.buffer.split_off(at.end);
            let mut bytes = std::mem::replace(&mut self.buffer, rest);
            bytes.drain(..at.start);
            let left = limits::MAX_UNREAD_OUTPUT;
            self.mark = Some(PendingMark { job, bytes, left });
            return true;
        }
        let excess = self.buffer.len().saturating_sub(limits::MAX_MARK_BYTES);
        self.buffer.drain(..excess);
        false
    }

    /// Returns true if a mark waits for the output before it.
    pub(crate) fn is_pending(&self) -> bool {
        self.mark.is_some()
    }

    /// Records that output was read, where 0 means that none is left; returns the mark once it is due. Output may be
    /// endless, so the mark is due after as many bytes as a terminal holds.
    pub(crate) fn take_due(&mut self, count: usize, job: Option<u64>) -> Option<Vec<u8>> {
        self.mark.take_if(|mark| Some(mark.job) != job);
        let mark = self.mark.as_mut()?;
        mark.left = mark.left.saturating_sub(count);
        if count > 0 && mark.left > 0 {
            return None;
        }
        self.mark.take().map(|mark| mark.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const MARK: &str = "\x1b]133;D;n0;7;3;himBH;/a b;n0\x07";

    /// Writes pieces one after another; returns the index of the piece that completed the mark.
    fn write_pieces(pieces: &[&str], fifo: &mut MarkFifo) -> Option<usize> {
        let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_NONBLOCK).unwrap();
        let mut writer = std::fs::File::from(writer);
        let mut mark_extractor = MarkExtractor::new("n0");
        mark_extractor.await_mark(Some(7));
        pieces.iter().position(|piece| {
            writer.write_all(piece.as_bytes()).unwrap();
            fifo.poll(&reader, &mark_extractor, Some(7))
        })
    }

    #[test]
    fn a_mark_is_found_among_anything() {
        let check = |pieces: &[&str], expected: Option<usize>| {
            let mut fifo = MarkFifo::default();
            assert_eq!(write_pieces(pieces, &mut fifo), expected, "{pieces:?}");
            let mark = expected.map(|_| MARK.as_bytes().to_vec());
            assert_eq!(fifo.take_due(0, Some(7)), mark, "{pieces:?}");
        };
        let noise = "PC\n".repeat(9999);
        let old = MARK.replace(";7;", ";6;");
        check(&[MARK], Some(0));
        check(&[&noise, MARK], Some(1));
        check(&[&format!("{noise}{MARK}{noise}")], Some(0));
        check(&[&MARK[..9], &MARK[9..]], Some(1));
        check(&[&format!("{old}{}", &MARK[..20]), &MARK[20..]], Some(1));
        check(&[&format!("\x1b]133;D;n0;7;x;{MARK}")], Some(0));
        check(&[&noise, &old, "x"], None);
    }

    #[test]
    fn consecutive_marks_are_kept() {
        let mut fifo = MarkFifo::default();
        assert_eq!(write_pieces(&[&MARK.repeat(2)], &mut fifo), Some(0));
        assert_eq!(fifo.take_due(0, Some(7)), Some(MARK.as_bytes().to_vec()));
        assert_eq!(write_pieces(&[""], &mut fifo), Some(0));
        assert_eq!(fifo.take_due(0, Some(7)), Some(MARK.as_bytes().to_vec()));
        assert_eq!(write_pieces(&[""], &mut fifo), None);
    }

    #[test]
    fn a_mark_is_due_when_the_terminal_is_read() {
        let mut fifo = MarkFifo::default();
        assert_eq!(fifo.take_due(0, Some(7)), None);
        write_pieces(&[MARK], &mut fifo);
        assert_eq!(fifo.take_due(4096, Some(7)), None);
        assert_eq!(fifo.take_due(0, Some(7)), Some(MARK.as_bytes().to_vec()));
        assert_eq!(fifo.take_due(0, Some(7)), None);
        // Endless output delays the mark by at most the capacity of a terminal.
        write_pieces(&[MARK], &mut fifo);
        assert_eq!(fifo.take_due(limits::MAX_UNREAD_OUTPUT - 1, Some(7)), None);
        assert_eq!(fifo.take_due(1, Some(7)), Some(MARK.as_bytes().to_vec()));
        // A mark of an ended job is dropped.
        write_pieces(&[MARK], &mut fifo);
        assert_eq!(fifo.take_due(0, None), None);
        assert!(!fifo.is_pending());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn earlier_output_can_be_read() {
        use nix::fcntl::{FcntlArg, OFlag, fcntl};
        use nix::unistd::{pipe, read, write};

        let pair = nix::pty::openpty(None, None).unwrap();
        fcntl(&pair.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let ((done_reader, done_writer), (request_reader, request_writer)) =
            (pipe().unwrap(), pipe().unwrap());
        let slave = pair.slave;
        let printer = std::thread::spawn(move || {
            let mut length = [0; 2];
            while read(&request_reader, &mut length).unwrap() == 2 {
                let text = vec![b'x'; u16::from_le_bytes(length).into()];
                assert_eq!(write(&slave, &text), Ok(text.len()));
                write(&done_writer, b"!").unwrap();
            }
        });
        for round in 0..5000_u16 {
            let length = 1 + round % 3000;
            write(&request_writer, &length.to_le_bytes()).unwrap();
            read(&done_reader, &mut [0]).unwrap();
            let mut buffer = [0; 4096];
            let counts = std::iter::from_fn(|| {
                Some(read_some(&pair.master, &mut buffer)).filter(|count| *count > 0)
            });
            assert_eq!(counts.sum::<usize>(), usize::from(length));
        }
        drop(request_writer);
        printer.join().unwrap();
    }
}
