//! MCP listing of a tool: title, description, schemas and annotations.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::render::wire;
use crate::tool::registry::Entry;
use crate::tool::service::Hints;
use crate::tool::spec::Family;
use crate::tools::Call;

/// Returns the listing of a tool.
#[must_use]
pub fn tool(entry: &Entry<Call>) -> Tool {
    let spec = &entry.spec;
    let description = format!("{}. {}", spec.summary, spec.details);
    Tool::new(spec.name, description, object(entry.schema.of_input()))
        .with_title(entry.title.clone())
        .with_raw_output_schema(Arc::new(output(entry)))
        .with_annotations(annotations(entry.service.hints))
}

/// Returns the schema of results: names and types. Descriptions are in `karyi tools`; here every client would
/// send them to its model with each request. No field is required, since errors have others.
fn output(entry: &Entry<Call>) -> JsonObject {
    let own = entry.output_schema.as_ref();
    let own = own.map_or_else(|| json!({"type": "object"}), |schema| schema.published());
    let mut schema = match entry.spec.family {
        Family::Core | Family::Assistant | Family::Supervisor => {
            Value::Object(wire::result_schema(object(own)))
        }
        Family::Site => own,
    };
    shorten(&mut schema);
    object(schema)
}

/// Leaves the names and types of the fields, and of the items of lists.
fn shorten(schema: &mut Value) {
    let Value::Object(map) = schema else {
        return;
    };
    map.retain(|key, _| key == "type" || key == "properties");
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for field in properties.values_mut() {
            let kind = |schema: &Value| schema.get("type").map(|kind| json!({"type": kind}));
            let items = field.get("items").and_then(kind);
            *field = kind(field).unwrap_or_else(|| json!({}));
            if let Some((items, field)) = items.zip(field.as_object_mut()) {
                field.insert("items".into(), items);
            }
        }
    }
}

fn annotations(hints: Hints) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(hints.is_read_only)
        .destructive(hints.is_destructive)
        .idempotent(hints.is_idempotent)
        .open_world(hints.is_open_world)
}

/// Returns a schema as a map; every schema of arguments or results is an object.
fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}
