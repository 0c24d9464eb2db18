//! OpenAPI 3.1 document of the server, built from the schemas of its tools.

use serde_json::{Map, Value, json};

use crate::service::catalog::{OfferedTool, ToolListing};
use karyi_core::limits;

/// Endpoints that require authentication.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequirement {
    /// List and call.
    pub calls: bool,
    /// Document and metrics.
    pub monitoring: bool,
}

/// Returns the document of a server with these tools.
#[must_use]
pub fn document(tools: &[OfferedTool], auth: AuthRequirement) -> Value {
    let listed: Vec<ToolListing> = tools.iter().map(OfferedTool::listing).collect();
    let posts = |id: &str, summary: &str, request: &str, answer: &str| {
        json!({
            "post": {
                "operationId": id,
                "summary": summary,
                "parameters": parameters(id == "call_tool"),
                "requestBody": {
                    "required": true,
                    "content": {"application/json": {"schema": reference(request)}}
                },
                "responses": responses(answer),
                "security": security(auth.calls),
            }
        })
    };
    let (open, monitoring) = (security(false), security(auth.monitoring));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "karyi tool server",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Calls tools for sites, with tenants, traces and a ledger of every call.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": {
            "/api/tools/list": posts("list_tools", "List the tools", "ListRequest", "ListAnswer"),
            "/api/tools/call": posts("call_tool", "Call a tool", "CallRequest", "CallAnswer"),
            "/healthz": gets("health", "Check that the server runs", "application/json", &open),
            "/readyz": gets("readiness", "Check that the server accepts calls", "application/json", &open),
            "/metrics": gets("metrics", "Return metrics in the OpenMetrics format", "application/openmetrics-text", &monitoring),
            "/openapi.json": gets("description", "Return this document", "application/json", &monitoring),
        },
        "components": {
            "schemas": schemas(&listed),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Internal-API-Key"},
            },
        },
    })
}

fn security(is_closed: bool) -> Value {
    match is_closed {
        true => json!([{"token": []}, {"key": []}]),
        false => json!([]),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn identifier() -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._:-]+$",
        "minLength": 1,
        "maxLength": limits::MAX_ID_CHARS,
    })
}

fn parameters(is_call: bool) -> Value {
    let header = |name: &str, required: bool, schema: Value, about: &str| json!({"name": name, "in": "header", "required": required, "schema": schema, "description": about});
    // Typed as a string: checkers of examples reject a string value for an integer schema.
    let number = json!({
        "type": "string",
        "pattern": format!("^[1-9][0-9]{{0,{}}}$", limits::MAX_HEADER_NUMBER.ilog10()),
    });
    let mut list = vec![
        header("X-Tenant-ID", true, identifier(), "Tenant"),
        header("X-Site-ID", true, identifier(), "Site"),
        header(
            "X-Trace-ID",
            true,
            identifier(),
            "Trace of the caller; several calls may share it",
        ),
        header("X-Span-ID", false, identifier(), "Span of the caller"),
        header("X-User-ID", false, identifier(), "User"),
        header("X-Session-ID", false, identifier(), "Session of the user"),
        header(
            "X-NPC-ID",
            false,
            identifier(),
            "Character the user talks to",
        ),
    ];
    if is_call {
        list.extend([
            header(
                "Idempotency-Key",
                false,
                identifier(),
                "Makes retries safe: for 24 hours, a call with the same key gets the stored response",
            ),
            header("X-Attempt", false, number.clone(), "Number of the attempt"),
            header(
                "X-Request-Timeout-Ms",
                false,
                number,
                "Time the caller waits; it can only shorten the limit of the tool",
            ),
        ]);
    }
    Value::Array(list)
}

fn responses(answer: &str) -> Value {
    let problems = [
        ("400", "The request is malformed"),
        ("401", "The caller is not authenticated"),
        ("403", "The caller lacks permission"),
        ("408", "The body did not arrive in time"),
        ("409", "A call with this key is in progress"),
        ("413", "The body is too large"),
        ("415", "The body is not JSON"),
        ("422", "The request is not valid"),
        ("429", "Too many calls"),
        ("431", "The head of the request is too large"),
        ("500", "The server failed"),
        (
            "503",
            "The server is overloaded, or cannot write its ledger",
        ),
    ];
    let content = json!({"application/problem+json": {"schema": reference("Problem")}});
    let mut map = Map::new();
    map.insert(
        "200".into(),
        json!({
            "description": "Response",
            "content": {"application/json": {"schema": reference(answer)}},
        }),
    );
    for (status, about) in problems {
        map.insert(
            status.into(),
            json!({"description": about, "content": content}),
        );
    }
    Value::Object(map)
}

fn gets(id: &str, summary: &str, kind: &str, security: &Value) -> Value {
    let mut content = Map::new();
    content.insert(kind.to_owned(), json!({}));
    let problem = json!({"application/problem+json": {"schema": reference("Problem")}});
    json!({
        "get": {
            "operationId": id,
            "summary": summary,
            "security": security,
            "responses": {
                "200": {"description": "Response", "content": content},
                "default": {"description": "Rejection", "content": problem},
            },
        }
    })
}

fn schemas(tools: &[ToolListing]) -> Value {
    let mut map = Map::new();
    for tool in tools {
        map.insert(format!("{}_input", tool.name), tool.input_schema.clone());
        map.insert(format!("{}_output", tool.name), tool.output_schema.clone());
    }
    map.insert(
        "ListRequest".into(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "category": {"type": ["string", "null"]},
                "ai_callable_only": {"type": ["boolean", "null"], "default": true},
            },
        }),
    );
    map.insert(
        "ListAnswer".into(),
        json!({
            "type": "object",
            "required": ["tools", "total"],
            "properties": {
                "tools": {"type": "array", "items": listed()},
                "total": {"type": "integer", "minimum": 0},
            },
        }),
    );
    map.insert("CallRequest".into(), call_request(tools));
    map.insert("CallAnswer".into(), call_answer(tools));
    map.insert("Problem".into(), problem());
    Value::Object(map)
}

fn listed() -> Value {
    let (text, schema) = (json!({"type": "string"}), json!({"type": "object"}));
    json!({
        "type": "object",
        "required": ["name", "version", "description", "category", "input_schema", "output_schema", "requires_auth", "ai_callable"],
        "properties": {
            "name": text, "version": text, "description": text, "category": text,
            "input_schema": schema, "output_schema": schema,
            "requires_auth": {"type": "boolean"}, "ai_callable": {"type": "boolean"},
        },
    })
}

fn call_request(tools: &[ToolListing]) -> Value {
    let one = |tool: &ToolListing| {
        json!({
            "title": tool.name,
            "properties": {
                "tool_name": {"const": tool.name},
                "input": reference(&format!("{}_input", tool.name)),
            },
        })
    };
    // An unknown tool and an invalid input get status 200 with `success` false.
    let other = json!({
        "title": "another call, answered with `success` false",
        "properties": {"tool_name": {"type": "string"}},
    });
    let id = json!({"oneOf": [identifier(), {"type": "null"}]});
    json!({
        "type": "object",
        "required": ["tool_name"],
        "additionalProperties": false,
        "properties": {
            "tool_name": {"type": "string", "minLength": 1},
            "input": {"type": ["object", "null"]},
            "context": {
                "type": ["object", "null"],
                "properties": {
                    "tenant_id": id, "site_id": id, "trace_id": id,
                    "user_id": id, "session_id": id, "npc_id": id,
                },
            },
        },
        "anyOf": tools.iter().map(one).chain([other]).collect::<Vec<_>>(),
    })
}

fn call_answer(tools: &[ToolListing]) -> Value {
    let outputs: Vec<Value> = tools
        .iter()
        .map(|tool| reference(&format!("{}_output", tool.name)))
        .collect();
    let text = json!({"type": "string"});
    let place = json!({
        "type": "object",
        "required": ["loc", "msg"],
        "properties": {"loc": {"type": "array", "items": text}, "msg": text},
    });
    json!({
        "type": "object",
        "required": ["success", "audit"],
        "properties": {
            "success": {"type": "boolean"},
            "output": {"anyOf": outputs},
            "error": text,
            "error_type": text,
            "error_code": text,
            "errors": {"type": "array", "items": place},
            "audit": {
                "type": "object",
                "required": ["trace_id", "call_id", "tool_name", "status", "latency_ms", "request_payload_hash"],
                "properties": {
                    "trace_id": text, "call_id": text, "tool_name": text,
                    "status": {"enum": ["success", "error"]},
                    "latency_ms": {"type": "integer", "minimum": 0},
                    "error_type": text, "error_message": text, "request_payload_hash": text,
                },
            },
        },
    })
}

fn problem() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "error_code"],
        "properties": {
            "type": text, "title": text, "status": {"type": "integer"}, "detail": text,
            "instance": text, "error_code": text, "trace_id": text, "errors": {"type": "array"},
            "retry_after": {"type": "integer"},
        },
    })
}
