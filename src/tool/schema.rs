//! The JSON Schema of a tool's arguments and the XML grammar derived from it.
//!
//! The internal annotation `x-karyi` of a property defines its XML form. Its keys:
//!
//! | key | meaning |
//! |---|---|
//! | `element` | an array whose items are child elements of this name |
//! | `group` | an array whose items are each this sequence of leaf elements |
//! | `attribute_of` | in an item of a group: an attribute of that leaf element |
//! | `raw` | a text parameter of a generic tool that is a raw leaf |
//! | `missing`, `misfit` | words in front of the error that a parameter is missing, or does not fit |

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::tool::spec::{Form, Spec};
use karyi_syntax::grammar::{AttributeRule, ContentRule, ElementRule, LeafKind, ParameterRule};

/// Name of the annotation.
const ANNOTATION: &str = "x-karyi";

/// The schema of a tool's arguments, with definitions inlined.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentSchema(Value);

/// One property of an object.
#[derive(Debug, Clone, Copy)]
pub struct Property<'a> {
    /// Name in JSON.
    pub name: &'a str,
    /// Schema of the value.
    pub schema: &'a Value,
    /// True when the property must be given.
    pub is_required: bool,
}

impl<'a> Property<'a> {
    /// Returns the annotation's text under `key`.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        annotation(self.schema, key)
    }

    /// Returns the element names of a `group` annotation.
    #[must_use]
    pub fn group(&self) -> Option<Vec<&'a str>> {
        let names = self.schema.get(ANNOTATION)?.get("group")?.as_array()?;
        Some(names.iter().filter_map(Value::as_str).collect())
    }

    /// Returns true when the value is a list.
    #[must_use]
    pub fn is_array(&self) -> bool {
        has_type(self.schema, "array")
    }

    /// Returns true when the value is a raw leaf.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        let raw = self.schema.get(ANNOTATION).and_then(|a| a.get("raw"));
        raw.and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Returns the text under `key` in the annotation of a property's schema.
#[must_use]
pub fn annotation<'s>(schema: &'s Value, key: &str) -> Option<&'s str> {
    schema.get(ANNOTATION)?.get(key)?.as_str()
}

/// Returns true when `expected` is one of the schema's types.
#[must_use]
pub fn has_type(schema: &Value, expected: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == expected,
        Some(Value::Array(names)) => names.iter().any(|name| name == expected),
        _ => false,
    }
}

/// Returns the properties of an object schema, in declared order.
#[must_use]
pub fn properties(object: &Value) -> Vec<Property<'_>> {
    let Some(map) = object.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    map.iter()
        .map(|(name, schema)| Property {
            name,
            schema,
            is_required: is_required(object, name),
        })
        .collect()
}

/// Returns true when an object must have a property.
#[must_use]
pub fn is_required(object: &Value, name: &str) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the schema of the items of an array.
#[must_use]
pub fn items(schema: &Value) -> &Value {
    schema.get("items").unwrap_or(&Value::Null)
}

/// Returns the schema of one item of an array.
#[must_use]
pub fn item(schema: &Value, index: usize) -> &Value {
    let first = schema.get("prefixItems").and_then(|list| list.get(index));
    first.unwrap_or_else(|| items(schema))
}

/// Returns the alternatives of a choice.
#[must_use]
pub fn alternatives(schema: &Value) -> Option<&[Value]> {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    // A choice with properties of its own is an object assembled from parts; only the argument type can
    // check it.
    choices
        .as_array()
        .filter(|_| schema.get("properties").is_none())
        .map(Vec::as_slice)
}

/// Returns true when a schema does not restrict the kind of its values.
#[must_use]
pub fn is_any(schema: &Value) -> bool {
    const TELLING: [&str; 6] = ["type", "enum", "const", "anyOf", "oneOf", "properties"];
    TELLING.iter().all(|key| schema.get(key).is_none())
}

/// Returns true when a schema accepts values of several kinds.
#[must_use]
pub fn is_union(schema: &Value) -> bool {
    let has_types = schema.get("type").is_some_and(Value::is_array);
    has_types || alternatives(schema).is_some() || is_any(schema)
}

/// Returns the schema of an object's value under `key`, or `None` when the key does not exist.
#[must_use]
pub fn key<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(Value::as_object);
    if let Some(found) = named.and_then(|map| map.get(key)) {
        return Some(found);
    }
    others(schema)
}

/// Returns the schema of values under keys that an object does not name, or `None` when no other keys are
/// allowed.
#[must_use]
pub fn others(schema: &Value) -> Option<&Value> {
    let named = schema.get("properties").and_then(Value::as_object);
    const OPEN: [&str; 4] = ["anyOf", "oneOf", "allOf", "patternProperties"];
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => None,
        Some(other) => Some(other),
        None if named.is_none() || OPEN.iter().any(|key| schema.get(key).is_some()) => {
            Some(&Value::Null)
        }
        None => None,
    }
}

/// Most literal values that an error names.
const MAX_WORDS: usize = 8;

/// Returns a description of the values a schema accepts.
#[must_use]
pub fn expected(schema: &Value) -> String {
    described(schema, "")
}

/// Returns a description of the elements or texts a schema accepts.
#[must_use]
pub fn expected_in_xml(schema: &Value) -> String {
    described(schema, " (child elements or JSON text)")
}

/// Returns a description; `forms` says how lists and objects are written.
fn described(schema: &Value, forms: &str) -> String {
    let words = match words(schema) {
        Some(words) => words,
        None => return kinds(schema, forms),
    };
    match words.as_slice() {
        [] => "left out".into(),
        [only] => only.clone(),
        [first @ .., _] if first.len() >= MAX_WORDS => {
            let shown = first.iter().take(MAX_WORDS).cloned();
            let shown: Vec<String> = shown.collect();
            format!("one of {} words such as {}", words.len(), shown.join(", "))
        }
        several => format!("one of {}", several.join(", ")),
    }
}

/// Returns the literal values of an enumeration.
fn words(schema: &Value) -> Option<Vec<String>> {
    if let Some(only) = schema.get("const") {
        return Some(vec![only.to_string()]);
    }
    if let Some(Value::Array(choices)) = schema.get("enum") {
        return Some(choices.iter().map(Value::to_string).collect());
    }
    let choices = alternatives(schema)?.iter().map(words);
    Some(choices.collect::<Option<Vec<_>>>()?.concat())
}

fn kinds(schema: &Value, forms: &str) -> String {
    if let Some(choices) = alternatives(schema) {
        let kinds = choices.iter().map(|choice| described(choice, forms));
        let mut kinds: Vec<String> = kinds.collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(name)) => kind(name, schema, forms),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            let kinds: Vec<String> = names.map(|name| kind(name, schema, forms)).collect();
            kinds.join(" or ")
        }
        _ => "a value".into(),
    }
}

fn kind(name: &str, schema: &Value, forms: &str) -> String {
    let bound = |key: &str| schema.get(key).and_then(Value::as_number);
    let range = match (bound("minimum"), bound("maximum")) {
        (None, None) => String::new(),
        (Some(least), None) => format!(", {least} or more"),
        (None, Some(most)) => format!(", {most} or less"),
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
    };
    match name {
        "boolean" => "true or false".into(),
        "integer" => format!("a whole number{range}"),
        "number" => format!("a number{range}"),
        "string" => "text".into(),
        "array" => format!("a list{forms}"),
        "object" => format!("an object{forms}"),
        other => other.to_owned(),
    }
}

impl ArgumentSchema {
    /// Returns the schema of an argument type.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        Self::by::<T>(SchemaSettings::draft2020_12())
    }

    /// Returns the schema of a result; fields that may be omitted are not required.
    #[must_use]
    pub fn of_result<T: JsonSchema>() -> Self {
        Self::by::<T>(SchemaSettings::draft2020_12().for_serialize())
    }

    fn by<T: JsonSchema>(settings: SchemaSettings) -> Self {
        let settings = settings.with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        });
        let mut value = settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value();
        tidy(&mut value);
        Self(value)
    }

    /// Returns the schema without the optional arguments that match.
    #[must_use]
    pub fn without(&self, is_left_out: impl Fn(&Property<'_>) -> bool) -> Self {
        let mut value = self.0.clone();
        let left_out = properties(&self.0).into_iter().filter(is_left_out);
        if let Some(Value::Object(map)) = value.get_mut("properties") {
            left_out.for_each(|property| drop(map.shift_remove(property.name)));
        }
        Self(value)
    }

    /// Returns the schema with its annotations.
    #[must_use]
    pub fn annotated(&self) -> &Value {
        &self.0
    }

    /// Returns the schema without annotations, for publication.
    #[must_use]
    pub fn published(&self) -> Value {
        let mut value = self.0.clone();
        walk(&mut value, &mut |map| {
            map.shift_remove(ANNOTATION);
        });
        value
    }

    /// Returns the schema of arguments for publication, without a description of the whole: `required` is present
    /// even when it is empty.
    #[must_use]
    pub fn of_input(&self) -> Value {
        let mut value = self.published();
        if let Value::Object(map) = &mut value {
            map.shift_remove("description");
            map.entry("required")
                .or_insert_with(|| Value::Array(Vec::new()));
        }
        value
    }

    /// Returns the XML grammar of a tool with these arguments.
    #[must_use]
    pub fn element_rule(&self, spec: &Spec) -> ElementRule {
        match spec.form {
            Form::Attributes => element(spec.name, &self.0),
            Form::Text { parameter, kind } => text_element(spec.name, &self.0, parameter, kind),
            Form::Parameters => parameter_element(spec.name, &self.0),
        }
    }
}

/// Makes optional values absent instead of null; removes number formats and the type's title.
fn tidy(schema: &mut Value) {
    walk(schema, &mut |map| {
        if let Some(Value::String(format)) = map.shift_remove("format") {
            bound(map, &format);
        }
        map.shift_remove("title");
        if map.get("default").is_some_and(Value::is_null) {
            map.shift_remove("default");
        }
        drop_null_type(map);
    });
}

/// Replaces a number format by its range, so that a violation is reported with its path.
fn bound(map: &mut Map<String, Value>, format: &str) {
    let (least, most) = match format {
        "int32" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        "uint32" => (0, i64::from(u32::MAX)),
        _ => return,
    };
    map.entry("minimum").or_insert(least.into());
    map.entry("maximum").or_insert(most.into());
}

fn drop_null_type(map: &mut Map<String, Value>) {
    if let Some(Value::Array(names)) = map.get_mut("type") {
        names.retain(|name| name != "null");
        if let [only] = names.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|t| t == "null");
    let Some(Value::Array(choices)) = map.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| !is_null(choice));
    if let [only] = choices.as_mut_slice() {
        let only = only.take();
        map.shift_remove("anyOf");
        if let Value::Object(only) = only {
            map.extend(only);
        }
    }
}

/// Applies `change` to every schema object, children first.
fn walk(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        properties
                            .values_mut()
                            .for_each(|value| walk(value, change));
                    }
                    (_, value) => walk(value, change),
                }
            }
            change(map);
        }
        Value::Array(list) => list.iter_mut().for_each(|value| walk(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn attribute(property: &Property<'_>) -> AttributeRule {
    AttributeRule {
        name: property.name.into(),
        is_required: property.is_required,
        missing: property.annotation("missing").map(str::to_owned),
    }
}

/// Returns the rule of an element whose scalars are attributes and whose lists are children.
fn element(name: &str, schema: &Value) -> ElementRule {
    let mut rule = ElementRule {
        name: name.into(),
        attributes: Vec::new(),
        content: ContentRule::Empty,
    };
    let mut groups = Vec::new();
    let mut min = 0;
    for property in properties(schema) {
        if let Some(child) = property.annotation("element") {
            groups.push(vec![element(child, items(property.schema))]);
            min = 1;
        } else if let Some(names) = property.group() {
            groups.push(group(&names, items(property.schema)));
        } else if property.annotation("child").is_some() {
            groups.push(group(&[property.name], &Value::Null));
        } else {
            rule.attributes.push(attribute(&property));
        }
    }
    if !groups.is_empty() {
        rule.content = ContentRule::Children { groups, min };
    }
    rule
}

fn group(names: &[&str], item: &Value) -> Vec<ElementRule> {
    let leaf = |name: &&str| ElementRule {
        name: (*name).into(),
        attributes: properties(item)
            .iter()
            .filter(|p| p.annotation("attribute_of") == Some(name))
            .map(attribute)
            .collect(),
        content: ContentRule::Leaf(LeafKind::Text),
    };
    names.iter().map(leaf).collect()
}

fn text_element(name: &str, schema: &Value, parameter: &str, kind: LeafKind) -> ElementRule {
    let others = properties(schema)
        .into_iter()
        .filter(|p| p.name != parameter);
    ElementRule {
        name: name.into(),
        attributes: others.map(|p| attribute(&p)).collect(),
        content: ContentRule::Leaf(kind),
    }
}

fn parameter_element(name: &str, schema: &Value) -> ElementRule {
    let properties = properties(schema);
    let parameter = |p: &Property<'_>| ParameterRule {
        name: p.name.into(),
        is_raw: p.is_raw(),
        is_repeated: p.is_array(),
        is_required: p.is_required,
        missing: p.annotation("missing").map(str::to_owned),
    };
    ElementRule {
        name: name.into(),
        attributes: properties.iter().map(attribute).collect(),
        content: ContentRule::Parameters(properties.iter().map(parameter).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// A file.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Sample {
        /// Seconds.
        timeout: Option<f64>,
        #[schemars(extend("x-karyi" = {"element": "file"}))]
        files: Vec<Item>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Item {
        src: String,
        max: Option<u32>,
    }

    #[test]
    fn optional_means_absent_and_annotations_stay_inside() {
        let schema = ArgumentSchema::of::<Sample>().published();
        let expected = json!({
            "description": "A file.",
            "type": "object",
            "properties": {
                "timeout": {"description": "Seconds.", "type": "number"},
                "files": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "src": {"type": "string"},
                            "max": {"type": "integer", "minimum": 0, "maximum": 4294967295_u32}
                        },
                        "required": ["src"]
                    }
                }
            },
            "required": ["files"]
        });
        assert_eq!(schema, expected);
    }
}
