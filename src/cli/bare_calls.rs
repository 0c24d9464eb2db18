//! Finds calls outside any block: a message with such calls runs nothing and is no error, although its author
//! expects otherwise.
//!
//! Only starts of lines outside code fences count, so that prose about tools is not mistaken for calls.

/// Bytes of a line that are examined: more than any indentation and name take.
const MOST_BYTES: usize = 128;

/// Scanner for calls outside blocks.
pub(super) struct BareCalls {
    names: Vec<&'static str>,
    /// Start of the current line.
    line: Vec<u8>,
    /// Marks that opened the current code fence.
    fence: Option<Vec<u8>>,
    found: Option<&'static str>,
}

impl BareCalls {
    /// Starts a message; `names` are the names of all tools.
    pub(super) fn new(names: Vec<&'static str>) -> Self {
        Self {
            names,
            line: Vec::new(),
            fence: None,
            found: None,
        }
    }

    /// Scans the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while self.found.is_none() {
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let room = MOST_BYTES.saturating_sub(self.line.len());
            let near = line.get(..room).unwrap_or(line);
            self.line.extend_from_slice(near);
            let Some(end) = end else { return };
            self.end_line();
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }

    /// Ends the message; returns the first tool at the start of a line outside any block.
    pub(super) fn finish(mut self) -> Option<&'static str> {
        self.end_line();
        self.found
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        let run = match text.first() {
            Some(mark @ (b'`' | b'~')) => text.iter().take_while(|b| *b == mark).count(),
            _ => 0,
        };
        let marks = text.get(..run).unwrap_or_default();
        match &self.fence {
            Some(open) if run == text.len() && marks.starts_with(open) => self.fence = None,
            None if run >= 3 => self.fence = Some(marks.to_vec()),
            None => self.found = self.found.or_else(|| self.name_in(text)),
            Some(_) => {}
        }
    }

    fn name_in(&self, text: &[u8]) -> Option<&'static str> {
        let tag = text.strip_prefix(b"<")?;
        let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'>' | b'/');
        let name = tag.get(..tag.iter().position(is_end)?)?;
        let is_named = |known: &&&str| known.as_bytes().eq_ignore_ascii_case(name);
        self.names.iter().find(is_named).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: Option<&str>) {
        for size in [1, 3, 1000] {
            let mut calls = BareCalls::new(vec!["command", "ctrl"]);
            message
                .as_bytes()
                .chunks(size)
                .for_each(|chunk| calls.feed(chunk));
            assert_eq!(calls.finish(), expected, "{message:?} in chunks of {size}");
        }
    }

    #[test]
    fn lines_that_start_with_a_call_are_noticed() {
        check("Let me see:\n\n<command>ls</command>\n", Some("command"));
        check("  <Ctrl >c</ctrl>", Some("ctrl"));
        check("a\r<command/>", Some("command"));
        check("words <command>ls</command>", None);
        check("<commands>x", None);
        check("<command", None);
        check("```xml\n<command>ls</command>\n```\nwords", None);
        check("~~~~\n~~~\n<command>\n~~~~\n<ctrl>c", Some("ctrl"));
        check("", None);
    }
}
