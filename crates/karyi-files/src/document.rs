//! Text of a file while it is edited.
//!
//! Line endings are kept apart from the text, so that a text with LF matches a file with CRLF, and a
//! replacement takes the line endings around it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

/// Text with LF line breaks that remembers which of them are CRLF in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document<'a> {
    text: Cow<'a, str>,
    /// One entry per line break, `true` for CRLF; empty when all are LF.
    endings: Vec<bool>,
}

impl<'a> Document<'a> {
    /// Separates the text of a file from its line endings.
    pub(super) fn new(text: &'a str) -> Self {
        let with_lf = with_lf(text);
        if let Cow::Borrowed(_) = with_lf {
            return Self {
                text: with_lf,
                endings: Vec::new(),
            };
        }
        let bytes = text.as_bytes();
        let breaks = memchr::memchr_iter(b'\n', bytes);
        let is_crlf = |at: usize| at > 0 && bytes.get(at - 1) == Some(&b'\r');
        Self {
            endings: breaks.map(is_crlf).collect(),
            text: with_lf,
        }
    }

    /// Returns the text with LF line breaks.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text with its original line endings.
    pub(super) fn into_file_text(self) -> String {
        if self.endings.is_empty() {
            return self.text.into_owned();
        }
        let mut text = String::with_capacity(self.text.len() + self.endings.len());
        let mut endings = self.endings.iter();
        for line in self.text.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(body) if endings.next() == Some(&true) => {
                    text.push_str(body);
                    text.push_str("\r\n");
                }
                _ => text.push_str(line),
            }
        }
        text
    }

    /// Replaces ranges, which are sorted and do not overlap, by `replacement`, which has LF line breaks.
    pub(super) fn replace(&mut self, found: &[Range<usize>], replacement: &str) {
        if !self.endings.is_empty() {
            self.replace_endings(found, count_breaks(replacement));
        }
        let growth = replacement.len().saturating_mul(found.len());
        let mut text = String::with_capacity(self.text.len().saturating_add(growth));
        let mut at = 0;
        for range in found {
            text.push_str(self.slice(at..range.start));
            text.push_str(replacement);
            at = range.end;
        }
        text.push_str(self.slice(at..self.text.len()));
        self.text = Cow::Owned(text);
    }

    /// Gives each replacement the line ending of the first line it replaces.
    fn replace_endings(&mut self, found: &[Range<usize>], new_breaks: usize) {
        let mut endings = Vec::with_capacity(self.endings.len());
        let majority = self.is_mostly_crlf();
        let (mut at, mut breaks) = (0, 0);
        for range in found {
            let first = breaks + count_breaks(self.slice(at..range.start));
            let ending = self.endings.get(first).copied().unwrap_or(majority);
            endings.extend_from_slice(self.endings.get(breaks..first).unwrap_or_default());
            endings.extend(std::iter::repeat_n(ending, new_breaks));
            breaks = first + count_breaks(self.slice(range.clone()));
            at = range.end;
        }
        endings.extend_from_slice(self.endings.get(breaks..).unwrap_or_default());
        self.endings = endings;
    }

    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    fn is_mostly_crlf(&self) -> bool {
        let crlf = self.endings.iter().filter(|is_crlf| **is_crlf).count();
        crlf * 2 > self.endings.len()
    }
}

/// Returns the text with CRLF converted to LF.
pub(super) fn with_lf(text: &str) -> Cow<'_, str> {
    match memmem::find(text.as_bytes(), b"\r\n") {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace("\r\n", "\n")),
    }
}

/// Returns the number of line breaks.
pub(super) fn count_breaks(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, find: &str, replacement: &str, expected: &str) {
        let mut document = Document::new(file);
        let found: Vec<_> = document
            .text()
            .match_indices(find)
            .map(|(at, m)| at..at + m.len())
            .collect();
        document.replace(&found, replacement);
        assert_eq!(document.into_file_text(), expected, "{file:?}");
    }

    #[test]
    fn line_endings_survive() {
        for file in [
            "",
            "a",
            "a\n",
            "a\r\n",
            "a\r\nb\nc\r\n\r\n",
            "a\rb\r\r\n",
            "\r\n",
            "\n\r",
        ] {
            check(file, "zzz", "", file);
        }
    }

    #[test]
    fn replacements_take_the_ending_of_the_first_matched_line() {
        check("a\r\nb\r\nc\r\n", "b\n", "x\ny\n", "a\r\nx\r\ny\r\nc\r\n");
        check("a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n");
        check("a\r\nb\nc\n", "b\nc", "b\nx\nc", "a\r\nb\nx\nc\n");
        check("a\r\nb\r\nc", "c", "c\nd", "a\r\nb\r\nc\r\nd");
        check("a\nb\nc\r\nd", "d", "d\ne", "a\nb\nc\r\nd\ne");
        check("a\nx\r\na\r\n", "a", "1\n2", "1\n2\nx\r\n1\r\n2\r\n");
        check("a\r\nb\r\n", "a\nb", "ab", "ab\r\n");
        check("a\nb\n", "a\n", "a\nb\n", "a\nb\nb\n");
    }
}
