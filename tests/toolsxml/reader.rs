//! A second reader of blocks, over quick-xml and nothing of the parser: what a well-formed block
//! means, said in the plainest way. It believes that the block follows the grammar.

use std::collections::HashSet;

use karyi::call::{
    BlockOptions, OnError, Order, RawAttribute, RawBody, RawCall, RawElement, RawText,
};
use karyi::span::{Position, Span};
use karyi::syntax::Event;
use karyi::syntax::grammar::{ContentRule, ElementRule, Grammar};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event as Xml};

/// An element as XML has it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) children: Vec<Tree>,
    pub(super) text: String,
    pub(super) has_cdata: bool,
    /// Whether a reference or CDATA section stands in the text.
    pub(super) is_escaped: bool,
    /// Offsets in the message: of the element, of what it holds, of its end tag, and after it.
    pub(super) start: usize,
    pub(super) inside: usize,
    pub(super) inside_end: usize,
    pub(super) end: usize,
}

/// Reads the block that is `message[base..end]`.
pub(super) fn tree(message: &str, base: usize, end: usize) -> Result<Tree, String> {
    let mut reader = quick_xml::Reader::from_str(&message[base..end]);
    let mut open: Vec<Tree> = vec![Tree::default()];
    loop {
        let start = base + usize::try_from(reader.buffer_position()).unwrap();
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let after = base + usize::try_from(reader.buffer_position()).unwrap();
        let last = open.last_mut().unwrap();
        match event {
            Xml::Start(tag) => open.push(element(&tag, start, after)?),
            Xml::Empty(tag) => {
                let mut empty = element(&tag, start, after)?;
                (empty.inside_end, empty.end) = (after, after);
                last.children.push(empty);
            }
            Xml::End(_) => {
                let mut closed = open.pop().unwrap();
                (closed.inside_end, closed.end) = (start, after);
                open.last_mut()
                    .ok_or("an end too many")?
                    .children
                    .push(closed);
            }
            Xml::Text(text) => last.text.push_str(&with_line_feeds(&text)),
            Xml::CData(text) => {
                last.text.push_str(&with_line_feeds(&text));
                (last.has_cdata, last.is_escaped) = (true, true);
            }
            Xml::GeneralRef(name) => {
                last.is_escaped = true;
                last.text.push(character(&name)?);
            }
            Xml::Comment(_) => {}
            Xml::Eof => break,
            other @ (Xml::Decl(_) | Xml::PI(_) | Xml::DocType(_)) => {
                return Err(format!("unexpected {other:?}"));
            }
        }
    }
    let mut root = open.pop().ok_or("nothing")?;
    if !open.is_empty() || root.children.len() != 1 {
        return Err("not one element".into());
    }
    Ok(root.children.remove(0))
}

fn element(tag: &BytesStart<'_>, start: usize, inside: usize) -> Result<Tree, String> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| error.to_string())?.into_owned();
        attributes.push((attribute.key.as_ref().to_owned(), value));
    }
    Ok(Tree {
        name: tag.name().as_ref().to_owned(),
        attributes,
        start,
        inside,
        ..Tree::default()
    })
}

/// Returns what a reference stands for.
fn character(name: &str) -> Result<char, String> {
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => digits.parse(),
        },
        None => {
            let named = [
                ("lt", '<'),
                ("gt", '>'),
                ("amp", '&'),
                ("quot", '"'),
                ("apos", '\''),
            ];
            let found = named.iter().find(|(known, _)| *known == name);
            return found
                .map(|(_, c)| *c)
                .ok_or_else(|| format!("unknown &{name};"));
        }
    };
    let number = number.map_err(|error| error.to_string())?;
    char::from_u32(number).ok_or_else(|| format!("no character {number}"))
}

fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Turns trees of blocks into the events that must come of them.
pub(super) struct Meaning<'m> {
    grammar: &'m Grammar,
    /// The message, when the trees say where they stand.
    message: Option<&'m str>,
    own_ids: HashSet<String>,
    calls: u64,
    last_number: u64,
    is_preserved: bool,
    pub(super) events: Vec<Event>,
}

impl<'m> Meaning<'m> {
    pub(super) fn new(grammar: &'m Grammar, message: Option<&'m str>) -> Self {
        Self {
            grammar,
            message,
            own_ids: HashSet::new(),
            calls: 0,
            last_number: 0,
            is_preserved: false,
            events: Vec::new(),
        }
    }

    /// Takes the next block.
    pub(super) fn block(&mut self, block: Tree) {
        let mut options = BlockOptions::default();
        self.is_preserved = false;
        for (name, value) in &block.attributes {
            match (name.as_str(), value.as_str()) {
                ("order", "sequential") => options.order = Order::Sequential,
                ("on_error", "stop") => options.on_error = OnError::Stop,
                ("xml:space", "preserve") => self.is_preserved = true,
                ("order" | "on_error" | "xml:space", _) => {}
                other => panic!("<tools> with {other:?}"),
            }
        }
        self.events.push(Event::BlockOpened {
            options,
            position: self.position(block.start),
        });
        for tool in block.children {
            let call = self.call(tool);
            self.events.push(Event::Call(call));
        }
        self.events.push(Event::BlockClosed);
    }

    fn call(&mut self, mut tool: Tree) -> RawCall {
        self.calls += 1;
        let own = tool.attributes.iter().position(|(name, _)| name == "id");
        let own = own.map(|at| tool.attributes.remove(at).1);
        let has_own_id = own.is_some();
        let id = own.unwrap_or_else(|| self.number());
        if has_own_id {
            self.own_ids.insert(id.clone());
        }
        let rule = self.grammar.tool(&tool.name).unwrap();
        RawCall {
            id,
            has_own_id,
            element: self.element(tool, &rule.content),
            repairs: Vec::new(),
        }
    }

    fn number(&mut self) -> String {
        let mut number = self.calls.max(self.last_number + 1);
        while self.own_ids.contains(&number.to_string()) {
            number += 1;
        }
        self.last_number = number;
        number.to_string()
    }

    fn element(&self, tree: Tree, content: &ContentRule) -> RawElement {
        let span = Span {
            start: self.position(tree.start),
            end_offset: self.offset(tree.end),
        };
        let attributes = tree.attributes.iter();
        let attributes = attributes.map(|(name, value)| RawAttribute {
            name: name.as_str().into(),
            value: value.clone(),
        });
        RawElement {
            name: tree.name.as_str().into(),
            span,
            attributes: attributes.collect(),
            body: self.body(tree, content),
        }
    }

    fn body(&self, tree: Tree, content: &ContentRule) -> RawBody {
        match content {
            ContentRule::Leaf(_) => RawBody::Text(self.text(&tree)),
            ContentRule::Empty => RawBody::Empty,
            ContentRule::Children { groups, .. } => {
                let rule = |name: &str| -> &ElementRule {
                    let mut all = groups.iter().flatten();
                    all.find(|rule| rule.name == name).unwrap()
                };
                let children = tree.children.into_iter();
                elements(children.map(|child| {
                    let content = &rule(&child.name).content;
                    self.element(child, content)
                }))
            }
            ContentRule::Parameters(parameters) => {
                let children = tree.children.into_iter();
                elements(children.map(|child| {
                    let declared = parameters.iter().find(|p| p.name == child.name);
                    match declared.unwrap().is_raw {
                        true => RawElement {
                            body: RawBody::Text(self.text(&child)),
                            ..self.element(child, &ContentRule::Empty)
                        },
                        false => self.value(child),
                    }
                }))
            }
        }
    }

    /// An argument: text or elements.
    fn value(&self, mut tree: Tree) -> RawElement {
        let children = std::mem::take(&mut tree.children);
        let body = match children.is_empty() {
            true => RawBody::Text(self.text(&tree)),
            false => elements(children.into_iter().map(|child| self.value(child))),
        };
        RawElement {
            body,
            ..self.element(tree, &ContentRule::Empty)
        }
    }

    fn text(&self, tree: &Tree) -> RawText {
        let source = self.message.filter(|_| tree.is_escaped);
        RawText {
            text: tree.text.clone(),
            verbatim: tree.has_cdata || self.is_preserved,
            source: source.map(|message| with_line_feeds(&message[tree.inside..tree.inside_end])),
        }
    }

    fn offset(&self, at: usize) -> u64 {
        self.message.map_or(0, |_| at as u64)
    }

    /// Counts lines and columns from the start of the message.
    fn position(&self, at: usize) -> Position {
        let Some(message) = self.message else {
            return Position::default();
        };
        let before = message[..at].strip_prefix('\u{FEFF}');
        let before = with_line_feeds(before.unwrap_or(&message[..at]));
        let line = before.rsplit('\n').next().unwrap_or_default();
        Position {
            offset: at as u64,
            line: before.matches('\n').count() as u64 + 1,
            column: line.chars().count() as u64 + 1,
        }
    }
}

fn elements(children: impl Iterator<Item = RawElement>) -> RawBody {
    let children: Vec<RawElement> = children.collect();
    match children.is_empty() {
        true => RawBody::Empty,
        false => RawBody::Elements(children),
    }
}
