//! Decodes one attribute, escaped or raw, and normalises its white space as XML does.

use std::borrow::Cow;

use memchr::memchr2;
use quick_xml::XmlVersion;
use quick_xml::events::attributes::Attribute;
use quick_xml::name::QName;

use super::event::Mode;
use super::fault::{Fault, Outcome, shown};
use super::references::{Placeholder, placeholder, reference};
use karyi_core::error::Code;

/// One attribute after decoding.
#[derive(Debug)]
pub(super) struct ParsedAttribute<'t> {
    /// Name as written.
    pub(super) name: &'t str,
    /// Decoded value.
    pub(super) value: String,
    /// True when only repair mode can read the value.
    pub(super) is_repaired: bool,
    /// True when the value mixes raw and escaped markup.
    pub(super) is_mixed: bool,
}

/// Decodes one attribute of `tag`, which is the next in the view; `raw` stands between its quotes.
pub(super) fn read<'t>(
    name: &'t str,
    raw: &str,
    tag: &str,
    mode: Mode,
) -> Outcome<ParsedAttribute<'t>> {
    let fault = |code, found: &str| {
        let message = format!("attribute `{}` {found}", shown(name));
        Fault::ahead(code, 0, tag.len(), message)
    };
    let shape = match shape(raw, mode) {
        Ok(shape) => shape,
        Err(Code::BadReference) => {
            return Err(fault(
                Code::BadReference,
                "has an `&` that starts no reference",
            ));
        }
        Err(Code::IllegalChar) => {
            return Err(fault(
                Code::IllegalChar,
                "refers to a character XML does not allow",
            ));
        }
        Err(code) => return Err(fault(code, "has a raw `<` in its value")),
    };
    let value = match shape.is_raw {
        true => spaced(raw),
        false if !shape.has_escape && !raw.bytes().any(|b| b < b' ') => raw.to_owned(),
        false => match normalized(name, raw) {
            Some(value) => value,
            None => {
                return Err(fault(
                    Code::BadAttribute,
                    "has a value that is not well formed",
                ));
            }
        },
    };
    Ok(ParsedAttribute {
        name,
        value,
        is_repaired: shape.has_less || shape.is_raw,
        is_mixed: shape.is_raw && shape.has_escape,
    })
}

/// Decodes a value that is XML.
fn normalized(name: &str, raw: &str) -> Option<String> {
    let attribute = Attribute {
        key: QName(name),
        value: Cow::Borrowed(raw),
    };
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

#[derive(Default)]
struct ValueShape {
    has_less: bool,
    is_raw: bool,
    has_escape: bool,
}

/// Decides whether a value is escaped or raw; in strict mode raw is an error.
fn shape(raw: &str, mode: Mode) -> Result<ValueShape, Code> {
    let bytes = raw.as_bytes();
    let mut shape = ValueShape::default();
    let (mut at, mut is_illegal) = (0, false);
    while let Some(found) = memchr2(b'<', b'&', bytes.get(at..).unwrap_or_default()) {
        at += found;
        let here = bytes.get(at..).unwrap_or_default();
        if here.first() == Some(&b'<') {
            if mode == Mode::Strict {
                return Err(Code::BadAttribute);
            }
            shape.has_less = true;
            match placeholder(bytes, at) {
                Placeholder::Ends(end) => at = end,
                Placeholder::No | Placeholder::Cut => {
                    shape.is_raw = true;
                    at += 1;
                }
            }
        } else if let Some(reference) = reference(here) {
            if mode == Mode::Strict && !reference.is_legal() {
                return Err(Code::IllegalChar);
            }
            is_illegal |= !reference.is_legal();
            shape.has_escape = true;
            at += reference.length;
        } else if mode == Mode::Strict {
            return Err(Code::BadReference);
        } else {
            shape.is_raw = true;
            at += 1;
        }
    }
    match is_illegal && !shape.is_raw {
        true => Err(Code::IllegalChar),
        false => Ok(shape),
    }
}

/// Turns every line break and tab into a space, as XML does with attribute values.
fn spaced(raw: &str) -> String {
    raw.replace("\r\n", " ").replace(['\r', '\n', '\t'], " ")
}
