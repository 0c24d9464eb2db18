//! The terminal of the user as a program has it that a person types into: no key means anything to karyi but one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::net::unix::pipe::Receiver;
use zeroize::Zeroizing;

use karyi_core::limits;

/// Ctrl+] as terminals send it: as a byte, and in the encodings that programs may turn on.
const LEAVE: [&[u8]; 3] = [b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"];

/// Keys that were typed together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Their bytes, up to Ctrl+].
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// True when Ctrl+] was among them.
    pub(super) is_leaving: bool,
}

impl Keys {
    fn of(mut bytes: Zeroizing<Vec<u8>>) -> Self {
        let place = |key: &&[u8]| bytes.windows(key.len()).position(|window| window == *key);
        let end = LEAVE.iter().filter_map(place).min();
        if let Some(end) = end {
            bytes.truncate(end);
        }
        Self {
            bytes,
            is_leaving: end.is_some(),
        }
    }
}

/// The terminal in raw mode. Dropping it restores the modes.
pub(super) struct RawTerminal {
    terminal: File,
    /// The same, as a source of bytes: nothing of it is particular to pipes.
    keys: Receiver,
    prior: Termios,
}

impl RawTerminal {
    /// Takes the terminal; must be called within a runtime.
    pub(super) fn take() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // A description of its own: only its reads must not block.
        options.custom_flags(O_NOCTTY | O_NONBLOCK);
        let terminal = options.open("/dev/tty")?;
        let prior = tcgetattr(&terminal)?;
        let keys = Receiver::from_file_unchecked(terminal.try_clone()?)?;
        let mut modes = prior.clone();
        cfmakeraw(&mut modes);
        tcsetattr(&terminal, SetArg::TCSANOW, &modes)?;
        Ok(Self {
            terminal,
            keys,
            prior,
        })
    }

    /// Waits for keys. Cancel-safe.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) async fn keys(&self) -> io::Result<Keys> {
        let mut bytes = Zeroizing::new(vec![0; limits::KEYS_BYTES]);
        loop {
            self.keys.readable().await?;
            match self.keys.try_read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    bytes.truncate(count);
                    return Ok(Keys::of(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.prior);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_leaves_in_every_encoding() {
        let check = |typed: &[u8], bytes: &[u8], is_leaving: bool| {
            let keys = Keys::of(Zeroizing::new(typed.to_vec()));
            assert_eq!(
                (keys.bytes.as_slice(), keys.is_leaving),
                (bytes, is_leaving)
            );
        };
        check(b"abc\x03\x1b[A", b"abc\x03\x1b[A", false);
        check(b"ab\x1dcd", b"ab", true);
        check(b"\x1b[93;5u", b"", true);
        check(b"x\x1b[27;5;93~\x1d", b"x", true);
    }
}
