//! Opening tags: finds the end of one in a stream and reads its attributes.
//!
//! The scanner accepts everything that repair mode may repair (rule R7) and records whether a repair was needed, which
//! strict mode refuses.

use memchr::{memchr, memchr_iter};

use super::attribute::{ParsedAttribute, read};
use super::chars::is_space;
use super::event::Mode;
use super::fault::{Fault, Outcome};
use karyi_core::error::Code;
use karyi_core::limits::{MAX_ATTRIBUTES, MAX_TAG_BYTES};

/// Finds the end of a tag; keeps its state between chunks.
#[derive(Debug, Clone)]
pub(super) struct TagScan {
    state: State,
    at: usize,
    name_end: usize,
    pieces: Vec<AttributeSpan>,
    current: AttributeSpan,
    /// True when white space precedes the next attribute.
    is_spaced: bool,
    /// True when no repair is needed.
    is_plain: bool,
    /// Error that cannot be repaired.
    broken: Option<Code>,
    has_equals: bool,
}

/// Offsets of the name and value of an attribute in the tag.
#[derive(Debug, Clone, Copy, Default)]
struct AttributeSpan {
    name: (usize, usize),
    value: (usize, usize),
}

#[derive(Debug, Clone, Copy)]
enum State {
    Name,
    Gap,
    AttributeName,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Smart(Quote),
    Bare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Single,
    Double,
}

/// Result of one scan step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagStop {
    /// More bytes are needed.
    More,
    /// The tag is complete.
    End {
        /// Its bytes, `<` and `>` too.
        length: usize,
        /// True when it ends with `/>`.
        is_empty: bool,
    },
    /// A `<` where the tag should have ended.
    Cut,
    /// The tag is longer than allowed.
    TooLong,
    /// The tag has more attributes than allowed.
    TooMany,
}

impl Default for TagScan {
    fn default() -> Self {
        Self {
            state: State::Name,
            at: 1,
            name_end: 1,
            pieces: Vec::new(),
            current: AttributeSpan::default(),
            is_spaced: false,
            is_plain: true,
            broken: None,
            has_equals: false,
        }
    }
}

impl TagScan {
    /// Looks for the tag's end in `rest`, which starts with its `<` and grows from call to call.
    pub(super) fn step(&mut self, rest: &[u8]) -> TagStop {
        let window = rest.get(..MAX_TAG_BYTES).unwrap_or(rest);
        while let Some(byte) = window.get(self.at) {
            let done = match self.state {
                State::Name => self.in_name(*byte, window),
                State::Gap => self.in_gap(*byte, window),
                State::AttributeName => self.in_attribute_name(*byte, window),
                State::AfterName => self.after_name(*byte),
                State::BeforeValue => self.before_value(*byte, window),
                State::Quoted(quote) => self.in_quotes(quote, window),
                State::Smart(quote) => self.in_smart_quotes(quote, window),
                State::Bare => self.in_bare_value(*byte, window),
            };
            match done {
                None => {}
                Some(TagStop::More) => break,
                Some(done) => return done,
            }
            if self.pieces.len() > MAX_ATTRIBUTES {
                return TagStop::TooMany;
            }
        }
        match window.len() == MAX_TAG_BYTES {
            true => TagStop::TooLong,
            false => TagStop::More,
        }
    }

    /// Tells whether an attribute with a value was seen before anything that is none.
    pub(super) fn is_committed(&self) -> bool {
        self.has_equals
    }

    /// Tells whether something that is no attribute was seen first.
    pub(super) fn is_prose(&self) -> bool {
        self.broken.is_some() && !self.has_equals
    }

    /// Returns how many bytes are known to belong to the tag.
    pub(super) fn length(&self) -> usize {
        self.at
    }

    /// Returns where the element's name ends.
    pub(super) fn name_end(&self) -> usize {
        self.name_end
    }

    fn in_name(&mut self, byte: u8, window: &[u8]) -> Option<TagStop> {
        if byte == b'<' {
            return Some(TagStop::Cut);
        }
        if is_space(byte) || matches!(byte, b'>' | b'/') {
            self.name_end = self.at;
            self.state = State::Gap;
        } else {
            self.skip_name(window);
        }
        None
    }

    /// Moves on by one byte, and by the bytes of a usual name that follow it.
    fn skip_name(&mut self, window: &[u8]) {
        let rest = window.get(self.at + 1..).unwrap_or_default();
        let is_usual = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        self.at += 1 + rest.iter().take_while(is_usual).count();
    }

    fn in_gap(&mut self, byte: u8, window: &[u8]) -> Option<TagStop> {
        match byte {
            b'>' => return Some(self.end(1)),
            b'<' => return Some(TagStop::Cut),
            b'/' => match window.get(self.at + 1) {
                None => return Some(TagStop::More),
                Some(b'>') => return Some(self.end(2)),
                Some(_) => self.skip_broken(Code::BadTag),
            },
            b'=' | b'"' | b'\'' => self.skip_broken(Code::BadAttribute),
            byte if is_space(byte) => {
                self.is_spaced = true;
                self.at += 1;
            }
            _ => {
                self.is_plain &= self.is_spaced;
                self.current = AttributeSpan::default();
                self.current.name.0 = self.at;
                self.state = State::AttributeName;
            }
        }
        None
    }

    fn in_attribute_name(&mut self, byte: u8, window: &[u8]) -> Option<TagStop> {
        let is_end = match byte {
            b'<' => return Some(TagStop::Cut),
            b'/' => match window.get(self.at + 1) {
                None => return Some(TagStop::More),
                Some(next) => *next == b'>',
            },
            b'=' | b'>' | b'"' | b'\'' => true,
            byte => is_space(byte),
        };
        if is_end {
            self.current.name.1 = self.at;
            self.state = State::AfterName;
        } else {
            self.skip_name(window);
        }
        None
    }

    fn after_name(&mut self, byte: u8) -> Option<TagStop> {
        if byte == b'=' {
            // An error before the first `=` means that the tag is never committed.
            self.has_equals |= self.broken.is_none();
            self.state = State::BeforeValue;
            self.at += 1;
        } else if is_space(byte) {
            self.at += 1;
        } else {
            self.broken.get_or_insert(Code::BadAttribute);
            self.is_spaced = true;
            self.state = State::Gap;
        }
        None
    }

    fn before_value(&mut self, byte: u8, window: &[u8]) -> Option<TagStop> {
        match byte {
            byte if is_space(byte) => self.at += 1,
            b'"' | b'\'' => {
                self.at += 1;
                self.current.value.0 = self.at;
                self.state = State::Quoted(byte);
            }
            b'<' => return Some(TagStop::Cut),
            b'>' => {
                self.broken.get_or_insert(Code::BadAttribute);
                self.state = State::Gap;
            }
            0xE2 => match smart_quote(window, self.at) {
                None => return Some(TagStop::More),
                Some(None) => self.start_bare(),
                Some(Some(quote)) => {
                    self.is_plain = false;
                    self.at += 3;
                    self.current.value.0 = self.at;
                    self.state = State::Smart(quote);
                }
            },
            _ => self.start_bare(),
        }
        None
    }

    fn in_quotes(&mut self, quote: u8, window: &[u8]) -> Option<TagStop> {
        match memchr(quote, window.get(self.at..).unwrap_or_default()) {
            None => {
                self.at = window.len();
                Some(TagStop::More)
            }
            Some(length) => {
                self.at += length;
                self.push_value(1);
                None
            }
        }
    }

    fn in_smart_quotes(&mut self, quote: Quote, window: &[u8]) -> Option<TagStop> {
        for found in memchr_iter(0xE2, window.get(self.at..).unwrap_or_default()) {
            let at = self.at + found;
            match smart_quote(window, at) {
                None => {
                    self.at = at;
                    return Some(TagStop::More);
                }
                Some(close) if close == Some(quote) => {
                    self.at = at;
                    self.push_value(3);
                    return None;
                }
                Some(_) => {}
            }
        }
        self.at = window.len();
        Some(TagStop::More)
    }

    fn in_bare_value(&mut self, byte: u8, window: &[u8]) -> Option<TagStop> {
        let is_end = match byte {
            b'/' => match window.get(self.at + 1) {
                None => return Some(TagStop::More),
                Some(next) => *next == b'>',
            },
            b'>' => true,
            byte => is_space(byte),
        };
        if is_end {
            self.push_value(0);
        } else {
            self.at += 1;
        }
        None
    }

    fn start_bare(&mut self) {
        self.is_plain = false;
        self.current.value.0 = self.at;
        self.state = State::Bare;
    }

    /// Ends a value here, before a closing quote of `quote_length` bytes.
    fn push_value(&mut self, quote_length: usize) {
        self.current.value.1 = self.at;
        self.pieces.push(self.current);
        self.at += quote_length;
        self.is_spaced = false;
        self.state = State::Gap;
    }

    fn skip_broken(&mut self, code: Code) {
        self.broken.get_or_insert(code);
        self.at += 1;
    }

    fn end(&mut self, length: usize) -> TagStop {
        TagStop::End {
            length: self.at + length,
            is_empty: length == 2,
        }
    }

    /// Gets ready for another tag.
    pub(super) fn restart(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        *self = Self {
            pieces,
            ..Self::default()
        };
    }

    /// Reads the attributes of the complete tag, one after the other.
    pub(super) fn attributes<'t>(
        &self,
        tag: &'t str,
        mode: Mode,
        take: &mut dyn FnMut(ParsedAttribute<'t>) -> Outcome<()>,
    ) -> Outcome<()> {
        if let Some(code) = self.broken {
            return Err(Fault::ahead(code, 0, tag.len(), broken_message(code)));
        }
        if mode == Mode::Strict && !self.is_plain {
            let message = "expected white space and name=\"value\" in the tag";
            return Err(Fault::ahead(Code::BadAttribute, 0, tag.len(), message));
        }
        let text = |(start, end): (usize, usize)| tag.get(start..end).unwrap_or_default();
        for piece in &self.pieces {
            let mut written = read(text(piece.name), text(piece.value), tag, mode)?;
            written.is_repaired |= !self.is_plain;
            take(written)?;
        }
        Ok(())
    }
}

/// Tells which smart quote stands at `at`; `None` when more bytes are needed.
fn smart_quote(bytes: &[u8], at: usize) -> Option<Option<Quote>> {
    let quote = bytes.get(at..at + 3)?;
    Some(match quote {
        [0xE2, 0x80, 0x98..=0x9B] => Some(Quote::Single),
        [0xE2, 0x80, 0x9C..=0x9F] => Some(Quote::Double),
        _ => None,
    })
}

fn broken_message(code: Code) -> &'static str {
    match code {
        Code::BadTag => "expected `>` after `/` in the tag",
        _ => "expected attributes as name=\"value\" in the tag",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = Vec<(String, String)>;
    type Expected<'e> = Result<(&'e [(&'e str, &'e str)], bool, usize), &'e str>;

    fn scan(text: &str, chunk: usize) -> (TagStop, TagScan) {
        let mut scan = TagScan::default();
        let mut length = 0;
        loop {
            length = (length + chunk).min(text.len());
            let done = scan.step(&text.as_bytes()[..length]);
            if done != TagStop::More || length == text.len() {
                return (done, scan);
            }
        }
    }

    fn read_tag(text: &str, chunk: usize, mode: Mode) -> Result<(Row, bool, usize), String> {
        let (done, scan) = scan(text, chunk);
        let TagStop::End { length, is_empty } = done else {
            return Err(format!("{done:?}"));
        };
        let mut row = Row::new();
        let read = scan.attributes(&text[..length], mode, &mut |written| {
            row.push((written.name.to_owned(), written.value));
            Ok(())
        });
        read.map_err(|fault| fault.code.as_str().to_owned())?;
        Ok((row, is_empty, length))
    }

    fn check(mode: Mode, text: &str, expected: Expected<'_>) {
        let expected = expected
            .map(|(row, is_empty, length)| {
                let row: Row = row
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                    .collect();
                (row, is_empty, length)
            })
            .map_err(str::to_owned);
        for chunk in [1, 2, 3, 1000] {
            assert_eq!(
                read_tag(text, chunk, mode),
                expected,
                "{text} in chunks of {chunk}"
            );
        }
    }

    #[test]
    fn well_formed_tags_are_read_in_both_modes() {
        for mode in [Mode::Strict, Mode::Repair] {
            check(mode, "<a>", Ok((&[], false, 3)));
            check(mode, "<a/>x", Ok((&[], true, 4)));
            check(
                mode,
                "<a b='1' c = \"2\" />",
                Ok((&[("b", "1"), ("c", "2")], true, 19)),
            );
            check(mode, "<a b=\">'/>\">", Ok((&[("b", ">'/>")], false, 12)));
            check(
                mode,
                "<a b='&lt;&#65;&amp;lt;'>",
                Ok((&[("b", "<A&lt;")], false, 25)),
            );
            check(
                mode,
                "<a b='1\t2\n3\r\n4\r5&#10;6'>",
                Ok((&[("b", "1 2 3 4 5\n6")], false, 24)),
            );
            check(mode, "<a b='“é”]]>'>", Ok((&[("b", "“é”]]>")], false, 19)));
            check(mode, "<a b='&#0;'>", Err("illegal-char"));
        }
    }

    #[test]
    fn repair_mode_mends() {
        let check =
            |text, row, is_empty| check(Mode::Repair, text, Ok((row, is_empty, text.len())));
        check("<a b=1 c=x/y/>", &[("b", "1"), ("c", "x/y")], true);
        check("<a b=\"1\"c='2'>", &[("b", "1"), ("c", "2")], false);
        check("<a b=“x > y” c=‘z’/>", &[("b", "x > y"), ("c", "z")], true);
        check("<a b=“it’s”>", &[("b", "it’s")], false);
        check("<a b='1 < 2 && 3'>", &[("b", "1 < 2 && 3")], false);
        check("<a b='&amp; < &#0;'>", &[("b", "&amp; < &#0;")], false);
        check("<a b='$KARYI<X>&amp;'>", &[("b", "$KARYI<X>&")], false);
    }

    #[test]
    fn strict_mode_refuses_repairs() {
        for text in ["<a b=1>", "<a b=\"1\"c='2'>", "<a b=“x”>", "<a b='<'>"] {
            check(Mode::Strict, text, Err("bad-attribute"));
        }
        check(Mode::Strict, "<a b='&'>", Err("bad-reference"));
    }

    #[test]
    fn broken_tags_are_refused_in_both_modes() {
        for mode in [Mode::Strict, Mode::Repair] {
            check(mode, "<a b>", Err("bad-attribute"));
            check(mode, "<a b c='1'>", Err("bad-attribute"));
            check(mode, "<a b=>", Err("bad-attribute"));
            check(mode, "<a ='1'>", Err("bad-attribute"));
            check(mode, "<a 'x'>", Err("bad-attribute"));
            check(mode, "<a/b>", Err("bad-tag"));
            check(mode, "<a b='1", Err("More"));
            check(mode, "<a <b>", Err("Cut"));
            check(mode, "<a", Err("More"));
        }
    }

    #[test]
    fn tags_have_limits() {
        let attributes = |count: usize| (0..count).map(|i| format!(" a{i}=''")).collect::<String>();
        let done = |text: &str| scan(text, 1000).0;
        assert_eq!(
            done(&format!("<a{}>", attributes(MAX_ATTRIBUTES + 1))),
            TagStop::TooMany
        );
        assert!(matches!(
            done(&format!("<a{}>", attributes(MAX_ATTRIBUTES))),
            TagStop::End { .. }
        ));
        let long = format!("<a b='{}'>", "x".repeat(MAX_TAG_BYTES - 8));
        assert_eq!(
            done(&long),
            TagStop::End {
                length: MAX_TAG_BYTES,
                is_empty: false
            }
        );
        let longer = format!("<a b='{}'>", "x".repeat(MAX_TAG_BYTES - 7));
        assert_eq!(done(&longer), TagStop::TooLong);
        assert_eq!(done(&"<".repeat(2)), TagStop::Cut);
    }
}
