//! What a shell last said about itself, kept in memory for the shell that comes after it.
//!
//! A snapshot may hold whatever the user exported, secrets too, so it travels through FIFOs and
//! never touches a disk.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::limits;

use super::live::{make_fifo, read_some};
use super::sys;

/// A whole snapshot.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// The shell's directory at that time.
    pub(super) cwd: PathBuf,
    /// Commands that bring the rest back.
    pub(super) commands: Arc<Vec<u8>>,
    pub(super) taken: Instant,
}

/// Collects snapshots as they come in.
#[derive(Debug)]
pub(super) struct Collector {
    begin: Vec<u8>,
    state: Vec<u8>,
    end: Vec<u8>,
    buffer: Vec<u8>,
    /// The last whole one.
    pub(super) last: Option<Snapshot>,
}

impl Collector {
    /// Makes a collector of the snapshots of one session.
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            begin: format!("#begin {nonce}\n").into_bytes(),
            state: format!("\n#state {nonce}\n").into_bytes(),
            end: format!("#end {nonce}\n").into_bytes(),
            buffer: Vec::new(),
            last: None,
        }
    }

    /// Returns when the last whole snapshot came.
    pub(super) fn saved_at(&self) -> Option<Instant> {
        self.last.as_ref().map(|snapshot| snapshot.taken)
    }

    /// Reads everything that has come in.
    pub(super) fn read(&mut self, state: &OwnedFd) {
        let mut chunk = [0; 16 << 10];
        loop {
            let count = read_some(state, &mut chunk);
            let bytes = chunk.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                return;
            }
            self.push(bytes);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.ends_with(&self.end) {
            self.last = self.parse().or(self.last.take());
            self.buffer.clear();
        } else if self.buffer.len() > limits::MAX_SNAPSHOT_BYTES {
            self.buffer.clear();
        }
    }

    fn parse(&self) -> Option<Snapshot> {
        use std::os::unix::ffi::OsStrExt;
        let start = memchr::memmem::rfind(&self.buffer, &self.begin)?;
        let body = self.buffer.get(start + self.begin.len()..)?;
        let middle = memchr::memmem::find(body, &self.state)?;
        let (cwd, rest) = body.split_at(middle);
        let commands = rest
            .strip_prefix(self.state.as_slice())?
            .strip_suffix(self.end.as_slice())?;
        Some(Snapshot {
            cwd: Path::new(std::ffi::OsStr::from_bytes(cwd)).to_owned(),
            commands: Arc::new(commands.to_vec()),
            taken: Instant::now(),
        })
    }

    /// Drops the beginning of a snapshot whose shell is gone.
    pub(super) fn forget_partial(&mut self) {
        self.buffer.clear();
    }
}

/// Gives a snapshot to a shell through a FIFO and ends it there.
#[derive(Debug)]
pub(super) struct Feeder {
    fifo: Option<OwnedFd>,
    commands: Arc<Vec<u8>>,
    written: usize,
}

impl Feeder {
    /// Makes the FIFO.
    pub(super) fn new(path: &Path, commands: Arc<Vec<u8>>) -> std::io::Result<Self> {
        Ok(Self {
            fifo: Some(make_fifo(path)?),
            commands,
            written: 0,
        })
    }

    /// Writes what fits; closes the FIFO once the shell has begun to read the last of it.
    pub(super) fn step(&mut self) {
        let Some(fifo) = &self.fifo else {
            return;
        };
        let rest = self.commands.get(self.written..).unwrap_or_default();
        if !rest.is_empty() {
            self.written += nix::unistd::write(fifo, rest).unwrap_or(0);
        }
        let waiting = sys::bytes_waiting(fifo).unwrap_or(0);
        if self.written == self.commands.len() && waiting < self.written {
            self.fifo = None;
        }
    }

    /// Whether the shell has not got everything yet.
    pub(super) fn is_open(&self) -> bool {
        self.fifo.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: Option<(&str, &str)>) {
        let mut collector = Collector::new("n");
        for piece in pieces {
            collector.push(piece.as_bytes());
        }
        let found = collector.last.map(|snapshot| {
            let commands = String::from_utf8(snapshot.commands.to_vec()).unwrap();
            (snapshot.cwd.to_str().unwrap().to_owned(), commands)
        });
        assert_eq!(
            found,
            expected.map(|(cwd, text)| (cwd.to_owned(), text.to_owned()))
        );
    }

    #[test]
    fn only_whole_snapshots_count() {
        let whole = "#begin n\n/a\n#state n\nexport A=1\n#end n\n";
        check(&[whole], Some(("/a", "export A=1\n")));
        let (first, second) = whole.split_at(20);
        check(&[first, second], Some(("/a", "export A=1\n")));
        check(&["#begin n\n/b\n#st", whole], Some(("/a", "export A=1\n")));
        check(&[whole, "#begin n\n/b"], Some(("/a", "export A=1\n")));
        check(&["#begin x\n/b\n#state x\n#end x\n"], None);
        check(&["/b\n#state n\n#end n\n"], None);
    }
}
