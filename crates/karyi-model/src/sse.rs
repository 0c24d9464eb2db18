//! Reads server-sent events from bytes that may be cut anywhere.
//!
//! Lines end with `\n`, `\r\n` or `\r`. Several `data:` lines of an event are joined with `\n`. Comments and unknown
//! fields are left out. Invalid UTF-8 is replaced.

use memchr::memchr2;
use serde::de::IgnoredAny;

use crate::error::{ModelError, ModelErrorKind};
use crate::frame::Frame;
use karyi_core::limits;

/// Reader of server-sent events.
#[derive(Debug, Default)]
pub struct SseReader {
    /// Start of a line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: Option<Vec<u8>>,
    has_lines: bool,
    /// The last line ended with `\r`, so a `\n` that follows belongs to it.
    after_return: bool,
}

impl SseReader {
    /// Reads a piece of the stream, and adds the events that end in it.
    ///
    /// # Errors
    /// An event is too large.
    pub fn feed(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return)
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                bytes = rest;
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', bytes) else {
                self.line.extend_from_slice(bytes);
                return self.check_size();
            };
            let (start, rest) = bytes.split_at(end);
            self.after_return = rest.starts_with(b"\r");
            bytes = rest.get(1..).unwrap_or_default();
            self.line.extend_from_slice(start);
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, frames);
            // The buffer is kept for the next line.
            self.line = line;
            self.line.clear();
            self.check_size()?;
        }
        Ok(())
    }

    /// Ends the stream, and adds a last event without its blank line when its JSON is whole.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line, frames);
        }
        let data = self.data.as_deref().unwrap_or_default();
        if data == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok() {
            self.end_event(frames);
        }
    }

    fn end_line(&mut self, line: &[u8], frames: &mut Vec<Frame>) {
        let line = match std::mem::replace(&mut self.has_lines, true) {
            true => line,
            false => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
        };
        if line.is_empty() {
            return self.end_event(frames);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }

    fn end_event(&mut self, frames: &mut Vec<Frame>) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            let data = String::from_utf8_lossy(&data).into_owned();
            frames.push(Frame { name, data });
        }
    }

    fn check_size(&self) -> Result<(), ModelError> {
        let data = self.data.as_ref().map_or(0, Vec::len);
        match self.line.len() + data > limits::MAX_MODEL_EVENT_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

/// UTF-8 of U+FEFF, which some servers begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes the error of an event that is too large.
pub(crate) fn too_large() -> ModelError {
    let most = limits::MAX_MODEL_EVENT_BYTES >> 20;
    let message = format!("the server sent one event of more than {most} MiB");
    let mut error = ModelError::new(ModelErrorKind::Protocol, message);
    error.is_final = true;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let (mut reader, mut frames) = (SseReader::default(), Vec::new());
        for piece in pieces {
            reader.feed(piece, &mut frames).unwrap();
        }
        reader.finish(&mut frames);
        let pair = |frame: Frame| (frame.name, frame.data);
        frames.into_iter().map(pair).collect()
    }

    /// Checks a text whole, at every cut, and byte by byte.
    #[track_caller]
    fn check(text: &[u8], expected: &[(&str, &str)]) {
        let owned = |(name, data): &(&str, &str)| ((*name).to_owned(), (*data).to_owned());
        let expected: Vec<_> = expected.iter().map(owned).collect();
        for cut in 0..=text.len() {
            let (start, end) = text.split_at(cut);
            assert_eq!(read(&[start, end]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&single), expected);
    }

    #[test]
    fn lines_end_in_three_ways() {
        check(b"data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check(
            b"data: a\r\n\ndata: b\n\rdata: c\r\r\n",
            &[("", "a"), ("", "b"), ("", "c")],
        );
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        check(b"\xef\xbb\xbfdata: a\n\n", &[("", "a")]);
        check(b": ping\n\ndata: a\n: ping\ndata:b\n\n", &[("", "a\nb")]);
        check(
            b"event: stop\nid: 7\nretry: 9\ndata:  a\n\n",
            &[("stop", " a")],
        );
        check(b"event: lost\n\ndata\n\n", &[("", "")]);
        check(b"data: x: y\ndatax: z\n\n", &[("", "x: y")]);
        check(
            "data: \u{20ac}\u{1f600}\n\n".as_bytes(),
            &[("", "\u{20ac}\u{1f600}")],
        );
        check(b"data: a\xffb\n\n", &[("", "a\u{fffd}b")]);
    }

    #[test]
    fn a_last_event_counts_when_its_json_is_whole() {
        check(b"data: {\"a\":1}", &[("", "{\"a\":1}")]);
        check(b"data: {\"a\":1}\r", &[("", "{\"a\":1}")]);
        check(b"data: {\"a\":", &[]);
        check(b"data: [DONE]", &[("", "[DONE]")]);
        check(b"data: {\"a\":\ndata: 1}\n", &[("", "{\"a\":\n1}")]);
        check(b"event: x\n: ping", &[]);
    }

    #[test]
    fn an_event_has_a_largest_size() {
        let piece = vec![b'x'; 1 << 20];
        for line in [&b""[..], b"\ndata: "] {
            let (mut reader, mut frames) = (SseReader::default(), Vec::new());
            reader.feed(b"data: ", &mut frames).unwrap();
            let fed = (0..64).try_for_each(|_| {
                reader.feed(&piece, &mut frames)?;
                reader.feed(line, &mut frames)
            });
            assert_eq!(fed.unwrap_err().code(), "model_protocol");
            assert!(reader.line.capacity() < 64 << 20);
        }
    }
}
