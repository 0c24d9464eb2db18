//! Notices calls that stand outside of any block: a message full of them runs nothing and is no
//! error, but whoever wrote it believes otherwise.
//!
//! Only the starts of lines outside code fences count, so prose about tools stays prose.

/// Bytes of a line that are looked at: more than any indentation and name take.
const MOST_BYTES: usize = 128;

/// Looks at a message as it goes by.
pub(super) struct BareCalls {
    names: Vec<&'static str>,
    /// The start of the current line.
    line: Vec<u8>,
    /// The run of marks that opened a code fence.
    fence: Option<Vec<u8>>,
    found: Option<&'static str>,
}

impl BareCalls {
    /// Starts a message; `names` are those of all tools.
    pub(super) fn new(names: Vec<&'static str>) -> Self {
        Self {
            names,
            line: Vec::new(),
            fence: None,
            found: None,
        }
    }

    /// Takes the next bytes.
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

    /// Ends the message; returns the first tool that a line outside of any block starts with.
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
