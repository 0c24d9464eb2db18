//! Finds the end of a raw leaf (rules R1 to R3).
//!
//! The scan never goes back and keeps its state between chunks. It stops at every end tag with the leaf's name; the
//! caller checks what follows and either closes the leaf or continues the scan.

use memchr::{memchr, memchr2, memmem};

use super::chars::{self, BadByte, is_same_name, is_space, leading_space};
use super::leaf_decoder::{CDATA_END, CDATA_START};
use super::references::{Placeholder, placeholder};
use super::source::Ending;
use super::stop_bytes::StopBytes;
use karyi_core::limits::{MAX_LEAF_BYTES, MAX_UNCHECKED_BYTES};

/// The scan of one raw leaf.
#[derive(Debug, Default)]
pub(super) struct RawScan {
    state: State,
    at: usize,
    /// Openers of the leaf's name that are not closed yet.
    depth: usize,
    /// Offset up to which the bytes are known to be legal.
    checked: usize,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    /// In a CDATA section that starts here.
    Cdata(usize),
    /// In an opener of the leaf's name.
    Opener,
    /// In an end tag of the leaf's name that starts here.
    EndTag(usize),
    /// After such an end tag, which ends at `end`.
    After { tag: usize, end: usize },
}

/// An end tag of the leaf's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndTag {
    /// Offset of its `<`.
    pub(super) start: usize,
    /// Offset after its `>`.
    pub(super) end: usize,
    /// Offset of the next token, or the end of the available bytes.
    pub(super) next: usize,
    /// True when openers in the text are still without an end tag.
    pub(super) is_nested: bool,
}

/// Result of one scan step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RawStop {
    /// More bytes are needed.
    More,
    /// An end tag; what follows decides about it.
    EndTag(EndTag),
    /// A byte that is illegal in a block.
    Bad(BadByte),
    /// The text is longer than allowed.
    TooLong,
}

impl RawScan {
    /// Looks for the next end tag of `name` in `rest`, which starts with the leaf's text and grows
    /// from call to call.
    pub(super) fn step(&mut self, rest: &[u8], name: &str, ending: Ending) -> RawStop {
        loop {
            let found = match self.state {
                State::Text => self.in_text(rest, name),
                State::Cdata(start) => self.in_cdata(rest, start),
                State::Opener => self.in_opener(rest),
                State::EndTag(tag) => self.in_end_tag(rest, tag),
                State::After { tag, end } => Some(self.after_end_tag(rest, tag, end)),
            };
            if self.at > MAX_LEAF_BYTES {
                self.at = MAX_LEAF_BYTES;
                return match self.check_cut(rest.get(..self.at).unwrap_or_default()) {
                    RawStop::More => RawStop::TooLong,
                    bad => bad,
                };
            }
            match found {
                None => {}
                Some(RawStop::More)
                    if ending == Ending::Open
                        && rest.len() - self.checked < MAX_UNCHECKED_BYTES =>
                {
                    return RawStop::More;
                }
                Some(RawStop::More) => {
                    return self.check_cut(rest.get(..MAX_LEAF_BYTES).unwrap_or(rest));
                }
                Some(found) => return found,
            }
        }
    }

    /// Goes on after an end tag that is part of the text.
    pub(super) fn pass(&mut self) {
        if let State::After { end, .. } = self.state {
            self.at = end;
            self.depth = self.depth.saturating_sub(1);
            self.state = State::Text;
        }
    }

    /// Returns where the CDATA section starts that the scan is in.
    pub(super) fn open_cdata(&self) -> Option<usize> {
        match self.state {
            State::Cdata(start) => Some(start),
            State::Text | State::Opener | State::EndTag(_) | State::After { .. } => None,
        }
    }

    fn in_text(&mut self, rest: &[u8], name: &str) -> Option<RawStop> {
        let Some(found) = memchr(b'<', rest.get(self.at..).unwrap_or_default()) else {
            self.at = rest.len();
            return Some(RawStop::More);
        };
        self.at += found;
        let here = rest.get(self.at..).unwrap_or_default();
        match here.get(1) {
            None => return Some(RawStop::More),
            Some(b'!') => return self.at_bang(here),
            Some(b'/') => match prefix(here.get(2..).unwrap_or_default(), name) {
                Prefix::Cut => return Some(RawStop::More),
                Prefix::Is => {
                    self.state = State::EndTag(self.at);
                    self.at += 2 + name.len();
                }
                Prefix::No => self.at += 2,
            },
            Some(_) => return self.at_less(rest, here, name),
        }
        None
    }

    /// Looks at a `<!`.
    fn at_bang(&mut self, here: &[u8]) -> Option<RawStop> {
        if here.starts_with(CDATA_START) {
            self.state = State::Cdata(self.at);
            self.at += CDATA_START.len();
        } else if CDATA_START.starts_with(here) {
            return Some(RawStop::More);
        } else {
            self.at += 2;
        }
        None
    }

    /// Looks at a `<` that may be a placeholder's or an opener's.
    fn at_less(&mut self, rest: &[u8], here: &[u8], name: &str) -> Option<RawStop> {
        match placeholder(rest, self.at) {
            Placeholder::Cut => return Some(RawStop::More),
            Placeholder::Ends(end) => {
                self.at = end;
                return None;
            }
            Placeholder::No => {}
        }
        let after = here.get(1..).unwrap_or_default();
        match (prefix(after, name), after.get(name.len())) {
            (Prefix::No, _) => self.at += 1,
            (Prefix::Cut, _) | (Prefix::Is, None) => return Some(RawStop::More),
            (Prefix::Is, Some(byte)) => {
                self.at += 1;
                if is_space(*byte) || matches!(byte, b'>' | b'/') {
                    self.at += name.len();
                    self.depth += 1;
                    self.state = State::Opener;
                }
            }
        }
        None
    }

    fn in_cdata(&mut self, rest: &[u8], start: usize) -> Option<RawStop> {
        let body = rest.get(self.at..).unwrap_or_default();
        match memmem::find(body, CDATA_END) {
            None => {
                let first = start + CDATA_START.len();
                self.at = rest.len().saturating_sub(CDATA_END.len() - 1).max(first);
                Some(RawStop::More)
            }
            Some(length) => {
                self.at += length + CDATA_END.len();
                self.state = State::Text;
                None
            }
        }
    }

    /// An opener that turns out to close itself has no end tag to wait for.
    fn in_opener(&mut self, rest: &[u8]) -> Option<RawStop> {
        let Some(length) = memchr2(b'>', b'<', rest.get(self.at..).unwrap_or_default()) else {
            self.at = rest.len();
            return Some(RawStop::More);
        };
        self.at += length;
        let before = self.at.checked_sub(1).and_then(|at| rest.get(at));
        if rest.get(self.at) == Some(&b'>') && before == Some(&b'/') {
            self.depth = self.depth.saturating_sub(1);
        }
        self.state = State::Text;
        None
    }

    fn in_end_tag(&mut self, rest: &[u8], tag: usize) -> Option<RawStop> {
        self.skip_space(rest);
        match rest.get(self.at) {
            None => return Some(RawStop::More),
            Some(b'>') => {
                self.at += 1;
                self.state = State::After { tag, end: self.at };
            }
            Some(_) => self.state = State::Text,
        }
        None
    }

    fn after_end_tag(&mut self, rest: &[u8], tag: usize, end: usize) -> RawStop {
        self.skip_space(rest);
        RawStop::EndTag(EndTag {
            start: tag,
            end,
            next: self.at,
            is_nested: self.depth > 0,
        })
    }

    fn skip_space(&mut self, rest: &[u8]) {
        self.at += leading_space(rest.get(self.at..).unwrap_or_default());
    }

    /// Returns up to where the text was checked.
    pub(super) fn checked(&self) -> usize {
        self.checked
    }

    /// Returns the bytes at which the scan must run again, when it has seen all `length` available bytes.
    pub(super) fn stop_bytes(&self, length: usize) -> &'static StopBytes {
        match self.state {
            _ if self.at < length.saturating_sub(CDATA_END.len() - 1) => StopBytes::ANY,
            State::Cdata(_) => StopBytes::GREATER,
            State::Opener if self.at == length => StopBytes::ANGLE,
            State::Text if self.at == length => StopBytes::LESS,
            State::Text | State::Opener | State::EndTag(_) | State::After { .. } => StopBytes::ANY,
        }
    }

    /// Checks all available bytes before waiting for more.
    fn check_cut(&mut self, rest: &[u8]) -> RawStop {
        match chars::check_cut(rest.get(self.checked..).unwrap_or_default()) {
            Ok(length) => {
                self.checked += length;
                RawStop::More
            }
            Err(bad) => self.bad(bad),
        }
    }

    /// Checks the text up to `end`, which the scan has passed.
    pub(super) fn check(&mut self, rest: &[u8], end: usize) -> Result<(), BadByte> {
        let unchecked = rest.get(self.checked..end).unwrap_or_default();
        let start = self.checked;
        self.checked = start.max(end);
        chars::check(unchecked).map_err(|bad| BadByte {
            at: start + bad.at,
            ..bad
        })
    }

    fn bad(&self, bad: BadByte) -> RawStop {
        RawStop::Bad(BadByte {
            at: self.checked + bad.at,
            ..bad
        })
    }
}

enum Prefix {
    Is,
    Cut,
    No,
}

/// Tells whether `bytes` starts with `name`, upper or lower case.
fn prefix(bytes: &[u8], name: &str) -> Prefix {
    let name = name.as_bytes();
    let length = bytes.len().min(name.len());
    let (head, start) = (bytes.get(..length), name.get(..length));
    match (head, start) {
        (Some(head), Some(start)) if is_same_name(head, start) => match length == name.len() {
            true => Prefix::Is,
            false => Prefix::Cut,
        },
        _ => Prefix::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::error::Code;

    /// Scans for `</t>`; end tags are passed as often as `passes` says.
    fn scan(text: &[u8], chunk: usize, passes: usize) -> (RawStop, RawScan) {
        let mut scan = RawScan::default();
        let (mut length, mut passes) = (0, passes);
        loop {
            length = (length + chunk).min(text.len());
            loop {
                let ending = match length == text.len() {
                    true => Ending::Last,
                    false => Ending::Open,
                };
                match checked(&mut scan, &text[..length], ending) {
                    RawStop::EndTag(tag) if tag.next == length && length < text.len() => break,
                    RawStop::EndTag(_) if passes > 0 => {
                        passes -= 1;
                        scan.pass();
                    }
                    RawStop::More if length < text.len() => break,
                    found => return (found, scan),
                }
            }
        }
    }

    /// Checks the text before an end tag as the caller does.
    fn checked(scan: &mut RawScan, rest: &[u8], ending: Ending) -> RawStop {
        match scan.step(rest, "t", ending) {
            RawStop::EndTag(tag) => match scan.check(rest, tag.start) {
                Ok(()) => RawStop::EndTag(tag),
                Err(bad) => RawStop::Bad(bad),
            },
            found => found,
        }
    }

    fn check(text: &[u8], passes: usize, expected: &RawStop) {
        for chunk in [1, 2, 3, 5, 1000] {
            let (found, _) = scan(text, chunk, passes);
            assert_eq!(&found, expected, "{text:?} in chunks of {chunk}");
        }
    }

    fn check_tag(
        text: &str,
        passes: usize,
        (start, end, next, is_nested): (usize, usize, usize, bool),
    ) {
        let tag = EndTag {
            start,
            end,
            next,
            is_nested,
        };
        check(text.as_bytes(), passes, &RawStop::EndTag(tag));
    }

    #[test]
    fn the_end_tag_is_found() {
        check_tag("ab</t>", 0, (2, 6, 6, false));
        check_tag("</T \n> \nx", 0, (0, 6, 8, false));
        check_tag(
            "a < b <b> </tt> </u> </ t> </t x> <!-- </t>",
            0,
            (39, 43, 43, false),
        );
        check_tag("a</t>b</t>c", 1, (6, 10, 10, false));
    }

    #[test]
    fn cdata_is_opaque() {
        check_tag("<![CDATA[</t>]]]></t>", 0, (17, 21, 21, false));
        check_tag("<![CDATA </t>", 0, (9, 13, 13, false));
        let (found, scan) = scan(b"a<![CDATA[ ]]</t>", 1, 0);
        assert_eq!((found, scan.open_cdata()), (RawStop::More, Some(1)));
    }

    #[test]
    fn placeholders_open_nothing() {
        check_tag("$KARYI<t> </t>", 0, (10, 14, 14, false));
        check_tag("$KARXI<t> </t>", 0, (10, 14, 14, true));
    }

    #[test]
    fn openers_are_counted() {
        check_tag("<t>a</t>b</t>", 0, (4, 8, 8, true));
        check_tag("<t>a</t>b</t>", 1, (9, 13, 13, false));
        check_tag("<t/><t a='1' /></t>", 0, (15, 19, 19, false));
        check_tag("<T x></t>", 0, (5, 9, 9, true));
        check_tag("<tx></t>", 0, (4, 8, 8, false));
        check_tag("<t <a/></t>", 0, (7, 11, 11, true));
    }

    #[test]
    fn bad_bytes_come_before_a_later_end() {
        let bad = |at, code| RawStop::Bad(BadByte { at, code });
        check(b"a\xffb</t>", 0, &bad(1, Code::Encoding));
        check(b"a\xf0\x9f</t>", 0, &bad(1, Code::Encoding));
        check(b"a\x1b</t>", 0, &bad(1, Code::IllegalChar));
        check(b"</t>\x1bc</t>", 1, &bad(4, Code::IllegalChar));
        check(b"a\xff", 0, &bad(1, Code::Encoding));
    }
}
