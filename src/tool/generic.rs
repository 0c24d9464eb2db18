//! Converts the elements and attributes of a generic tool to the JSON its schema describes.
//!
//! A list is a repeated element, or one element with `<item>` children. An object has one child element
//! per key, or `<entry key="...">` for a key that is no XML name. Any list, object or choice may also be
//! one JSON text. A single element whose text is a JSON list is the whole list; an empty one is the
//! empty list.

use serde_json::{Map, Value};

use crate::tool::mismatch::{Mismatch, join, shortened};
use crate::tool::scalar;
use crate::tool::schema;
use crate::tool::validate;
use karyi_core::call::{RawBody, RawElement};

type DecodeResult<'e, T> = Result<T, Mismatch<'e>>;

/// Reads the parameters of a tool.
///
/// # Errors
/// The first value that does not fit.
pub fn parameters<'e>(
    element: &'e RawElement,
    schema: &Value,
) -> DecodeResult<'e, Map<String, Value>> {
    let mut map = Map::new();
    for attribute in &element.attributes {
        let name = &attribute.name;
        let value = match schema::key(schema, name) {
            Some(known) => scalar::attribute(&attribute.value, known, name)
                .map_err(|mismatch| mismatch.with_words(misfit(known))),
            None => Err(validate::unknown_key(
                name,
                &Value::from(attribute.value.as_str()),
                schema,
            )),
        };
        map.insert(
            name.to_string(),
            value.map_err(|mismatch| mismatch.at(element))?,
        );
    }
    for (name, given) in grouped(children(element), |child| &child.name) {
        let first = given.first().copied().unwrap_or(element);
        let known = schema::key(schema, name).ok_or_else(|| {
            validate::unknown_key(name, &Value::from("an element"), schema).at(first)
        })?;
        let read = repeated(&given, known, name).and_then(|mut value| {
            validate::check(&mut value, known, name).map_err(|mismatch| mismatch.at(first))?;
            Ok(value)
        });
        let value = read.map_err(|mismatch| mismatch.with_words(misfit(known)))?;
        if map.insert(name.to_owned(), value).is_some() {
            let mismatch = Mismatch::new(name, "given once", "an attribute and an element");
            return Err(mismatch.at(first));
        }
    }
    Ok(map)
}

/// Returns the words in front of the error of a value that does not fit.
fn misfit(schema: &Value) -> Option<&str> {
    schema::annotation(schema, "misfit")
}

/// Returns the object key of an element.
fn key(element: &RawElement) -> &str {
    match element.attribute("key") {
        Some(key) if element.name == "entry" => key,
        _ => &element.name,
    }
}

fn children(element: &RawElement) -> &[RawElement] {
    match &element.body {
        RawBody::Elements(children) => children,
        RawBody::Empty | RawBody::Text(_) => &[],
    }
}

/// Groups elements by key, in order of appearance.
fn grouped<'e>(
    children: &'e [RawElement],
    key: fn(&'e RawElement) -> &'e str,
) -> Vec<(&'e str, Vec<&'e RawElement>)> {
    let mut groups: Vec<(&str, Vec<&RawElement>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for child in children {
        let name = key(child);
        let place = *places.entry(name).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(child),
            None => groups.push((name, vec![child])),
        }
    }
    groups
}

/// Returns the value of all elements with one name. A choice that includes a list takes one element.
fn repeated<'e>(given: &[&'e RawElement], schema: &Value, path: &str) -> DecodeResult<'e, Value> {
    let is_list = schema::has_type(schema, "array");
    match given {
        [one] if !is_list || is_whole_list(one) || schema::is_union(schema) => {
            value(one, schema, path)
        }
        many if is_list => items(many.iter().copied(), schema, path),
        many => {
            let mismatch = Mismatch::new(path, "given once", format!("{} elements", many.len()));
            Err(match many.get(1) {
                Some(second) => mismatch.at(second),
                None => mismatch,
            })
        }
    }
}

fn items<'e>(
    given: impl Iterator<Item = &'e RawElement>,
    list: &Value,
    path: &str,
) -> DecodeResult<'e, Value> {
    let item = |(index, child): (usize, &'e RawElement)| {
        value(
            child,
            schema::item(list, index),
            &format!("{path}[{index}]"),
        )
    };
    let values: DecodeResult<'e, Vec<Value>> = given.enumerate().map(item).collect();
    values.map(Value::Array)
}

/// Returns true when one element is a whole list: nothing, `<item>` children or a JSON list.
fn is_whole_list(element: &RawElement) -> bool {
    match &element.body {
        RawBody::Empty => true,
        RawBody::Text(text) => {
            let text = text.text.trim_start();
            text.is_empty() || text.starts_with('[')
        }
        RawBody::Elements(children) => children.iter().all(|child| child.name == "item"),
    }
}

/// Returns the value of one element.
fn value<'e>(element: &'e RawElement, schema: &Value, path: &str) -> DecodeResult<'e, Value> {
    refuse_attributes(element, path)?;
    let text = match &element.body {
        RawBody::Elements(children) => return structured(element, children, schema, path),
        RawBody::Empty => "",
        RawBody::Text(text) => &text.text,
    };
    scalar::element(text, schema, path).map_err(|mismatch| mismatch.at(element))
}

/// Refuses attributes in a value, which would be lost.
fn refuse_attributes<'e>(element: &'e RawElement, path: &str) -> DecodeResult<'e, ()> {
    let is_key = |name: &str| name == "key" && element.name == "entry";
    match element.attributes.iter().find(|a| !is_key(&a.name)) {
        None => Ok(()),
        Some(attribute) => {
            let name = shortened(&attribute.name);
            let mismatch = Mismatch::text(
                &join(path, &name),
                "an element inside the value, not an attribute",
                &attribute.value,
            );
            let hint = format!("write <{name}>...</{name}> inside <{}>", element.name);
            Err(mismatch.with_hint(hint).at(element))
        }
    }
}

/// Returns the value of child elements.
fn structured<'e>(
    element: &'e RawElement,
    children: &'e [RawElement],
    schema: &Value,
    path: &str,
) -> DecodeResult<'e, Value> {
    if let Some(choices) = schema::alternatives(schema) {
        return chosen(element, children, choices, schema, path);
    }
    let is_list = children.iter().all(|child| child.name == "item");
    if schema::has_type(schema, "array") && (is_list || !schema::is_union(schema)) {
        return list(children, schema, path);
    }
    let is_any = schema::is_any(schema);
    if is_any && is_list {
        return list(children, schema, path);
    }
    if is_any || schema::has_type(schema, "object") || schema.get("properties").is_some() {
        return object(children, schema, path);
    }
    let mismatch = Mismatch::new(path, schema::expected_in_xml(schema), "elements");
    Err(mismatch.at(element))
}

fn list<'e>(children: &'e [RawElement], schema: &Value, path: &str) -> DecodeResult<'e, Value> {
    if let Some(other) = children.iter().find(|child| child.name != "item") {
        let found = format!("<{}>", other.name);
        let mismatch = Mismatch::new(path, "a list of <item> elements", found);
        return Err(mismatch.at(other));
    }
    items(children.iter(), schema, path)
}

fn object<'e>(children: &'e [RawElement], schema: &Value, path: &str) -> DecodeResult<'e, Value> {
    let mut map = Map::new();
    for (key, given) in grouped(children, key) {
        let inside = join(path, key);
        let Some(first) = given.first() else { continue };
        let known = schema::key(schema, key).ok_or_else(|| {
            let found = Mismatch::new(
                &inside,
                "left out, since there is no such key",
                "an element",
            );
            let unknown = validate::unknown_key(&inside, &Value::Null, schema);
            Mismatch {
                hint: unknown.hint,
                ..found
            }
            .at(first)
        })?;
        map.insert(key.to_owned(), repeated(&given, known, &inside)?);
    }
    Ok(Value::Object(map))
}

/// Returns the first choice the elements fit. When only one accepts elements, its error is reported.
fn chosen<'e>(
    element: &'e RawElement,
    children: &'e [RawElement],
    choices: &[Value],
    schema: &Value,
    path: &str,
) -> DecodeResult<'e, Value> {
    let mut mismatches = Vec::new();
    for choice in choices {
        let read = structured(element, children, choice, path).and_then(|mut value| {
            validate::check(&mut value, choice, path).map_err(|mismatch| mismatch.at(element))?;
            Ok(value)
        });
        match read {
            Ok(value) => return Ok(value),
            Err(mismatch) if mismatch.path != path => mismatches.push(mismatch),
            Err(_) => {}
        }
    }
    match mismatches.pop() {
        Some(only) if mismatches.is_empty() => Err(only),
        _ => Err(Mismatch::new(path, schema::expected_in_xml(schema), "elements").at(element)),
    }
}
