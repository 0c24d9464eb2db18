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

/// Returns the schema of successful results.
fn output(entry: &Entry<Call>) -> JsonObject {
    let own = entry.output_schema.as_ref();
    let own = own.map_or_else(|| json!({"type": "object"}), |schema| schema.published());
    match entry.spec.family {
        Family::Core => wire::result_schema(object(own)),
        Family::Site => object(own),
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
