//! What other parsers do with the same bytes.

use std::hint::black_box;

use karyi::call::{Name, RawAttribute, RawBody, RawElement, RawText};
use karyi::span::{Position, Span};
use quick_xml::events::attributes::{AttrError, Attribute};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde::Deserialize;

/// Looks for every `<`: what merely reading the bytes costs.
pub(crate) fn memchr_scan(message: &[u8]) -> usize {
    memchr::memchr_iter(b'<', message).count()
}

/// Reads every event and keeps nothing.
pub(crate) fn events(message: &[u8]) -> usize {
    let mut reader = Reader::from_reader(message);
    let mut count = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => return count,
            Ok(event) => {
                black_box(&event);
                count += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// One element with everything it says.
#[derive(Default)]
pub(crate) struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
}

/// Reads every event and makes one element of each call, one after the other.
pub(crate) fn events_to_elements(message: &[u8]) -> usize {
    let mut reader = Reader::from_reader(message);
    let (mut stack, mut count): (Vec<Element>, usize) = (Vec::new(), 0);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => return count,
            Ok(Event::Start(tag)) => stack.push(element(&tag)),
            Ok(Event::Empty(tag)) => {
                let whole = element(&tag);
                count += add(&mut stack, whole);
            }
            Ok(Event::End(_)) => {
                let whole = stack.pop().unwrap_or_default();
                count += add(&mut stack, whole);
            }
            Ok(Event::Text(text)) => {
                if let Some(open) = stack.last_mut() {
                    open.text.push_str(&text.xml10_content());
                }
            }
            Ok(Event::CData(text)) => {
                if let Some(open) = stack.last_mut() {
                    open.text.push_str(&text.xml10_content());
                }
            }
            Ok(Event::GeneralRef(name)) => {
                let known = quick_xml::escape::resolve_xml_entity(&name);
                if let Some(open) = stack.last_mut() {
                    open.text.push_str(known.unwrap_or_default());
                }
            }
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn element(tag: &BytesStart<'_>) -> Element {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.unwrap_or_else(|error| panic!("{error}"));
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.unwrap_or_else(|error| panic!("{error}"));
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Element {
        name: tag.name().as_ref().to_owned(),
        attributes,
        ..Element::default()
    }
}

/// Adds a whole element to its parent, or counts it as a call.
fn add(stack: &mut [Element], whole: Element) -> usize {
    match stack {
        [] => 0,
        [_tools] => {
            black_box((&whole.name, &whole.attributes, &whole.text, &whole.children));
            1
        }
        [.., parent] => {
            parent.children.push(whole);
            0
        }
    }
}

/// The calls of a block as karyi's parser gives them, made from quick-xml's events.
///
/// Beside names, attributes and text they say where each element stands, by line and column, and how
/// a text was written that decoding changed.
pub(crate) fn events_to_calls(message: &[u8]) -> usize {
    let mut reader = Reader::from_reader(message);
    let mut places = Places::default();
    let (mut stack, mut count): (Vec<Open>, usize) = (Vec::new(), 0);
    loop {
        let start = offset(&reader);
        let event = reader
            .read_event()
            .unwrap_or_else(|error| panic!("{error}"));
        let end = offset(&reader);
        match event {
            Event::Eof => return count,
            Event::Start(tag) => {
                let place = places.at(message, start);
                stack.push(open(&tag, place, end));
            }
            Event::Empty(tag) => {
                let place = places.at(message, start);
                let whole = open(&tag, place, end).close(message, end, end);
                count += add_call(&mut stack, whole);
            }
            Event::End(_) => {
                if let Some(open) = stack.pop() {
                    let whole = open.close(message, start, end);
                    count += add_call(&mut stack, whole);
                }
            }
            Event::Text(text) => {
                if let Some(open) = stack.last_mut() {
                    open.text.push_str(&text.xml10_content());
                }
            }
            Event::CData(text) => {
                if let Some(open) = stack.last_mut() {
                    open.has_cdata = true;
                    open.text.push_str(&text.xml10_content());
                }
            }
            Event::GeneralRef(name) => {
                let known = quick_xml::escape::resolve_xml_entity(&name);
                if let Some(open) = stack.last_mut() {
                    open.has_escape = true;
                    open.text.push_str(known.unwrap_or_default());
                }
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn offset(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// Counts lines and columns, going forward.
#[derive(Default)]
struct Places(Position);

impl Places {
    fn at(&mut self, message: &[u8], offset: usize) -> Position {
        let from = usize::try_from(self.0.offset).unwrap_or(usize::MAX);
        let passed = message.get(from..offset).unwrap_or_default();
        let columns = |bytes: &[u8]| bytes.iter().filter(|b| **b & 0xC0 != 0x80).count() as u64;
        match memchr::memrchr(b'\n', passed) {
            None => self.0.column += columns(passed),
            Some(at) => {
                let (lines, tail) = passed.split_at(at + 1);
                self.0.line += memchr::memchr_iter(b'\n', lines).count() as u64;
                self.0.column = 1 + columns(tail);
            }
        }
        self.0.offset = offset as u64;
        self.0
    }
}

/// An element whose end tag has not come.
struct Open {
    name: Name,
    start: Position,
    attributes: Vec<RawAttribute>,
    children: Vec<RawElement>,
    text: String,
    text_start: usize,
    has_escape: bool,
    has_cdata: bool,
}

fn open(tag: &BytesStart<'_>, start: Position, text_start: usize) -> Open {
    let attribute = |attribute: Result<Attribute<'_>, AttrError>| {
        let attribute = attribute.unwrap_or_else(|error| panic!("{error}"));
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        RawAttribute {
            name: attribute.key.as_ref().into(),
            value: value.unwrap_or_else(|error| panic!("{error}")).into_owned(),
        }
    };
    Open {
        name: tag.name().as_ref().into(),
        start,
        attributes: tag.attributes().map(attribute).collect(),
        children: Vec::new(),
        text: String::new(),
        text_start,
        has_escape: false,
        has_cdata: false,
    }
}

impl Open {
    fn close(self, message: &[u8], text_end: usize, end: usize) -> RawElement {
        let is_changed = self.has_escape || self.has_cdata;
        let written = message.get(self.text_start..text_end).unwrap_or_default();
        let source = is_changed.then(|| String::from_utf8_lossy(written).into_owned());
        RawElement {
            name: self.name,
            span: Span {
                start: self.start,
                end_offset: end as u64,
            },
            attributes: self.attributes,
            body: match self.children.is_empty() {
                false => RawBody::Elements(self.children),
                true => RawBody::Text(RawText {
                    text: self.text,
                    verbatim: self.has_cdata,
                    source,
                }),
            },
        }
    }
}

fn add_call(stack: &mut [Open], whole: RawElement) -> usize {
    match stack {
        [] => 0,
        [_tools] => {
            black_box(whole);
            1
        }
        [.., parent] => {
            parent.children.push(whole);
            0
        }
    }
}

#[derive(Deserialize)]
struct Tools {
    #[serde(rename = "$value")]
    calls: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "read by nobody: the work is in making them")]
enum Call {
    Command {
        #[serde(rename = "@timeout")]
        timeout: Option<String>,
        #[serde(rename = "$text", default)]
        text: String,
    },
    Read {
        #[serde(rename = "file", default)]
        files: Vec<ReadFile>,
    },
    Edit {
        #[serde(rename = "file", default)]
        files: Vec<EditFile>,
    },
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the work is in making them")]
struct ReadFile {
    #[serde(rename = "@src")]
    src: String,
    #[serde(rename = "@lines")]
    lines: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the work is in making them")]
struct EditFile {
    #[serde(rename = "@src")]
    src: String,
    #[serde(rename = "$value", default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "read by nobody: the work is in making them")]
enum Part {
    Find(#[serde(default)] String),
    Replace(#[serde(default)] String),
}

/// Deserialises the whole block with serde.
pub(crate) fn serde(block: &str) -> usize {
    let tools: Tools = quick_xml::de::from_str(block).unwrap_or_else(|error| panic!("{error}"));
    black_box(&tools.calls).len()
}

/// Deserialises from a reader that gives `chunk` bytes at a time.
pub(crate) fn serde_chunked(block: &str, chunk: usize) -> usize {
    let reader = std::io::BufReader::with_capacity(chunk, block.as_bytes());
    let tools: Tools = quick_xml::de::from_reader(reader).unwrap_or_else(|error| panic!("{error}"));
    black_box(&tools.calls).len()
}

/// Makes roxmltree's tree of the whole block.
pub(crate) fn roxmltree(block: &str) -> usize {
    let options = roxmltree::ParsingOptions {
        nodes_limit: u32::MAX,
        ..roxmltree::ParsingOptions::default()
    };
    let tree = roxmltree::Document::parse_with_options(block, options)
        .unwrap_or_else(|error| panic!("{error}"));
    let calls = tree.root_element().children();
    calls.filter(roxmltree::Node::is_element).count()
}
