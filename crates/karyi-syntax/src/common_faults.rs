//! Faults that several parts of the block parser report.

use super::chars;
use super::element::OpenElement;
use super::fault::{Fault, Outcome, shown};
use karyi_core::error::Code;

impl OpenElement {
    /// Returns the fault of an element whose end tag never came.
    pub(super) fn unclosed(&self) -> Box<Fault> {
        let name = shown(&self.name);
        let fault = Fault::at(
            Code::UnclosedElement,
            &self.mark,
            format!("<{name}> has no end tag"),
        );
        match self.rule.leaf() {
            None => fault.with_hint(format!("add </{name}>")),
            Some(_) => {
                let hint =
                    format!("add </{name}>; text that holds that tag goes into <![CDATA[...]]>");
                fault.with_hint(hint)
            }
        }
    }
}

/// Returns the text of a complete tag, whose bytes are legal in a block.
pub(super) fn tag_text(rest: &[u8], start: usize, end: usize) -> Outcome<&str> {
    let tag = rest.get(start..end).unwrap_or_default();
    chars::text(tag).map_err(|bad| bad_byte(&bad, start))
}

/// Returns the fault of a byte that is illegal in a block, `base` bytes ahead.
pub(super) fn bad_byte(bad: &chars::BadByte, base: usize) -> Box<Fault> {
    let message = match bad.code {
        Code::Encoding => "the bytes are not UTF-8",
        _ => "a character that XML does not allow",
    };
    Fault::ahead(bad.code, base + bad.at, 1, message)
}

/// Returns the length of the character `at` bytes ahead; `None` when more bytes are needed.
pub(super) fn first_char(rest: &[u8], at: usize, is_last: bool) -> Outcome<Option<usize>> {
    let rest = rest.get(at..).unwrap_or_default();
    let near = rest.get(..4).unwrap_or(rest);
    let valid = match std::str::from_utf8(near) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() && !is_last => {
            return Ok(None);
        }
        Err(error) => std::str::from_utf8(near.get(..error.valid_up_to()).unwrap_or_default())
            .unwrap_or_default(),
    };
    let length = valid.chars().next().map_or(1, char::len_utf8);
    match chars::check(rest.get(..length).unwrap_or_default()) {
        Ok(()) => Ok(Some(length)),
        Err(bad) => Err(bad_byte(&bad, at)),
    }
}

/// Returns the fault of the character `at` bytes ahead, if it is illegal in a block.
pub(super) fn bad_char(rest: &[u8], at: usize) -> Option<Box<Fault>> {
    first_char(rest, at, true).err()
}

/// Returns the fault of something that passes a limit.
pub(super) fn too_large(at: usize, what: &str) -> Box<Fault> {
    Fault::ahead(
        Code::TooLarge,
        at,
        1,
        format!("{what} is larger than allowed"),
    )
}

/// Returns the fault of `<?`.
pub(super) fn processing_instruction(at: usize) -> Box<Fault> {
    let message = "a processing instruction stands in the block";
    Fault::ahead(Code::ProcessingInstruction, at, 2, message)
}

/// Returns the fault of an unclosed tag of `length` bytes.
pub(super) fn unclosed_tag(length: usize, at: usize) -> Box<Fault> {
    Fault::ahead(Code::UnclosedTag, at, length, "the tag has no `>`")
}
