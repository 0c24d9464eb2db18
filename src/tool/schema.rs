//! The JSON Schema of a tool's arguments, and the XML grammar that follows from it.
//!
//! A property may carry the annotation `x-karyi` to say how XML spells it; the annotation never
//! leaves the program. Its keys:
//!
//! | key | meaning |
//! |---|---|
//! | `element` | an array whose items are child elements of this name |
//! | `group` | an array whose items are each this sequence of leaf elements |
//! | `attribute_of` | in an item of a group: an attribute of that leaf element |
//! | `raw` | a text parameter of a generic tool that is a raw leaf |

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::syntax::grammar::{AttributeRule, ContentRule, ElementRule, LeafKind, ParameterRule};
use crate::tool::spec::{Form, Spec};

/// Name of the annotation.
const ANNOTATION: &str = "x-karyi";

/// The schema of a tool's arguments, definitions written out in place.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentSchema(Value);

/// One property of an object.
#[derive(Debug, Clone, Copy)]
pub struct Property<'a> {
    /// Name in JSON.
    pub name: &'a str,
    /// Its own schema.
    pub schema: &'a Value,
    /// Whether it must be given.
    pub is_required: bool,
}

impl<'a> Property<'a> {
    /// Returns the text under `key` of the annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.schema.get(ANNOTATION)?.get(key)?.as_str()
    }

    /// Returns the element names of a `group` annotation.
    #[must_use]
    pub fn group(&self) -> Option<Vec<&'a str>> {
        let names = self.schema.get(ANNOTATION)?.get("group")?.as_array()?;
        Some(names.iter().filter_map(Value::as_str).collect())
    }

    /// Whether the value is a list.
    #[must_use]
    pub fn is_array(&self) -> bool {
        has_type(self.schema, "array")
    }

    fn is_raw(&self) -> bool {
        let raw = self.schema.get(ANNOTATION).and_then(|a| a.get("raw"));
        raw.and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Whether a schema names `expected` as (one of) its types.
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
pub fn properties(schema: &Value) -> Vec<Property<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let Some(map) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    map.iter()
        .map(|(name, schema)| Property {
            name,
            schema,
            is_required: is_required(name),
        })
        .collect()
}

/// Returns the schema of the items of an array.
#[must_use]
pub fn items(schema: &Value) -> &Value {
    schema.get("items").unwrap_or(&Value::Null)
}

impl ArgumentSchema {
    /// Makes the schema of an argument type.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|s| {
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

    /// Returns the schema with its annotations.
    #[must_use]
    pub fn annotated(&self) -> &Value {
        &self.0
    }

    /// Returns the schema as it is published.
    #[must_use]
    pub fn published(&self) -> Value {
        let mut value = self.0.clone();
        walk(&mut value, &mut |map| {
            map.shift_remove(ANNOTATION);
        });
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

/// Makes optional mean absent instead of null and drops number formats and the type's own title.
fn tidy(schema: &mut Value) {
    walk(schema, &mut |map| {
        map.shift_remove("format");
        map.shift_remove("title");
        if map.get("default").is_some_and(Value::is_null) {
            map.shift_remove("default");
        }
        drop_null_type(map);
    });
}

fn drop_null_type(map: &mut Map<String, Value>) {
    if let Some(Value::Array(names)) = map.get_mut("type") {
        names.retain(|name| name != "null");
        if let [only] = names.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
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

/// Calls `change` on every schema object, children first.
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
    }
}

/// An element whose scalars are attributes and whose lists are children.
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
                            "max": {"type": "integer", "minimum": 0}
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
