//! The text of a complete leaf: decoded as XML, or taken raw (rules R4, R5 and R6).
//!
//! A leaf is either escaped throughout or raw throughout. A text of characters and references is
//! decoded in one pass; one with CDATA, CR or placeholders goes through quick-xml. Raw text is what
//! stands there, with LF for every line break.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr2, memchr3, memmem};
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

use super::chars::is_space;
use super::references::{Placeholder, placeholder, reference};
use super::repairs::Repair;

/// Starts a CDATA section.
pub(super) const CDATA_START: &[u8] = b"<![CDATA[";
/// Ends one.
pub(super) const CDATA_END: &[u8] = b"]]>";

/// Finds the first end of a CDATA section.
pub(super) fn find_cdata_end(bytes: &[u8]) -> Option<usize> {
    static FINDER: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new(CDATA_END));
    FINDER.find(bytes)
}

/// A leaf after reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodedLeaf {
    /// The text.
    pub(super) text: String,
    /// True when CDATA was unwrapped.
    pub(super) has_cdata: bool,
    /// The leaf as written, line breaks as LF, when the text differs from it.
    pub(super) source: Option<String>,
    /// Repairs that were needed.
    pub(super) repairs: &'static [Repair],
    /// Range of the first escape or CDATA section in raw text, which stays undecoded.
    pub(super) mixed: Option<Range<usize>>,
}

/// A character reference to a character that XML does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IllegalReference {
    /// Range in the leaf.
    pub(super) range: Range<usize>,
}

/// Reads a leaf as repair mode does; with `takes_any` a reference may denote a character that XML does not allow.
pub(super) fn read(leaf: &str, takes_any: bool) -> Result<DecodedLeaf, IllegalReference> {
    if let Some(reading) = read_simple(leaf, takes_any) {
        return Ok(reading);
    }
    let shape = shape(leaf, takes_any);
    if !shape.is_raw {
        return match shape.illegal {
            Some(range) => Err(IllegalReference { range }),
            None => Ok(decode(leaf, &shape)),
        };
    }
    if let Some(body) = wrapped(leaf) {
        return Ok(unwrap(leaf, body));
    }
    let (repairs, mixed): (&[Repair], _) = match shape.escape {
        Some(range) => (&[Repair::R4, Repair::R5], Some(range)),
        None => (&[Repair::R4], None),
    };
    Ok(DecodedLeaf {
        text: with_line_feeds(leaf),
        has_cdata: false,
        source: None,
        repairs,
        mixed,
    })
}

/// Reads a leaf that is known to be well formed.
pub(super) fn read_well_formed(leaf: &str) -> Result<DecodedLeaf, IllegalReference> {
    if let Some(reading) = read_simple(leaf, false) {
        return Ok(reading);
    }
    let shape = shape(leaf, false);
    match shape.illegal {
        Some(range) => Err(IllegalReference { range }),
        None => Ok(decode(leaf, &shape)),
    }
}

/// Reads a leaf that holds characters and references only, in one pass; `None` when there is more
/// to it.
pub(super) fn read_simple(leaf: &str, takes_any: bool) -> Option<DecodedLeaf> {
    let bytes = leaf.as_bytes();
    if find_cdata_end(bytes).is_some() {
        return None;
    }
    let mut reading = DecodedLeaf {
        text: String::with_capacity(leaf.len()),
        has_cdata: false,
        source: None,
        repairs: &[],
        mixed: None,
    };
    let mut at = 0;
    while let Some(length) = memchr3(b'&', b'<', b'\r', rest(bytes, at)) {
        let start = at + length;
        // At anything but `&` this finds no reference, and there is more to the leaf.
        let reference = reference(rest(bytes, start))?;
        reading.text.push_str(leaf.get(at..start)?);
        reading.text.push(reference.meant(takes_any)?);
        at = start + reference.length;
    }
    reading.text.push_str(leaf.get(at..)?);
    reading.source = (at > 0).then(|| leaf.to_owned());
    Some(reading)
}

/// Properties of the text of a leaf.
#[derive(Debug, Default)]
struct LeafShape {
    /// True when something in it is not XML.
    is_raw: bool,
    /// The first reference or CDATA section.
    escape: Option<Range<usize>>,
    /// The first reference to a character that XML does not allow.
    illegal: Option<Range<usize>>,
    has_cdata: bool,
    /// Ranges of the `<NAME>` of placeholders.
    placeholders: Vec<Range<usize>>,
}

fn shape(leaf: &str, takes_any: bool) -> LeafShape {
    let bytes = leaf.as_bytes();
    let mut shape = LeafShape::default();
    let (mut at, mut text_start) = (0, 0);
    while let Some(found) = memchr2(b'<', b'&', rest(bytes, at)) {
        at += found;
        if bytes.get(at) == Some(&b'&') {
            at += shape.add_reference(bytes, at, takes_any);
        } else if let Placeholder::Ends(end) = placeholder(bytes, at) {
            shape.placeholders.push(at..end);
            at = end;
        } else if let Some(length) = cdata_length(rest(bytes, at)) {
            shape.is_raw |= has_cdata_end(bytes, text_start..at);
            shape.escape.get_or_insert(at..at + CDATA_START.len());
            shape.has_cdata = true;
            at += length;
            text_start = at;
        } else {
            shape.is_raw = true;
            at += 1;
        }
        if shape.is_raw && shape.escape.is_some() {
            return shape;
        }
    }
    shape.is_raw = shape.is_raw || has_cdata_end(bytes, text_start..bytes.len());
    shape
}

impl LeafShape {
    /// Records the `&` at `at`; returns the number of bytes it covers.
    fn add_reference(&mut self, bytes: &[u8], at: usize, takes_any: bool) -> usize {
        let Some(reference) = reference(rest(bytes, at)) else {
            self.is_raw = true;
            return 1;
        };
        let range = at..at + reference.length;
        self.escape.get_or_insert(range.clone());
        if reference.meant(takes_any).is_none() {
            self.illegal.get_or_insert(range);
        }
        reference.length
    }
}

fn rest(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn has_cdata_end(bytes: &[u8], range: Range<usize>) -> bool {
    let text = bytes.get(range).unwrap_or_default();
    find_cdata_end(text).is_some()
}

/// Returns the length of the CDATA section that `bytes` starts with.
fn cdata_length(bytes: &[u8]) -> Option<usize> {
    let body = bytes.strip_prefix(CDATA_START)?;
    let length = find_cdata_end(body)?;
    Some(CDATA_START.len() + length + CDATA_END.len())
}

/// Decodes a leaf that is XML but for its placeholders.
fn decode(leaf: &str, shape: &LeafShape) -> DecodedLeaf {
    let source = with_line_feeds(leaf);
    let repairs: &[Repair] = match shape.placeholders.is_empty() {
        true => &[],
        false => &[Repair::R1],
    };
    if shape.escape.is_none() {
        return DecodedLeaf {
            text: source,
            has_cdata: false,
            source: None,
            repairs,
            mixed: None,
        };
    }
    DecodedLeaf {
        text: decode_around(&source, &shape.placeholders, source.len() == leaf.len()),
        has_cdata: shape.has_cdata,
        // What is decoded is always shorter than its escape.
        source: Some(source),
        repairs,
        mixed: None,
    }
}

/// Decodes the text between placeholders.
fn decode_around(source: &str, placeholders: &[Range<usize>], are_places_right: bool) -> String {
    if !are_places_right && !placeholders.is_empty() {
        // Line breaks became shorter, so the placeholders have moved.
        return decode_around(source, &shape(source, true).placeholders, true);
    }
    let mut text = String::with_capacity(source.len());
    let mut start = 0;
    for placeholder in placeholders {
        decode_into(
            source.get(start..placeholder.start).unwrap_or_default(),
            &mut text,
        );
        text.push_str(source.get(placeholder.clone()).unwrap_or_default());
        start = placeholder.end;
    }
    decode_into(source.get(start..).unwrap_or_default(), &mut text);
    text
}

/// Appends the text of well-formed XML without tags.
fn decode_into(xml: &str, text: &mut String) {
    // The reader would take it for the mark of a document and drop it.
    let rest = xml.trim_start_matches('\u{FEFF}');
    text.push_str(xml.get(..xml.len() - rest.len()).unwrap_or_default());
    let xml = rest;
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event() {
            Ok(Event::Text(piece)) => text.push_str(&piece),
            Ok(Event::CData(piece)) => text.push_str(&piece),
            Ok(Event::GeneralRef(name)) => match name.resolve_char_ref() {
                Ok(Some(c)) => text.push(c),
                Ok(None) | Err(_) => text.push_str(resolve_xml_entity(&name).unwrap_or_default()),
            },
            Ok(Event::Eof) => return,
            // The shape of the leaf allows nothing else; taken raw, nothing is lost.
            Ok(other) => text.push_str(&other),
            Err(_) => {
                let at = usize::try_from(reader.error_position()).unwrap_or(xml.len());
                return text.push_str(xml.get(at..).unwrap_or_default());
            }
        }
    }
}

/// Finds the body of one CDATA wrapper that itself holds `]]>` (rule R6).
fn wrapped(leaf: &str) -> Option<Range<usize>> {
    let bytes = leaf.as_bytes();
    let before = bytes.iter().take_while(|b| is_space(**b)).count();
    let after = bytes.iter().rev().take_while(|b| is_space(**b)).count();
    let section = bytes.get(before..bytes.len() - after)?;
    let body = section.strip_prefix(CDATA_START)?.strip_suffix(CDATA_END)?;
    let is_wrapper = find_cdata_end(body).is_some() && memmem::find(body, CDATA_START).is_none();
    let start = before + CDATA_START.len();
    is_wrapper.then_some(start..start + body.len())
}

fn unwrap(leaf: &str, body: Range<usize>) -> DecodedLeaf {
    let before = leaf
        .get(..body.start - CDATA_START.len())
        .unwrap_or_default();
    let after = leaf.get(body.end + CDATA_END.len()..).unwrap_or_default();
    let text = [before, leaf.get(body).unwrap_or_default(), after].concat();
    DecodedLeaf {
        text: with_line_feeds(&text),
        has_cdata: true,
        source: Some(with_line_feeds(leaf)),
        repairs: &[Repair::R6],
        mixed: None,
    }
}

fn with_line_feeds(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_with_line_feeds(&mut out, text);
    out
}

/// Adds text with CRLF and CR as LF.
fn push_with_line_feeds(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        let (line, end) = rest.split_at(at);
        out.push_str(line);
        out.push('\n');
        rest = end
            .strip_prefix("\r\n")
            .unwrap_or(end.get(1..).unwrap_or_default());
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(
        text: &str,
        has_cdata: bool,
        source: Option<&str>,
        repairs: &'static [Repair],
    ) -> DecodedLeaf {
        DecodedLeaf {
            text: text.into(),
            has_cdata,
            source: source.map(str::to_owned),
            repairs,
            mixed: None,
        }
    }

    fn check(leaf: &str, expected: &DecodedLeaf) {
        assert_eq!(read(leaf, false).as_ref(), Ok(expected), "{leaf:?}");
    }

    fn check_raw(leaf: &str, mixed: Option<&str>) {
        let repairs: &[Repair] = match mixed {
            Some(_) => &[Repair::R4, Repair::R5],
            None => &[Repair::R4],
        };
        let range = mixed.and_then(|m| leaf.find(m).map(|at| at..at + m.len()));
        let expected = DecodedLeaf {
            mixed: range,
            ..reading(leaf, false, None, repairs)
        };
        check(leaf, &expected);
    }

    #[test]
    fn well_formed_text_is_decoded_once() {
        check("", &reading("", false, None, &[]));
        check(
            "a > b\r\nc\rd\n",
            &reading("a > b\nc\nd\n", false, None, &[]),
        );
        check("&amp;lt;", &reading("&lt;", false, Some("&amp;lt;"), &[]));
        check(
            "&lt;&#13;\r\n",
            &reading("<\r\n", false, Some("&lt;&#13;\n"), &[]),
        );
        check(
            "a<![CDATA[<b>&amp;]]>c",
            &reading("a<b>&amp;c", true, Some("a<![CDATA[<b>&amp;]]>c"), &[]),
        );
        check(
            "\u{FEFF}<![CDATA[\u{FEFF}]]>",
            &reading(
                "\u{FEFF}\u{FEFF}",
                true,
                Some("\u{FEFF}<![CDATA[\u{FEFF}]]>"),
                &[],
            ),
        );
        let split = "<![CDATA[]]]]><![CDATA[>]]>";
        check(split, &reading("]]>", true, Some(split), &[]));
        check(
            "<![CDATA[]]>",
            &reading("", true, Some("<![CDATA[]]>"), &[]),
        );
    }

    #[test]
    fn placeholders_do_not_make_text_raw() {
        check(
            "$KARYI<A> b",
            &reading("$KARYI<A> b", false, None, &[Repair::R1]),
        );
        let leaf = "&lt;$KARYI<A>&gt;$KARYI<B>";
        check(
            leaf,
            &reading("<$KARYI<A>>$KARYI<B>", false, Some(leaf), &[Repair::R1]),
        );
        check_raw("$KARYI<A> && b", None);
        check_raw("$KARYI<1>", None);
    }

    #[test]
    fn anything_that_is_not_xml_makes_the_leaf_raw() {
        check_raw("a && b", None);
        check_raw("a < b", None);
        check_raw("a]]>b", None);
        check_raw("<p>Tom &amp; Jerry</p>", Some("&amp;"));
        check_raw("<d><![CDATA[x]]></d>", Some("<![CDATA["));
        check_raw("a <![CDATA[x]]> && b", Some("<![CDATA["));
        check_raw("a & &#0;", Some("&#0;"));
    }

    #[test]
    fn a_wrapper_runs_to_the_last_end() {
        let leaf = "<![CDATA[x[y[0]]>1 && z]]>";
        check(
            leaf,
            &reading("x[y[0]]>1 && z", true, Some(leaf), &[Repair::R6]),
        );
        let leaf = "\n <![CDATA[a]]>b]]>\n";
        check(
            leaf,
            &reading("\n a]]>b\n", true, Some(leaf), &[Repair::R6]),
        );
        check_raw("<![CDATA[a]]>b]]> c", Some("<![CDATA["));
        check_raw("<![CDATA[a]]>b]]><![CDATA[c]]>", Some("<![CDATA["));
    }

    #[test]
    fn illegal_references_are_refused() {
        assert_eq!(read("a&#0;", false), Err(IllegalReference { range: 1..5 }));
        assert_eq!(read("a&#0;", true), Err(IllegalReference { range: 1..5 }));
        assert_eq!(read("a&#12;", false), Err(IllegalReference { range: 1..6 }));
        let leaf = "a&#12;<![CDATA[b]]>&#x1b;";
        let expected = reading("a\u{c}b\u{1b}", true, Some(leaf), &[]);
        assert_eq!(read(leaf, true), Ok(expected));
        let expected = reading("a\u{c}", false, Some("a&#12;"), &[]);
        assert_eq!(read("a&#12;", true), Ok(expected));
        assert_eq!(
            read_well_formed("a&#x1B;"),
            Err(IllegalReference { range: 1..7 })
        );
    }
}
