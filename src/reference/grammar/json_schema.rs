//! JSON Schema (draft 2020-12): a call as JSON, with one definition per tool for its arguments.

use serde_json::{Map, Value, json};

use crate::tool::registry::{Entry, Registry};

/// Prints the schema of a call; its `$defs` are the schemas of the tools' arguments.
pub(super) fn print<C>(registry: &Registry<C>) -> String {
    let entries = registry.entries();
    let definitions: Map<String, Value> = entries.iter().map(definition).collect();
    let calls: Vec<Value> = entries.iter().map(call).collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A call of a tool",
        "description": "Made by `karyi tools grammar json-schema`. The arguments of one tool are \
            described by the definition of its name.",
        "oneOf": calls,
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

fn definition<C>(entry: &Entry<C>) -> (String, Value) {
    let mut schema = entry.schema.published();
    let summary = json!(format!("{}. {}", entry.spec.summary, entry.spec.details));
    if let Value::Object(map) = &mut schema {
        map.insert("description".into(), summary);
    }
    (entry.spec.name.into(), schema)
}

fn call<C>(entry: &Entry<C>) -> Value {
    let name = entry.spec.name;
    json!({
        "type": "object",
        "properties": {
            "name": { "const": name },
            "arguments": { "$ref": format!("#/$defs/{name}") },
        },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}
