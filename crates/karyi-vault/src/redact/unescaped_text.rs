//! Decodes the escapes of a text, so that a value is found whichever of its characters are escaped.
//!
//! Encoders differ in what they escape. So the escapes are decoded: backslashes of shells and languages, `%NN`, and
//! XML references, each kind separately, because a text in one notation may contain the signs of the others. Only text
//! near an escape is decoded; the rest is searched as it is.

use super::escapes::{ParsedEscape, parse_escape};
use super::form::Form;
use super::search_tables::SearchTables;
use super::visible_text::{AROUND, SecretSpan, SourceRange, VisibleText};
use crate::visible::{self, Sink, is_visible};
use karyi_core::limits;

/// Retained text that the source ranges refer to.
pub(super) struct HeldText<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset of its first byte.
    pub(super) base: u64,
}

/// White space between the bytes of an escape.
#[derive(PartialEq, Eq)]
enum Gap {
    /// None.
    None,
    /// A space: it is no escape.
    Blank,
    /// A line end, as where a program wraps lines; it may be no escape.
    Line,
}

impl HeldText<'_> {
    /// Returns the white space between two consecutive visible bytes.
    fn gap(&self, first: SourceRange, last: SourceRange) -> Gap {
        let index =
            |place: SourceRange| usize::try_from(place.start().saturating_sub(self.base)).ok();
        let range = index(first).zip(index(last));
        let between = range.and_then(|(start, end)| self.bytes.get(start..end));
        let between = between.unwrap_or_default();
        let shown = visible::visible_mask(between);
        let shown = between
            .iter()
            .zip(0..)
            .filter(|(_, at)| shown.get(*at) != Some(&false));
        let mut spaces = shown
            .map(|(byte, _)| *byte)
            .filter(|byte| b" \t\r\n".contains(byte));
        match spaces.next() {
            None => Gap::None,
            Some(b'\r' | b'\n') => Gap::Line,
            // A line editor writes a space and goes back.
            Some(_) => match spaces.find(|byte| b"\r\n".contains(byte)) {
                Some(b'\r') if !spaces.any(|byte| byte == b'\n') => Gap::Line,
                _ => Gap::Blank,
            },
        }
    }
}

/// Decoded text around the escapes of one kind.
#[derive(Clone)]
pub(super) struct UnescapedText {
    /// First byte of the escapes.
    sign: u8,
    form: Form,
    text: VisibleText,
    /// Alternative text in which an escape that spans lines is taken literally: a value may begin after its sign.
    alternative: VisibleText,
    has_alternative: bool,
    /// Number of visible bytes where the alternative begins.
    alternative_start: u64,
    /// Number of visible bytes read; later ones may become an escape.
    next: u64,
    /// Number of bytes that are still copied.
    left: usize,
}

impl UnescapedText {
    /// Makes a decoder for each kind of escape.
    pub(super) fn all() -> [Self; 3] {
        let kinds = [
            (b'\\', Form::Escaped),
            (b'%', Form::Percent),
            (b'&', Form::Xml),
        ];
        kinds.map(|(sign, form)| Self {
            sign,
            form,
            text: VisibleText::default(),
            alternative: VisibleText::default(),
            has_alternative: false,
            alternative_start: 0,
            next: 0,
            left: 0,
        })
    }

    /// Decodes the new bytes of `main`; at the end nothing follows.
    pub(super) fn read(&mut self, main: &VisibleText, known: &HeldText<'_>, is_end: bool) {
        let mut at = main.index(self.next);
        loop {
            let rest = main.bytes().get(at..).unwrap_or_default();
            let plain = visible::find(self.sign, rest).unwrap_or(rest.len());
            self.plain(main, at, plain);
            at += plain;
            if plain == rest.len() {
                break;
            }
            let (read, gap) = self.read_escape(main, at, known, is_end);
            let mut character = [0; 4];
            let (bytes, length) = match read {
                ParsedEscape::Open => {
                    // The bytes before an open escape may belong to a match with it.
                    self.begin(main, at);
                    break;
                }
                ParsedEscape::Plain => {
                    // Consecutive signs keep the copied text in one piece.
                    self.left = if self.left > 0 { AROUND + 1 } else { 0 };
                    self.plain(main, at, 1);
                    at += 1;
                    continue;
                }
                ParsedEscape::Quoted => (&[][..], 1),
                ParsedEscape::Byte(byte, length) => (&[byte][..], length),
                ParsedEscape::Char(own, length) => {
                    (own.encode_utf8(&mut character).as_bytes(), length)
                }
            };
            self.begin(main, at);
            let place = SourceRange::over(main.place(at), main.place(at + length - 1));
            let is_new_alternative = gap == Gap::Line && self.start_alternative(main, at, length);
            for byte in bytes.iter().filter(|byte| is_visible(**byte)) {
                self.text.push(*byte, place);
                if self.has_alternative && !is_new_alternative {
                    self.alternative.push(*byte, place);
                }
            }
            at += length;
        }
        self.next = main.count_of(at);
    }

    /// Parses an escape. One with a space in it is none, except a backslash that quotes a space.
    #[inline]
    fn read_escape(
        &self,
        main: &VisibleText,
        at: usize,
        known: &HeldText<'_>,
        is_end: bool,
    ) -> (ParsedEscape, Gap) {
        let read = parse_escape(main.bytes().get(at..).unwrap_or_default(), is_end);
        let length = match read {
            ParsedEscape::Byte(_, length) | ParsedEscape::Char(_, length) => length,
            _ => return (read, Gap::None),
        };
        let (first, last) = (main.place(at), main.place(at + length - 1));
        if last.start() == first.start() + length as u64 - 1 {
            return (read, Gap::None);
        }
        match known.gap(first, last) {
            Gap::Blank if self.sign == b'\\' => (ParsedEscape::Quoted, Gap::None),
            Gap::Blank => (ParsedEscape::Plain, Gap::None),
            gap => (read, gap),
        }
    }

    /// Copies unescaped bytes.
    fn plain(&mut self, main: &VisibleText, at: usize, count: usize) {
        let count = count.min(self.left);
        if count == 0 {
            return;
        }
        self.text.copy(main, at..at + count);
        if self.has_alternative {
            self.alternative.copy(main, at..at + count);
        }
        self.left -= count;
        if self.left == 0 {
            let place = main.place(at + count - 1).start();
            self.text.separate(place);
            self.alternative.separate(place);
            self.has_alternative = false;
        }
    }

    /// Starts to copy the text around an escape.
    fn begin(&mut self, main: &VisibleText, at: usize) {
        if self.left == 0 {
            let from = at.saturating_sub(AROUND);
            self.text.separate(main.place(from).start());
            self.text.copy(main, from..at);
        }
        self.left = AROUND;
    }

    /// Starts the alternative text with an escape taken literally; a backslash quotes then. Returns false when one was
    /// started shortly before.
    fn start_alternative(&mut self, main: &VisibleText, at: usize, length: usize) -> bool {
        let since = self.alternative.count() - self.alternative_start;
        if self.has_alternative && since < limits::REDACTED_RUN_BYTES as u64 {
            return false;
        }
        let own = main.bytes().get(at..at + length).unwrap_or_default();
        let signs = match (self.sign, own) {
            (b'\\', [_, b'\\', ..]) => 2,
            (b'\\', _) => 1,
            _ => 0,
        };
        let known = self.text.bytes().len();
        self.has_alternative = true;
        self.alternative.separate(main.place(at).start());
        self.alternative
            .copy(&self.text, known.saturating_sub(AROUND)..known);
        self.alternative_start = self.alternative.count();
        self.alternative.copy(main, at + signs..at + length);
        true
    }

    /// Finds matches in new bytes.
    pub(super) fn scan(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        let from = found.len();
        for text in [&mut self.text, &mut self.alternative] {
            text.scan(tables, found);
            text.forget();
        }
        self.name(found, from);
    }

    /// Looks up the n-grams at the end that the samples left open.
    pub(super) fn scan_end(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        let from = found.len();
        self.text.scan_end(tables, found);
        self.alternative.scan_end(tables, found);
        self.name(found, from);
    }

    /// Reports the current runs that are matches at the end of the text.
    pub(super) fn flush(&self, found: &mut Vec<SecretSpan>) {
        let from = found.len();
        self.text.flush(found);
        self.alternative.flush(found);
        self.name(found, from);
    }

    /// Returns a possible start of a match at the end, after `flush`.
    pub(super) fn cut(&self, tables: &SearchTables) -> Option<SecretSpan> {
        let found = self
            .text
            .cut(tables)
            .or_else(|| self.alternative.cut(tables));
        found.map(|found| self.named(found))
    }

    /// Returns the offset from which the text may still become a match.
    pub(super) fn open_from(&self, main: &VisibleText, tables: &SearchTables) -> Option<u64> {
        let texts = [
            self.text.open_from(tables),
            self.alternative.open_from(tables),
        ];
        texts
            .into_iter()
            .flatten()
            .chain(self.half_escape(main))
            .min()
    }

    /// Returns the offset of an incomplete escape at the end of the text.
    pub(super) fn half_escape(&self, main: &VisibleText) -> Option<u64> {
        let is_open = self.next < main.count();
        is_open.then(|| main.place(main.index(self.next)).start())
    }

    fn name(&self, found: &mut [SecretSpan], from: usize) {
        let new = found.iter_mut().skip(from);
        new.for_each(|found| *found = self.named(*found));
    }

    fn named(&self, found: SecretSpan) -> SecretSpan {
        let form = found.form.max(self.form);
        SecretSpan { form, ..found }
    }
}
