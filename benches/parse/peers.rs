//! What other parsers do with the same bytes.

use std::hint::black_box;

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
pub(crate) fn events_to_ast(message: &[u8]) -> usize {
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
