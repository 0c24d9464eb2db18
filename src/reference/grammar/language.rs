//! One description of the language of blocks, from which every notation is printed.
//!
//! The structure (elements, attributes, required parts) comes from the parser's own rules; types and descriptions
//! come from the decoder's schemas. Nothing about a tool is decided here. `grammar/README.md` lists what the
//! description leaves out.

use serde_json::Value as Json;

use crate::tool::registry::{Entry, Registry};
use crate::tool::schema::{self, Property};
use crate::tool::spec::Form;
use karyi_syntax::grammar::{ContentRule, ElementRule, LeafKind, ParameterRule};

/// The content of a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Language {
    /// Attributes of `<tools>`.
    pub(super) block: Vec<Attribute>,
    /// The tools, in documentation order.
    pub(super) tools: Vec<Element>,
}

/// One element at one place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element {
    /// Its name.
    pub(super) name: String,
    /// Names of the path to it, starting with `tool`: distinguishes elements of the same name.
    pub(super) path: Vec<String>,
    /// Purpose.
    pub(super) about: String,
    /// Its attributes, in documentation order.
    pub(super) attributes: Vec<Attribute>,
    /// Content.
    pub(super) content: Content,
}

/// One attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    /// Its name.
    pub(super) name: String,
    /// Purpose.
    pub(super) about: String,
    /// Allowed values.
    pub(super) value: Value,
    /// True when it is required.
    pub(super) is_required: bool,
}

/// Content of an element.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// Text.
    Text {
        /// Allowed texts.
        value: Value,
        /// True when backslash escapes are decoded.
        is_escaped: bool,
    },
    /// One of the groups, repeated; a group is a fixed sequence of elements.
    Groups {
        /// The groups to choose from.
        groups: Vec<Vec<Element>>,
        /// True when at least one group is required.
        is_required: bool,
    },
    /// Arguments, each an attribute or a child element, in any order.
    Parameters(Vec<Parameter>),
}

/// One parameter of a generic tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    /// Name of the attribute or the child element.
    pub(super) name: String,
    /// Purpose.
    pub(super) about: String,
    /// Allowed values.
    pub(super) value: Value,
    /// True when it is usually a child element with verbatim text.
    pub(super) is_raw: bool,
    /// True when it is required.
    pub(super) is_required: bool,
}

/// Allowed values of a type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Any text.
    Text,
    /// One of these exact texts.
    Choice(Vec<String>),
    /// One of these words; white space around it and case are ignored.
    Word(Vec<String>),
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer(Range),
    /// A number.
    Number(Range),
    /// Any JSON value as text.
    Json,
    /// `<item>` children or JSON text.
    List(Box<Value>),
    /// One child per key, or JSON text.
    Object {
        /// The named keys.
        keys: Vec<Key>,
        /// Values of other keys, written `<entry key="...">` when the key is no XML name.
        other: Option<Box<Value>>,
    },
}

/// Inclusive bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    /// The least.
    pub(super) min: Option<i64>,
    /// The most.
    pub(super) max: Option<i64>,
}

/// One named key of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    /// Its name.
    pub(super) name: String,
    /// Allowed values.
    pub(super) value: Value,
    /// True when it is required.
    pub(super) is_required: bool,
}

impl Language {
    /// Describes the blocks that the tools of a registry allow.
    pub(super) fn of<C>(registry: &Registry<C>) -> Self {
        let rules = registry.grammar().tools;
        let tools = registry.entries().iter().zip(&rules);
        Self {
            block: block_attributes(),
            tools: tools.map(|(entry, rule)| tool(entry, rule)).collect(),
        }
    }
}

impl Element {
    /// Returns the path as one word.
    pub(super) fn label(&self, separator: &str) -> String {
        self.path.join(separator)
    }
}

impl Value {
    /// Returns true when text alone can represent every value.
    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Object { .. })
    }
}

/// Returns the attributes of `<tools>`; a test compares them with the parser.
fn block_attributes() -> Vec<Attribute> {
    let choice = |name: &str, about: &str, words: [&str; 2]| Attribute {
        name: name.into(),
        about: about.into(),
        value: Value::Choice(words.map(String::from).to_vec()),
        is_required: false,
    };
    vec![
        choice(
            "order",
            "Whether calls that cannot observe each other may run at the same time.",
            ["auto", "sequential"],
        ),
        choice(
            "on_error",
            "What becomes of the calls after a failed one.",
            ["continue", "stop"],
        ),
        choice(
            "xml:space",
            "Whether white space around texts is layout or counts.",
            ["default", "preserve"],
        ),
    ]
}

fn id() -> Attribute {
    Attribute {
        name: "id".into(),
        about: "Name of the call in the report, unique in the message; its number when absent."
            .into(),
        value: Value::Text,
        is_required: false,
    }
}

fn tool<C>(entry: &Entry<C>, rule: &ElementRule) -> Element {
    let text = match entry.spec.form {
        Form::Text { parameter, .. } => Some(parameter),
        Form::Attributes | Form::Parameters => None,
    };
    let place = Place {
        path: vec!["tool".into()],
        schema: entry.schema.annotated(),
        about: entry.spec.summary.into(),
        text,
    };
    let mut element = element(rule, &place);
    element.attributes.insert(0, id());
    element
}

/// Source of an element's description in the schema.
struct Place<'a> {
    /// Path of the parent element.
    path: Vec<String>,
    /// Schema of the object that the element represents.
    schema: &'a Json,
    /// Purpose of the element.
    about: String,
    /// Property that is the element's text.
    text: Option<&'a str>,
}

fn element(rule: &ElementRule, place: &Place<'_>) -> Element {
    let mut path = place.path.clone();
    path.push(rule.name.clone());
    let is_parameter = |name: &str| match &rule.content {
        ContentRule::Parameters(list) => list.iter().any(|p| p.name == name),
        ContentRule::Empty | ContentRule::Leaf(_) | ContentRule::Children { .. } => false,
    };
    let attributes = rule.attributes.iter().filter(|a| !is_parameter(&a.name));
    let attributes = attributes.map(|a| Attribute {
        name: a.name.clone(),
        about: about(place.schema, &a.name),
        value: value_named(place.schema, &a.name),
        is_required: a.is_required,
    });
    Element {
        name: rule.name.clone(),
        about: place.about.clone(),
        attributes: attributes.collect(),
        content: content(&rule.content, &path, place),
        path,
    }
}

fn content(rule: &ContentRule, path: &[String], place: &Place<'_>) -> Content {
    match rule {
        ContentRule::Empty => Content::Empty,
        ContentRule::Leaf(kind) => leaf(*kind, place),
        ContentRule::Children { groups, min } => Content::Groups {
            groups: groups
                .iter()
                .map(|group| group.iter().map(|e| child(e, path, place.schema)).collect())
                .collect(),
            is_required: *min > 0,
        },
        ContentRule::Parameters(list) => {
            Content::Parameters(list.iter().map(|p| parameter(p, place.schema)).collect())
        }
    }
}

fn leaf(kind: LeafKind, place: &Place<'_>) -> Content {
    let value = place
        .text
        .map_or(Value::Text, |name| value_named(place.schema, name));
    match (kind, value) {
        (LeafKind::Word(_), Value::Choice(words)) => Content::Text {
            value: Value::Word(words),
            is_escaped: false,
        },
        (LeafKind::Escaped, value) => Content::Text {
            value,
            is_escaped: true,
        },
        (LeafKind::Text | LeafKind::Script | LeafKind::Word(_), value) => Content::Text {
            value,
            is_escaped: false,
        },
    }
}

/// Describes a child element by its property.
fn child(rule: &ElementRule, path: &[String], schema: &Json) -> Element {
    let properties = schema::properties(schema);
    let is_element = |p: &&Property<'_>| p.annotation("element") == Some(&rule.name);
    let is_in_group = |p: &&Property<'_>| {
        p.group()
            .is_some_and(|names| names.contains(&rule.name.as_str()))
    };
    let place = match properties.iter().find(is_element) {
        Some(property) => Place {
            path: path.to_vec(),
            schema: schema::items(property.schema),
            about: description(property.schema),
            text: None,
        },
        None => {
            let item = properties
                .iter()
                .find(is_in_group)
                .map_or(&Json::Null, |p| schema::items(p.schema));
            Place {
                path: path.to_vec(),
                schema: item,
                about: about(item, &rule.name),
                text: Some(&rule.name),
            }
        }
    };
    element(rule, &place)
}

fn parameter(rule: &ParameterRule, schema: &Json) -> Parameter {
    Parameter {
        name: rule.name.clone(),
        about: about(schema, &rule.name),
        value: value_named(schema, &rule.name),
        is_raw: rule.is_raw,
        is_required: rule.is_required,
    }
}

fn property<'a>(schema: &'a Json, name: &str) -> Option<&'a Json> {
    schema.get("properties")?.get(name)
}

fn about(schema: &Json, name: &str) -> String {
    property(schema, name).map(description).unwrap_or_default()
}

/// Returns the description in a schema, on one line.
fn description(schema: &Json) -> String {
    let text = schema.get("description").and_then(Json::as_str);
    text.unwrap_or_default().replace('\n', " ")
}

fn value_named(schema: &Json, name: &str) -> Value {
    property(schema, name).map_or(Value::Text, value)
}

/// Interprets a schema as the decoder does, testing types in the same order.
fn value(schema: &Json) -> Value {
    let is = |name| schema::has_type(schema, name);
    match () {
        () if is("string") => choice(schema),
        () if is("boolean") => Value::Boolean,
        () if is("integer") => Value::Integer(range(schema)),
        () if is("number") => Value::Number(range(schema)),
        () if is("array") => Value::List(Box::new(value(schema::items(schema)))),
        () if is("object") => object(schema),
        () if schema.get("type").is_some() || schema.get("anyOf").is_some() => Value::Json,
        () => Value::Text,
    }
}

fn choice(schema: &Json) -> Value {
    let words = schema.get("enum").and_then(Json::as_array);
    words.map_or(Value::Text, |words| {
        let words = words.iter().filter_map(Json::as_str);
        Value::Choice(words.map(str::to_owned).collect())
    })
}

fn range(schema: &Json) -> Range {
    let bound = |key| schema.get(key).and_then(Json::as_i64);
    Range {
        min: bound("minimum"),
        max: bound("maximum"),
    }
}

fn object(schema: &Json) -> Value {
    let keys = schema::properties(schema);
    let keys = keys.iter().map(|property| Key {
        name: property.name.into(),
        value: value(property.schema),
        is_required: property.is_required,
    });
    let other = match schema.get("additionalProperties") {
        None | Some(Json::Bool(false)) => None,
        Some(other) => Some(Box::new(value(other))),
    };
    Value::Object {
        keys: keys.collect(),
        other,
    }
}
