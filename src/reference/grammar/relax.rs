//! The language as RELAX NG patterns, shared by its two syntaxes.
//!
//! RELAX NG expresses nearly everything: an argument is either an attribute or a child element; children of a
//! generic tool come in any order, each once.

use super::language::{Attribute, Content, Element, Key, Language, Parameter, Range, Value};

/// A named pattern.
#[derive(Debug)]
pub(super) struct Define {
    /// Its name.
    pub(super) name: String,
    /// Purpose.
    pub(super) about: String,
    /// Its pattern.
    pub(super) pattern: Pattern,
}

/// A pattern.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Any text.
    Text,
    /// Nothing.
    Empty,
    /// Text of a W3C XML Schema type, with facets.
    Data(&'static str, Vec<(&'static str, String)>),
    /// This text, as a `string` (exact) or a `token` (white space around it is ignored).
    Value(&'static str, String),
    /// A named pattern.
    Ref(String),
    /// An attribute: name, purpose, value.
    Attribute(String, String, Box<Pattern>),
    /// An element: name, purpose, content.
    Element(String, String, Box<Pattern>),
    /// An element with any other name.
    OtherElement(Vec<String>, Box<Pattern>),
    /// All of them in this order (attributes in any).
    Group(Vec<Pattern>),
    /// All of them, in any order.
    Interleave(Vec<Pattern>),
    /// One of them.
    Choice(Vec<Pattern>),
    /// Optional.
    Optional(Box<Pattern>),
    /// Zero or more times.
    ZeroOrMore(Box<Pattern>),
    /// One or more times.
    OneOrMore(Box<Pattern>),
}

/// Returns the patterns of the language; the first one is the start.
pub(super) fn defines(language: &Language) -> Vec<Define> {
    let mut block: Vec<Pattern> = language.block.iter().map(attribute).collect();
    block.push(Pattern::ZeroOrMore(Box::new(Pattern::Ref("call".into()))));
    let block = Pattern::Element("tools".into(), String::new(), Box::new(group(block)));
    let calls = language.tools.iter().map(reference).collect();
    let mut defines = vec![
        define("block", "Calls, in the order they are written.", block),
        define("call", "One use of a tool.", choice(calls)),
    ];
    language
        .tools
        .iter()
        .for_each(|tool| push_element(tool, &mut defines));
    defines
}

fn define(name: &str, about: &str, pattern: Pattern) -> Define {
    Define {
        name: name.into(),
        about: about.into(),
        pattern,
    }
}

fn reference(element: &Element) -> Pattern {
    Pattern::Ref(element.label("."))
}

/// Adds the pattern of an element and of the elements in it.
fn push_element(element: &Element, defines: &mut Vec<Define>) {
    let body = body(element);
    let pattern = Pattern::Element(element.name.clone(), String::new(), Box::new(body));
    defines.push(define(&element.label("."), &element.about, pattern));
    if let Content::Groups { groups, .. } = &element.content {
        let children = groups.iter().flatten();
        children.for_each(|child| push_element(child, defines));
    }
}

fn body(element: &Element) -> Pattern {
    let mut parts: Vec<Pattern> = element.attributes.iter().map(attribute).collect();
    match &element.content {
        Content::Empty => parts.push(Pattern::Empty),
        Content::Text { value, .. } => parts.push(text(value)),
        Content::Groups {
            groups,
            is_required,
        } => {
            let one = |children: &Vec<Element>| group(children.iter().map(reference).collect());
            let any = Box::new(choice(groups.iter().map(one).collect()));
            parts.push(match is_required {
                true => Pattern::OneOrMore(any),
                false => Pattern::ZeroOrMore(any),
            });
        }
        Content::Parameters(list) => {
            parts.extend(list.iter().map(parameter));
            return Pattern::Interleave(parts);
        }
    }
    group(parts)
}

fn attribute(attribute: &Attribute) -> Pattern {
    let value = Box::new(text(&attribute.value));
    let pattern = Pattern::Attribute(attribute.name.clone(), attribute.about.clone(), value);
    optional(pattern, attribute.is_required)
}

/// An attribute or a child element, but not both.
fn parameter(parameter: &Parameter) -> Pattern {
    let (name, about) = (parameter.name.clone(), parameter.about.clone());
    let value = Box::new(text(&parameter.value));
    let spelled = Pattern::Attribute(name.clone(), about.clone(), value);
    let child = match &parameter.value {
        Value::List(item) => {
            let mut ways = choices(content(item));
            ways.push(json("["));
            ways.push(Pattern::OneOrMore(Box::new(named("item", item))));
            let child = Pattern::Element(name, about, Box::new(choice(ways)));
            Pattern::OneOrMore(Box::new(child))
        }
        value => Pattern::Element(name, about, Box::new(content(value))),
    };
    optional(choice(vec![spelled, child]), parameter.is_required)
}

/// Returns the content of an element that represents a value.
fn content(value: &Value) -> Pattern {
    match value {
        Value::List(item) => {
            let items = Pattern::ZeroOrMore(Box::new(named("item", item)));
            choice(vec![json("["), items])
        }
        Value::Object { keys, other } => {
            let mut members: Vec<Pattern> = keys.iter().map(key).collect();
            if let Some(other) = other {
                members.push(Pattern::ZeroOrMore(Box::new(other_keys(keys, other))));
            }
            let members = match members.len() {
                0 => Pattern::Empty,
                1 => group(members),
                _ => Pattern::Interleave(members),
            };
            choice(vec![json("{"), members])
        }
        _ => text(value),
    }
}

fn key(key: &Key) -> Pattern {
    optional(named(&key.name, &key.value), key.is_required)
}

fn other_keys(keys: &[Key], value: &Value) -> Pattern {
    let key = Pattern::Attribute("key".into(), String::new(), Box::new(Pattern::Text));
    let entry = group(vec![key, content(value)]);
    let entry = Pattern::Element("entry".into(), String::new(), Box::new(entry));
    let mut taken = vec!["entry".to_owned()];
    taken.extend(keys.iter().map(|key| key.name.clone()));
    let other = Pattern::OtherElement(taken, Box::new(content(value)));
    choice(vec![entry, other])
}

fn named(name: &str, value: &Value) -> Pattern {
    Pattern::Element(name.into(), String::new(), Box::new(content(value)))
}

/// Returns the pattern of text that represents a value.
fn text(value: &Value) -> Pattern {
    let values = |kind, words: &[String]| {
        let words = words.iter().map(|word| Pattern::Value(kind, word.clone()));
        choice(words.collect())
    };
    match value {
        Value::Text | Value::Json => Pattern::Text,
        Value::Choice(words) => values("string", words),
        Value::Word(words) => values("token", words),
        Value::Boolean => values("token", &["true".into(), "false".into()]),
        Value::Integer(range) => Pattern::Data("long", facets(*range)),
        Value::Number(range) => Pattern::Data("double", number_facets(*range)),
        Value::List(_) => json("["),
        Value::Object { .. } => json("{"),
    }
}

/// JSON text, recognised by its first and last character.
fn json(open: &str) -> Pattern {
    let pattern = match open {
        "[" => r"\s*\[[\s\S]*\]\s*",
        _ => r"\s*\{[\s\S]*\}\s*",
    };
    Pattern::Data("string", vec![("pattern", pattern.into())])
}

/// Returns the bounds of a number as facets.
pub(super) fn facets(range: Range) -> Vec<(&'static str, String)> {
    let min = range.min.map(|min| ("minInclusive", min.to_string()));
    let max = range.max.map(|max| ("maxInclusive", max.to_string()));
    min.into_iter().chain(max).collect()
}

/// Like [`facets`]; without bounds it excludes the names of infinite values.
pub(super) fn number_facets(range: Range) -> Vec<(&'static str, String)> {
    let mut facets = facets(range);
    if facets.len() < 2 {
        facets.push(("pattern", "[-+.eE0-9]+".into()));
    }
    facets
}

fn optional(pattern: Pattern, is_required: bool) -> Pattern {
    match is_required {
        true => pattern,
        false => Pattern::Optional(Box::new(pattern)),
    }
}

fn group(mut patterns: Vec<Pattern>) -> Pattern {
    match (patterns.len(), patterns.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            patterns.extend(last);
            Pattern::Group(patterns)
        }
    }
}

fn choice(mut patterns: Vec<Pattern>) -> Pattern {
    match (patterns.len(), patterns.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            patterns.extend(last);
            Pattern::Choice(patterns)
        }
    }
}

fn choices(pattern: Pattern) -> Vec<Pattern> {
    match pattern {
        Pattern::Choice(patterns) => patterns,
        other => vec![other],
    }
}
