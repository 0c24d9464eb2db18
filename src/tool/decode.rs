//! Turns raw calls into the JSON arguments of a tool, guided by its schema.
//!
//! The XML form is converted to the JSON form first, so [`serde_json`] decodes exactly what MCP and HTTP
//! send. A value that does not fit is refused with its path, the expected type and the value found.

use serde_json::{Map, Value};

use crate::tool::mismatch::{Mismatch, join, shortened};
use crate::tool::schema::{self, ArgumentSchema, Property};
use crate::tool::spec::{Form, Spec};
use crate::tool::{generic, normalise, scalar, validate};
use karyi_core::call::{RawBody, RawCall, RawElement, RawText};
use karyi_core::error::{Code, Diagnostic, Excerpt};
use karyi_core::limits::EXCERPT_REACH_BYTES;
use karyi_syntax::grammar::LeafKind;

/// Treatment of the text of raw leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMode {
    /// Removes the white space that only lays out the XML.
    Normalised,
    /// Keeps the text as it is.
    Verbatim,
}

/// Converts the element of a call to the tool's JSON arguments.
///
/// # Errors
/// A value that does not fit its type.
pub fn arguments(
    call: &RawCall,
    spec: &Spec,
    schema: &ArgumentSchema,
    texts: TextMode,
) -> Result<Value, Box<Diagnostic>> {
    let (element, schema) = (&call.element, schema.annotated());
    let map = match spec.form {
        Form::Attributes => texts.structured(element, schema, ""),
        Form::Text { parameter, kind } => texts.text(element, schema, parameter, kind),
        Form::Parameters => generic::parameters(element, schema),
    };
    map.map(Value::Object)
        .map_err(|mismatch| diagnostic(&mismatch, element))
}

/// Validates JSON arguments against the schema of their tool and normalises them.
///
/// # Errors
/// A value that does not fit its type.
pub fn json_arguments(
    mut value: Value,
    schema: &ArgumentSchema,
) -> Result<Value, Mismatch<'static>> {
    validate::spread_paths(&mut value, schema.annotated());
    validate::check(&mut value, schema.annotated(), "").map_err(Mismatch::in_json)?;
    Ok(value)
}

/// Returns the source text of a find or replace element when decoding changed it.
#[must_use]
pub fn as_written(text: &RawText) -> Option<&str> {
    let source = text.source.as_deref()?;
    match text.verbatim {
        true => Some(source),
        false => Some(normalise::frame(source).unwrap_or(source)),
    }
}

/// Returns the diagnostic of an invalid argument.
#[must_use]
pub fn mismatch(element: &RawElement, message: String, hint: String) -> Box<Diagnostic> {
    let line = opening_tag(element);
    Box::new(Diagnostic {
        code: Code::BadAttribute,
        position: element.span.start,
        is_in_json: false,
        message,
        hint,
        excerpt: Some(Excerpt {
            caret_start: 0,
            caret_len: line.chars().count(),
            line,
        }),
    })
}

fn diagnostic(found: &Mismatch<'_>, element: &RawElement) -> Box<Diagnostic> {
    let tool = &element.name;
    let types = format!("see `karyi tools {tool}` for the arguments and their types");
    let hint = match &found.hint {
        Some(hint) => format!("{}; {types}", hint.replace(['\n', '\r'], " ")),
        None => types,
    };
    let message = found.message(tool);
    let diagnostic = mismatch(found.element.unwrap_or(element), message, hint);
    match found.is_in_json {
        true => Box::new(Diagnostic {
            code: Code::BadJson,
            ..*diagnostic
        }),
        false => diagnostic,
    }
}

/// Returns the opening tag of an element, shortened. The source is no longer available here.
fn opening_tag(element: &RawElement) -> String {
    const MOST_CHARS: usize = 60;
    let mut line = format!("<{}", shortened(&element.name));
    for attribute in &element.attributes {
        if line.len() > EXCERPT_REACH_BYTES {
            line.push_str(" …");
            break;
        }
        let value = attribute.value.chars().filter(|c| !c.is_control());
        let value: String = value.take(MOST_CHARS).collect();
        line.push_str(&format!(" {}=\"{value}\"", shortened(&attribute.name)));
    }
    line.push('>');
    line
}

type DecodeResult<'e, T> = Result<T, Mismatch<'e>>;

impl TextMode {
    /// Reads an element whose text is one parameter.
    fn text<'e>(
        self,
        element: &'e RawElement,
        schema: &Value,
        parameter: &str,
        kind: LeafKind,
    ) -> DecodeResult<'e, Map<String, Value>> {
        let mut map = attributes(element, schema, "")?;
        let text = match &element.body {
            RawBody::Text(text) => self.leaf(text, kind),
            RawBody::Empty | RawBody::Elements(_) => String::new(),
        };
        map.insert(parameter.into(), Value::String(text));
        Ok(map)
    }

    /// Reads an element whose scalars are attributes and whose lists are children.
    fn structured<'e>(
        self,
        element: &'e RawElement,
        schema: &Value,
        path: &str,
    ) -> DecodeResult<'e, Map<String, Value>> {
        let mut map = attributes(element, schema, path)?;
        let children = match &element.body {
            RawBody::Elements(children) => children.as_slice(),
            RawBody::Empty | RawBody::Text(_) => &[],
        };
        for property in schema::properties(schema) {
            if let Some(name) = property.annotation("element") {
                let list = self.child_list(children, name, &property, path)?;
                if property.is_required || !list.is_empty() {
                    map.insert(property.name.into(), Value::Array(list));
                }
            } else if let Some(names) = property.group() {
                let list = self.group_list(children, &names, &property, path)?;
                map.insert(property.name.into(), Value::Array(list));
            } else if property.annotation("child").is_some() {
                let mut texts = children.iter().filter(|child| child.name == property.name);
                if let Some(child) = texts.next() {
                    let text = self.child_text(child);
                    map.insert(property.name.into(), Value::String(text));
                }
                if texts.next().is_some() {
                    let path = join(path, property.name);
                    return Err(Mismatch::new(&path, "one element", "several").at(element));
                }
            }
        }
        Ok(map)
    }

    fn child_list<'e>(
        self,
        children: &'e [RawElement],
        name: &str,
        property: &Property<'_>,
        path: &str,
    ) -> DecodeResult<'e, Vec<Value>> {
        let item = schema::items(property.schema);
        let matching = children.iter().filter(|child| child.name == name);
        let read = |(i, child)| {
            let path = join(path, &format!("{}[{i}]", property.name));
            self.structured(child, item, &path).map(Value::Object)
        };
        matching.enumerate().map(read).collect()
    }

    fn group_list<'e>(
        self,
        children: &'e [RawElement],
        names: &[&str],
        property: &Property<'_>,
        path: &str,
    ) -> DecodeResult<'e, Vec<Value>> {
        let item = schema::items(property.schema);
        let is_member = |child: &&RawElement| names.contains(&child.name.as_str());
        let members: Vec<&RawElement> = children.iter().filter(is_member).collect();
        let read = |(i, group): (usize, &[&'e RawElement])| {
            let path = join(path, &format!("{}[{i}]", property.name));
            self.group_item(group, item, &path)
        };
        members
            .chunks(names.len().max(1))
            .enumerate()
            .map(read)
            .collect()
    }

    fn group_item<'e>(
        self,
        group: &[&'e RawElement],
        item: &Value,
        path: &str,
    ) -> DecodeResult<'e, Value> {
        let mut map = Map::new();
        for child in group {
            let text = self.child_text(child);
            map.insert(child.name.to_string(), Value::String(text));
            map.extend(attributes(child, item, path)?);
        }
        Ok(Value::Object(map))
    }

    fn leaf(self, text: &RawText, kind: LeafKind) -> String {
        match (kind, self) {
            (LeafKind::Script, Self::Normalised) if !text.verbatim => normalise::script(&text.text),
            (LeafKind::Escaped, Self::Normalised) => normalise::typed(text),
            (LeafKind::Word(_), _) => text.text.trim().to_lowercase(),
            (LeafKind::Script | LeafKind::Text | LeafKind::Escaped, _) => text.text.clone(),
        }
    }

    fn child_text(self, child: &RawElement) -> String {
        match &child.body {
            RawBody::Text(text) => self.framed(text),
            RawBody::Empty | RawBody::Elements(_) => String::new(),
        }
    }

    fn framed(self, text: &RawText) -> String {
        match self {
            Self::Normalised => normalise::framed(text).0.to_owned(),
            Self::Verbatim => text.text.clone(),
        }
    }
}

fn attributes<'e>(
    element: &'e RawElement,
    schema: &Value,
    path: &str,
) -> DecodeResult<'e, Map<String, Value>> {
    let mut map = Map::new();
    for attribute in &element.attributes {
        let properties = schema.get("properties");
        let Some(known) = properties.and_then(|map| map.get(attribute.name.as_str())) else {
            continue;
        };
        let path = join(path, &attribute.name);
        let value = scalar::attribute(&attribute.value, known, &path);
        map.insert(
            attribute.name.to_string(),
            value.map_err(|mismatch| mismatch.at(element))?,
        );
    }
    Ok(map)
}
