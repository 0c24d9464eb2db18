//! Raw calls to typed arguments, by the schema of the tool.
//!
//! The XML spelling is turned into the JSON spelling first, so that both are one thing: what
//! [`serde_json`] then makes of it is what MCP and HTTP would get. A value that does not fit is
//! refused with its path, the expected type and what was found.

use serde_json::{Map, Value};

use crate::call::{RawBody, RawCall, RawElement, RawText};
use crate::error::{Code, Diagnostic, Excerpt};
use crate::syntax::grammar::LeafKind;
use crate::tool::normalise;
use crate::tool::schema::{self, ArgumentSchema, Property};
use crate::tool::spec::{Form, Spec};

/// Turns the element of a call into the tool's JSON arguments.
///
/// # Errors
/// A value that does not fit its type.
pub fn arguments(
    call: &RawCall,
    spec: &Spec,
    schema: &ArgumentSchema,
) -> Result<Value, Box<Diagnostic>> {
    let decoder = Decoder {
        element: &call.element,
    };
    let schema = schema.annotated();
    let map = match spec.form {
        Form::Attributes => decoder.structured(&call.element, schema, "")?,
        Form::Text { parameter, kind } => decoder.text(schema, parameter, kind)?,
        Form::Parameters => decoder.parameters(&call.element, schema)?,
    };
    Ok(Value::Object(map))
}

/// Makes the diagnostic of an argument that does not fit.
#[must_use]
pub fn misfit(element: &RawElement, message: String, hint: String) -> Box<Diagnostic> {
    let mut line = format!("<{}", element.name);
    for attribute in &element.attributes {
        let value: String = attribute
            .value
            .chars()
            .filter(|c| !c.is_control())
            .take(60)
            .collect();
        line.push_str(&format!(" {}=\"{value}\"", attribute.name));
    }
    line.push('>');
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

/// Reads one call; its own element is where misfits are reported.
struct Decoder<'a> {
    element: &'a RawElement,
}

type Decoded<T> = Result<T, Box<Diagnostic>>;

impl Decoder<'_> {
    fn misfit<T>(&self, path: &str, expected: &str, found: &str) -> Decoded<T> {
        let found: String = found.chars().take(80).collect();
        let name = &self.element.name;
        Err(misfit(
            self.element,
            format!("`{path}` of <{name}> must be {expected}, found {found:?}"),
            format!("see `karyi tools {name}` for the arguments and their types"),
        ))
    }

    /// An element whose text is one parameter.
    fn text(&self, schema: &Value, parameter: &str, kind: LeafKind) -> Decoded<Map<String, Value>> {
        let mut map = self.attributes(self.element, schema, "")?;
        let text = match &self.element.body {
            RawBody::Text(text) => leaf(text, kind),
            RawBody::Empty | RawBody::Elements(_) => String::new(),
        };
        map.insert(parameter.into(), Value::String(text));
        Ok(map)
    }

    /// An element whose scalars are attributes and whose lists are children.
    fn structured(
        &self,
        element: &RawElement,
        schema: &Value,
        path: &str,
    ) -> Decoded<Map<String, Value>> {
        let mut map = self.attributes(element, schema, path)?;
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
            }
        }
        Ok(map)
    }

    fn child_list(
        &self,
        children: &[RawElement],
        name: &str,
        property: &Property<'_>,
        path: &str,
    ) -> Decoded<Vec<Value>> {
        let item = schema::items(property.schema);
        let matching = children.iter().filter(|child| child.name == name);
        matching
            .enumerate()
            .map(|(i, child)| {
                let path = join(path, &format!("{}[{i}]", property.name));
                self.structured(child, item, &path).map(Value::Object)
            })
            .collect()
    }

    fn group_list(
        &self,
        children: &[RawElement],
        names: &[&str],
        property: &Property<'_>,
        path: &str,
    ) -> Decoded<Vec<Value>> {
        let item = schema::items(property.schema);
        let members: Vec<&RawElement> = children
            .iter()
            .filter(|c| names.contains(&c.name.as_str()))
            .collect();
        let groups = members.chunks(names.len().max(1));
        groups
            .enumerate()
            .map(|(i, group)| {
                let path = join(path, &format!("{}[{i}]", property.name));
                self.group_item(group, item, &path)
            })
            .collect()
    }

    fn group_item(&self, group: &[&RawElement], item: &Value, path: &str) -> Decoded<Value> {
        let mut map = Map::new();
        for child in group {
            let text = match &child.body {
                RawBody::Text(text) => framed(text),
                RawBody::Empty | RawBody::Elements(_) => String::new(),
            };
            map.insert(child.name.to_string(), Value::String(text));
            map.extend(self.attributes(child, item, path)?);
        }
        Ok(Value::Object(map))
    }

    fn attributes(
        &self,
        element: &RawElement,
        schema: &Value,
        path: &str,
    ) -> Decoded<Map<String, Value>> {
        let properties = schema::properties(schema);
        let mut map = Map::new();
        for attribute in &element.attributes {
            let Some(property) = properties.iter().find(|p| attribute.name == p.name) else {
                continue;
            };
            let path = join(path, property.name);
            let value = self.scalar(&attribute.value, property.schema, &path)?;
            map.insert(property.name.into(), value);
        }
        Ok(map)
    }

    /// The parameters of a generic tool: attributes or children.
    fn parameters(&self, element: &RawElement, schema: &Value) -> Decoded<Map<String, Value>> {
        let mut map = self.attributes(element, schema, "")?;
        let children = match &element.body {
            RawBody::Elements(children) => children.as_slice(),
            RawBody::Empty | RawBody::Text(_) => &[],
        };
        for property in schema::properties(schema) {
            let given: Vec<&RawElement> = children
                .iter()
                .filter(|c| c.name == property.name)
                .collect();
            if !given.is_empty() {
                let value = self.parameter(&given, &property)?;
                map.insert(property.name.into(), value);
            }
        }
        Ok(map)
    }

    fn parameter(&self, given: &[&RawElement], property: &Property<'_>) -> Decoded<Value> {
        let path = property.name;
        match given {
            [one] if !property.is_array() => self.value(one, property.schema, path),
            [one] if is_whole_list(one) => self.value(one, property.schema, path),
            many if property.is_array() => {
                let item = schema::items(property.schema);
                let values = many.iter().enumerate();
                let values =
                    values.map(|(i, child)| self.value(child, item, &format!("{path}[{i}]")));
                values.collect::<Decoded<Vec<Value>>>().map(Value::Array)
            }
            _ => self.misfit(path, "given once", "the element more than once"),
        }
    }

    /// The value an element spells: text, `<item>` children, `<entry key>` children or one child
    /// per key.
    fn value(&self, element: &RawElement, schema: &Value, path: &str) -> Decoded<Value> {
        match &element.body {
            RawBody::Empty => self.scalar("", schema, path),
            RawBody::Text(text) => self.scalar(&text.text, schema, path),
            RawBody::Elements(children) if schema::has_type(schema, "array") => {
                let item = schema::items(schema);
                let values = children.iter().enumerate();
                let values =
                    values.map(|(i, child)| self.value(child, item, &format!("{path}[{i}]")));
                values.collect::<Decoded<Vec<Value>>>().map(Value::Array)
            }
            RawBody::Elements(children) if schema::has_type(schema, "object") => {
                self.object(children, schema, path)
            }
            RawBody::Elements(_) => self.misfit(path, &expected_type(schema), "elements"),
        }
    }

    fn object(&self, children: &[RawElement], schema: &Value, path: &str) -> Decoded<Value> {
        let properties = schema::properties(schema);
        let other = schema.get("additionalProperties").unwrap_or(&Value::Null);
        let mut map = Map::new();
        for child in children {
            let key = match child.attribute("key") {
                Some(key) if child.name == "entry" => key,
                _ => &child.name,
            };
            let declared = properties.iter().find(|p| p.name == key).map(|p| p.schema);
            let path = join(path, key);
            let value = self.value(child, declared.unwrap_or(other), &path)?;
            if map.insert(key.to_owned(), value).is_some() {
                return self.misfit(&path, "given once", "the key twice");
            }
        }
        Ok(Value::Object(map))
    }

    /// Text to a value of the schema's type.
    fn scalar(&self, text: &str, schema: &Value, path: &str) -> Decoded<Value> {
        let is = |name| schema::has_type(schema, name);
        if is("string") {
            return self.choice(text, schema, path);
        }
        let trimmed = text.trim();
        let value = if is("boolean") {
            trimmed.parse().ok().map(Value::Bool)
        } else if is("integer") {
            trimmed
                .parse::<i64>()
                .ok()
                .filter(|number| is_in_range(*number, schema))
                .map(Value::from)
        } else if is("number") {
            number(trimmed)
        } else if schema.get("type").is_some() || schema.get("anyOf").is_some() {
            serde_json::from_str(trimmed).ok()
        } else {
            Some(Value::String(text.to_owned()))
        };
        match value {
            Some(value) => Ok(value),
            None => self.misfit(path, &expected_type(schema), text),
        }
    }

    fn choice(&self, text: &str, schema: &Value, path: &str) -> Decoded<Value> {
        let choices = schema.get("enum").and_then(Value::as_array);
        if choices.is_none_or(|list| list.iter().any(|c| c == text)) {
            return Ok(Value::String(text.to_owned()));
        }
        self.misfit(path, &expected_type(schema), text)
    }
}

fn is_in_range(number: i64, schema: &Value) -> bool {
    let bound = |key| schema.get(key).and_then(Value::as_i64);
    bound("minimum").is_none_or(|least| number >= least)
        && bound("maximum").is_none_or(|most| number <= most)
}

/// A finite number; whole ones stay whole.
fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let value: f64 = text.parse().ok()?;
    serde_json::Number::from_f64(value).map(Value::Number)
}

/// Whether one element stands for a whole list: `<item>` children or JSON text.
fn is_whole_list(element: &RawElement) -> bool {
    match &element.body {
        RawBody::Empty => false,
        RawBody::Text(text) => text.text.trim_start().starts_with('['),
        RawBody::Elements(children) => children.iter().all(|child| child.name == "item"),
    }
}

fn leaf(text: &RawText, kind: LeafKind) -> String {
    match kind {
        LeafKind::Script if !text.verbatim => normalise::script(&text.text),
        LeafKind::Word(_) => text.text.trim().to_lowercase(),
        LeafKind::Script | LeafKind::Text | LeafKind::Escaped => text.text.clone(),
    }
}

fn framed(text: &RawText) -> String {
    if text.verbatim {
        return text.text.clone();
    }
    normalise::framed(&text.text).to_owned()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}

fn expected_type(schema: &Value) -> String {
    if let Some(Value::Array(choices)) = schema.get("enum") {
        let words: Vec<String> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", words.join(", "));
    }
    match schema.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "boolean" => "true or false".into(),
            "integer" if schema.get("minimum").and_then(Value::as_i64) == Some(0) => {
                "a whole number, 0 or more".into()
            }
            "integer" => "a whole number".into(),
            "number" => "a number".into(),
            "array" => "a list (child elements or JSON text)".into(),
            "object" => "an object (child elements or JSON text)".into(),
            other => format!("a {other}"),
        },
        _ => "a JSON value".into(),
    }
}
