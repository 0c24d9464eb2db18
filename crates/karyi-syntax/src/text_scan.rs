//! Finds the next markup in text where every `<` counts: all leaves in strict mode, and arguments
//! that are no raw leaf in both modes.
//!
//! CDATA sections are part of the text. In strict mode each run of text is checked when the `<`
//! after it has come.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::chars::{self, BadByte};
use super::event::Mode;
use super::leaf_decoder::{self, CDATA_END, CDATA_START, DecodedLeaf};
use super::source::Ending;
use super::stop_bytes::StopBytes;
use super::strict;
use karyi_core::error::Code;
use karyi_core::limits::{MAX_LEAF_BYTES, MAX_UNCHECKED_BYTES};

/// The scan of one text.
#[derive(Debug, Default)]
pub(super) struct TextScan {
    at: usize,
    /// Start of the current run of text.
    run: usize,
    /// The CDATA section that the scan is in.
    cdata: Option<usize>,
    /// Offset up to which the bytes are known to be legal.
    checked: usize,
    /// The first CDATA section of the text.
    first_cdata: Option<usize>,
    /// The text that an end tag seems to close, when it is simple.
    reading: Option<DecodedLeaf>,
}

/// Result of one scan step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextStop {
    /// More bytes are needed.
    More,
    /// A `<` that starts no CDATA section; the byte after it is available unless the message ends.
    Markup(usize),
    /// Something illegal in text.
    Offence(Code, Range<usize>),
    /// The text is longer than allowed.
    TooLong,
}

impl TextScan {
    /// Looks for the next markup in `rest`, which starts with the text and grows from call to call.
    pub(super) fn step(&mut self, rest: &[u8], ending: Ending, mode: Mode) -> TextStop {
        loop {
            let found = match self.cdata {
                Some(start) => self.in_cdata(rest, start),
                None => self.in_text(rest, ending, mode),
            };
            if self.at > MAX_LEAF_BYTES {
                self.at = MAX_LEAF_BYTES;
                return self.check_cut(rest.get(..self.at).unwrap_or_default(), TextStop::TooLong);
            }
            match found {
                None => {}
                Some(TextStop::More)
                    if ending == Ending::Open
                        && rest.len() - self.checked < MAX_UNCHECKED_BYTES =>
                {
                    return TextStop::More;
                }
                Some(TextStop::More) => {
                    let most = rest.get(..MAX_LEAF_BYTES).unwrap_or(rest);
                    return self.check_cut(most, TextStop::More);
                }
                Some(stop) => return stop,
            }
        }
    }

    /// Checks all available bytes before it stops.
    fn check_cut(&mut self, rest: &[u8], stop: TextStop) -> TextStop {
        match chars::check_cut(rest.get(self.checked..).unwrap_or_default()) {
            Err(bad) => self.bad(bad),
            Ok(length) => {
                self.checked += length;
                stop
            }
        }
    }

    /// Returns the bytes at which the scan must run again, when it has seen all `length` available bytes.
    pub(super) fn stop_bytes(&self, length: usize) -> &'static StopBytes {
        match self.cdata {
            Some(_) => StopBytes::GREATER,
            None if self.at == length => StopBytes::LESS,
            None => StopBytes::ANY,
        }
    }

    /// Goes on after a `<` that is text.
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }

    /// Returns where the CDATA section starts that the scan is in.
    pub(super) fn open_cdata(&self) -> Option<usize> {
        self.cdata
    }

    /// Returns where the first CDATA section of the text starts.
    pub(super) fn first_cdata(&self) -> Option<usize> {
        self.first_cdata
    }

    /// Hands over the text, if it was simple enough to be read while it was checked.
    pub(super) fn take_reading(&mut self) -> Option<DecodedLeaf> {
        self.reading.take()
    }

    fn in_text(&mut self, rest: &[u8], ending: Ending, mode: Mode) -> Option<TextStop> {
        let Some(length) = memchr(b'<', rest.get(self.at..).unwrap_or_default()) else {
            self.at = rest.len();
            return Some(TextStop::More);
        };
        self.at += length;
        let here = rest.get(self.at..).unwrap_or_default();
        if here.starts_with(b"</") && self.first_cdata.is_none() {
            match chars::text_after(rest.get(..self.at).unwrap_or_default(), self.checked) {
                Ok(text) => self.reading = leaf_decoder::read_simple(text, false),
                Err(bad) => return Some(TextStop::Offence(bad.code, bad.at..bad.at + 1)),
            }
            if self.reading.is_some() {
                return Some(TextStop::Markup(self.at));
            }
        }
        if let Some(offence) = self.check_run(rest, mode) {
            return Some(offence);
        }
        if here.starts_with(CDATA_START) {
            self.cdata = Some(self.at);
            self.first_cdata.get_or_insert(self.at);
            self.at += CDATA_START.len();
            return None;
        }
        let is_cut = CDATA_START.starts_with(here) && ending != Ending::Last;
        Some(if is_cut {
            TextStop::More
        } else {
            TextStop::Markup(self.at)
        })
    }

    /// Checks the run of text that ends here.
    fn check_run(&mut self, rest: &[u8], mode: Mode) -> Option<TextStop> {
        let unchecked = rest.get(self.checked..self.at).unwrap_or_default();
        if let Err(bad) = chars::check(unchecked) {
            return Some(self.bad(bad));
        }
        self.checked = self.checked.max(self.at);
        if mode == Mode::Repair {
            return None;
        }
        let run = std::mem::replace(&mut self.run, self.at);
        match strict::check_text(rest.get(run..self.at).unwrap_or_default()) {
            Ok(()) => None,
            Err((code, range)) => Some(TextStop::Offence(code, run + range.start..run + range.end)),
        }
    }

    fn in_cdata(&mut self, rest: &[u8], start: usize) -> Option<TextStop> {
        let body = rest.get(self.at..).unwrap_or_default();
        match memmem::find(body, CDATA_END) {
            None => {
                let first = start + CDATA_START.len();
                self.at = rest.len().saturating_sub(CDATA_END.len() - 1).max(first);
                Some(TextStop::More)
            }
            Some(length) => {
                self.at += length + CDATA_END.len();
                self.run = self.at;
                self.cdata = None;
                None
            }
        }
    }

    fn bad(&self, bad: BadByte) -> TextStop {
        let at = self.checked + bad.at;
        TextStop::Offence(bad.code, at..at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mode: Mode, text: &str, expected: &TextStop) {
        for chunk in [1, 2, 3, 1000] {
            let mut scan = TextScan::default();
            let mut length = 0;
            let found = loop {
                length = (length + chunk).min(text.len());
                let is_last = length == text.len();
                let ending = if is_last { Ending::Last } else { Ending::Open };
                let stop = scan.step(&text.as_bytes()[..length], ending, mode);
                if stop != TextStop::More || is_last {
                    break stop;
                }
            };
            assert_eq!(&found, expected, "{text} in chunks of {chunk}");
        }
    }

    #[test]
    fn cdata_is_text_and_other_markup_is_not() {
        for mode in [Mode::Strict, Mode::Repair] {
            check(mode, "a<b", &TextStop::Markup(1));
            check(mode, "a<![CDATA[<b>]]>c</a>", &TextStop::Markup(17));
            check(mode, "a<![CDATA x", &TextStop::Markup(1));
            check(mode, "a<!", &TextStop::Markup(1));
            check(mode, "a<![CDATA[ ]]", &TextStop::More);
            check(
                mode,
                "a\u{1b}<b",
                &TextStop::Offence(Code::IllegalChar, 1..2),
            );
        }
    }

    #[test]
    fn strict_mode_checks_each_run() {
        check(Mode::Strict, "a && b", &TextStop::More);
        check(
            Mode::Strict,
            "a && b<",
            &TextStop::Offence(Code::BadReference, 2..3),
        );
        check(
            Mode::Strict,
            "<![CDATA[&]]>1 & 2]]><",
            &TextStop::Offence(Code::BadReference, 15..16),
        );
        check(Mode::Repair, "a && b<", &TextStop::Markup(6));
    }
}
