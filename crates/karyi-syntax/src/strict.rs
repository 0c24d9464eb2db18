//! Checks of strict mode that quick-xml does not make.

use std::ops::Range;

use memchr::memchr;

use super::leaf_decoder::{CDATA_END, find_cdata_end};
use super::references::reference;
use karyi_core::error::Code;

/// Finds the first illegal construct in text between two `<`.
pub(super) fn check_text(text: &[u8]) -> Result<(), (Code, Range<usize>)> {
    let cdata_end = find_cdata_end(text);
    let before = text.get(..cdata_end.unwrap_or(text.len()));
    let mut at = 0;
    while let Some(found) = memchr(b'&', before.and_then(|b| b.get(at..)).unwrap_or_default()) {
        at += found;
        match reference(text.get(at..).unwrap_or_default()) {
            None => return Err((Code::BadReference, at..at + 1)),
            Some(found) if !found.is_legal() => {
                return Err((Code::IllegalChar, at..at + found.length));
            }
            Some(found) => at += found.length,
        }
    }
    match cdata_end {
        Some(at) => Err((Code::CdataEndInText, at..at + CDATA_END.len())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), (Code, Range<usize>)>) {
        assert_eq!(check_text(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn the_first_offence_is_found() {
        check("a > b &amp; c ]] > ] ]>", Ok(()));
        check("a && b", Err((Code::BadReference, 2..3)));
        check("a ]]> &", Err((Code::CdataEndInText, 2..5)));
        check("]]]>", Err((Code::CdataEndInText, 1..4)));
        check("é&#0;", Err((Code::IllegalChar, 2..6)));
        check("&nbsp;", Err((Code::BadReference, 0..1)));
    }
}
