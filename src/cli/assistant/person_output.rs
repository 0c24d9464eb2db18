//! Output of the shell on its way to the terminal of the person who has taken it over: as it is, but masked.
//!
//! The modes that programs turn on are noted, so that the terminal can be given back as it was, and set again for a
//! program that goes on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exec::utf8::Utf8Decoder;
use karyi_pty::Sink;
use karyi_vault::redact::{RedactStream, Redacted, Redactor};

/// Modes that a terminal has on: wrapping, and the cursor.
const USUALLY_ON: [u16; 2] = [7, 25];
/// Longest sequence of modes that is read.
const MOST_SEQUENCE_BYTES: usize = 64;
/// Ends colours, the keypad's own codes, and kitty's encoding of keys.
const RESET: &[u8] = b"\x1b[0m\x1b>\x1b[<u";

/// Output to the person.
#[derive(Clone)]
pub(super) struct PersonOutput(Arc<Mutex<Shown>>);

struct Shown {
    terminal: File,
    redactor: Redactor,
    /// Masks, once a secret is known.
    pass: Option<(Utf8Decoder, RedactStream)>,
    modes: PrivateModes,
    /// True when output arrived since the last look.
    is_new: bool,
    is_line_open: bool,
}

impl PersonOutput {
    /// Creates the output to a terminal on which these modes differ.
    pub(super) fn new(terminal: File, redactor: Redactor, modes: PrivateModes) -> Self {
        Self(Arc::new(Mutex::new(Shown {
            terminal,
            redactor,
            pass: None,
            modes,
            is_new: false,
            is_line_open: false,
        })))
    }

    /// Returns the sink of a call.
    pub(super) fn sink(&self) -> Sink {
        let own = self.clone();
        Box::new(move |bytes| own.lock().push(bytes))
    }

    /// Shows the possible start of a value that is held back, if nothing arrived since the last look: the person may
    /// have to answer it. A value that then goes on is masked from there.
    pub(super) fn show_idle(&self) {
        let mut shown = self.lock();
        if !std::mem::take(&mut shown.is_new) {
            shown.flush();
        }
    }

    /// Sets the modes again that the program had turned on before.
    pub(super) fn restore(&self) {
        let mut shown = self.lock();
        let bytes = shown.modes.bytes(true);
        let _ = shown.terminal.write_all(&bytes);
    }

    /// Gives the terminal back as it was, with the cursor at the start of a line; returns the modes that the program had
    /// turned on.
    pub(super) fn finish(&self) -> PrivateModes {
        let mut shown = self.lock();
        shown.flush();
        let modes = std::mem::take(&mut shown.modes);
        let mut bytes = modes.bytes(false);
        bytes.extend_from_slice(RESET);
        if std::mem::take(&mut shown.is_line_open) {
            bytes.extend_from_slice(b"\r\n");
        }
        // A terminal that is gone is noticed by its keys.
        let _ = shown.terminal.write_all(&bytes);
        modes
    }

    /// A panic while the lock was held left the state consistent.
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn push(&mut self, bytes: &[u8]) {
        self.is_new = true;
        if self.pass.is_none() && !self.redactor.is_idle() {
            self.pass = Some((Utf8Decoder::default(), self.redactor.stream()));
        }
        let Some((decoder, stream)) = &mut self.pass else {
            return self.write(bytes);
        };
        let (mut text, mut masked) = (String::new(), Redacted::default());
        decoder.push(bytes, &mut text);
        stream.push(&text, &mut masked);
        self.write(masked.as_str().as_bytes());
    }

    fn flush(&mut self) {
        let Some((decoder, stream)) = &mut self.pass else {
            return;
        };
        let (mut text, mut masked) = (String::new(), Redacted::default());
        decoder.flush_line_ends(&mut text);
        stream.push(&text, &mut masked);
        stream.flush(&mut masked);
        self.write(masked.as_str().as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_line_open = *last != b'\n';
            self.modes.push(bytes);
            let _ = self.terminal.write_all(bytes);
        }
    }
}

/// Private modes of a terminal that differ from the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PrivateModes {
    changed: BTreeSet<u16>,
    /// Sequence that may set modes, from its escape byte on.
    sequence: Vec<u8>,
}

impl PrivateModes {
    /// Reads output, which may be cut anywhere.
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == 0x1b {
                self.sequence = vec![*byte];
                continue;
            }
            match (self.sequence.as_slice(), byte) {
                ([], _) => {}
                ([0x1b], b'[') | ([0x1b, b'['], b'?') => self.sequence.push(*byte),
                ([_, _, b'?', numbers @ ..], b'0'..=b'9' | b';')
                    if numbers.len() < MOST_SEQUENCE_BYTES =>
                {
                    self.sequence.push(*byte);
                }
                ([_, _, b'?', ..], b'h' | b'l') => self.set(*byte == b'h'),
                _ => self.sequence.clear(),
            }
        }
    }

    /// Takes the sequence as one that sets modes.
    fn set(&mut self, is_on: bool) {
        let sequence = std::mem::take(&mut self.sequence);
        let numbers = sequence
            .get(3..)
            .unwrap_or_default()
            .split(|byte| *byte == b';');
        let numbers = numbers.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        for number in numbers {
            match is_on == USUALLY_ON.contains(&number) {
                true => self.changed.remove(&number),
                false => self.changed.insert(number),
            };
        }
    }

    /// Returns the bytes that change the modes, or change them back.
    fn bytes(&self, is_changed: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in &self.changed {
            let is_on = USUALLY_ON.contains(number) != is_changed;
            let last = if is_on { 'h' } else { 'l' };
            bytes.extend_from_slice(format!("\x1b[?{number}{last}").as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::secret::{SecretName, SecretValue};
    use karyi_vault::session::Secrets;
    use std::io::{Read as _, Seek as _, SeekFrom};

    #[test]
    fn modes_are_noted_however_the_output_is_cut() {
        let output =
            b"a\x1b[?1049h\x1b[?25l\x1b[?1;2004h\x1b[?7lx\x1b[?7h\x1b[31m\x1b[?x\x1b[?2004l";
        for cut in 0..output.len() {
            let mut modes = PrivateModes::default();
            modes.push(&output[..cut]);
            modes.push(&output[cut..]);
            let changed: Vec<u16> = modes.changed.iter().copied().collect();
            assert_eq!(changed, [1, 25, 1049], "{cut}");
            assert_eq!(modes.bytes(false), b"\x1b[?1l\x1b[?25h\x1b[?1049l");
            assert_eq!(modes.bytes(true), b"\x1b[?1h\x1b[?25l\x1b[?1049h");
        }
    }

    #[test]
    fn values_are_masked_and_everything_else_passes_as_it_is() {
        let secrets = Secrets::default();
        let redactor = Redactor::new(&secrets);
        let mut file = tempfile::tempfile().unwrap();
        let output =
            PersonOutput::new(file.try_clone().unwrap(), redactor, PrivateModes::default());
        let mut sink = output.sink();
        sink(b"\xff\x1b[1m\r\n");
        let name = SecretName::parse("TOKEN").unwrap();
        secrets
            .insert(name, SecretValue::new("hunter2-hunter2".into()))
            .unwrap();
        sink(b"a hunter2-");
        sink(b"hunter2 b hun");
        output.show_idle();
        output.show_idle();
        sink(b"\x1b[?1h");
        let modes = output.finish();
        assert_eq!(modes.bytes(true), b"\x1b[?1h");
        let mut shown = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut shown).unwrap();
        let expected =
            b"\xff\x1b[1m\r\na $KARYI{TOKEN} b hun\x1b[?1h\x1b[?1l\x1b[0m\x1b>\x1b[<u\r\n";
        assert_eq!(
            String::from_utf8_lossy(&shown),
            String::from_utf8_lossy(expected)
        );
    }
}
