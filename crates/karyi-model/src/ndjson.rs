//! Reads JSON values, one a line, from bytes that may be cut anywhere.

use serde::de::IgnoredAny;

use crate::error::ModelError;
use crate::frame::Frame;
use crate::sse::too_large;
use karyi_core::limits;

/// Reader of JSON lines. Blank lines are left out, and invalid UTF-8 is replaced.
#[derive(Debug, Default)]
pub struct NdjsonReader {
    /// Start of a line whose end has not arrived.
    line: Vec<u8>,
}

impl NdjsonReader {
    /// Reads a piece of the stream, and adds the lines that end in it.
    ///
    /// # Errors
    /// A line is too large.
    pub fn feed(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (start, rest) = bytes.split_at(end);
            self.line.extend_from_slice(start);
            self.end_line(frames);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.line.extend_from_slice(bytes);
        match self.line.len() > limits::MAX_MODEL_EVENT_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }

    /// Ends the stream, and adds a last line without its end when its JSON is whole.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        if serde_json::from_slice::<IgnoredAny>(&self.line).is_ok() {
            self.end_line(frames);
        }
        self.line.clear();
    }

    fn end_line(&mut self, frames: &mut Vec<Frame>) {
        let line = self
            .line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&self.line);
        let line = line.trim_ascii();
        if !line.is_empty() {
            let data = String::from_utf8_lossy(line).into_owned();
            let name = String::new();
            frames.push(Frame { name, data });
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[&str]) {
        for cut in 0..=text.len() {
            let (start, end) = text.split_at(cut);
            let (mut reader, mut frames) = (NdjsonReader::default(), Vec::new());
            reader.feed(start, &mut frames).unwrap();
            reader.feed(end, &mut frames).unwrap();
            reader.finish(&mut frames);
            let found: Vec<&str> = frames.iter().map(|frame| &*frame.data).collect();
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn values_stand_on_lines() {
        check(b"{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
        check(b"\xef\xbb\xbf{}\r\n\r\n[]", &["{}", "[]"]);
        check("\"\u{20ac}\\u20ac\"\n".as_bytes(), &["\"\u{20ac}\\u20ac\""]);
        check(b"{}\n{\"half\":", &["{}"]);
        check(b"\"\xff\"\n", &["\"\u{fffd}\""]);
    }

    #[test]
    fn a_line_has_a_largest_size() {
        let (mut reader, mut frames) = (NdjsonReader::default(), Vec::new());
        let piece = vec![b'x'; 1 << 20];
        let fed = (0..64).try_for_each(|_| reader.feed(&piece, &mut frames));
        assert_eq!(fed.unwrap_err().code(), "model_protocol");
    }
}
