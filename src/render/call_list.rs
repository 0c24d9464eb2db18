//! Calls of a message as JSON for programs, as `karyi parse --json` prints them.
//!
//! A call of a core tool is `{"type", "id"?, ...}` with its arguments under their own names; a call of any
//! other tool is `{"type", "id"?, "arguments"}`. The id is present when the model gave one. Texts are verbatim:
//! nothing is trimmed, dedented or resolved. A file with only a `src` is abbreviated to its path.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::tool::decode::{self, TextMode};
use crate::tool::registry::Entry;
use crate::tool::spec::Form;
use karyi_core::call::RawCall;
use karyi_core::error::Diagnostic;

/// Returns a call as a JSON object.
///
/// # Errors
/// An argument that does not fit its type.
pub fn call<C>(raw: &RawCall, entry: &Entry<C>) -> Result<Map<String, Value>, Box<Diagnostic>> {
    let mut map = Map::new();
    map.insert("type".into(), json!(raw.element.name.as_str()));
    if raw.has_own_id {
        map.insert("id".into(), json!(raw.id));
    }
    let arguments = decode::arguments(raw, &entry.spec, &entry.schema, TextMode::Verbatim)?;
    match (entry.spec.form, arguments) {
        (Form::Attributes | Form::Text { .. }, Value::Object(arguments)) => {
            let plain = arguments
                .into_iter()
                .map(|(name, value)| (name, plain(value)));
            map.extend(plain);
        }
        (Form::Parameters | Form::Attributes | Form::Text { .. }, arguments) => {
            map.insert("arguments".into(), arguments);
        }
    }
    Ok(map)
}

/// Replaces files with only a `src` by their paths.
fn plain(value: Value) -> Value {
    let Value::Array(items) = value else {
        return value;
    };
    let path = |item: Value| match item {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("src") => {
            map.shift_remove("src").unwrap_or_default()
        }
        other => other,
    };
    items.into_iter().map(path).collect()
}

/// Collects the calls of a message into one JSON value.
///
/// Only at the end of the message is it known whether that is a list or an error object; until then the
/// calls are stored as serialized JSON.
#[derive(Debug, Default)]
pub struct CallList {
    /// The items, separated by commas.
    items: Vec<u8>,
}

impl CallList {
    /// Adds a call.
    ///
    /// # Errors
    /// It could not be written.
    pub fn push(&mut self, call: &Map<String, Value>) -> io::Result<()> {
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        Ok(serde_json::to_writer(&mut self.items, call)?)
    }

    /// Writes the list, or, for a refused message, the diagnostic with the calls before it.
    ///
    /// # Errors
    /// It could not be written.
    pub fn write(&self, out: &mut dyn Write, refusal: Option<&Diagnostic>) -> io::Result<()> {
        let (mut before, mut after) = (String::new(), "");
        if let Some(diagnostic) = refusal {
            let position = diagnostic.position;
            let inside = if diagnostic.is_in_json {
                r#""in":"tools","#
            } else {
                ""
            };
            before = format!(
                r#"{{"error":"{}","offset":{},"line":{},"column":{},{inside}"nodes":"#,
                diagnostic.code.as_str(),
                position.offset,
                position.line,
                position.column
            );
            after = "}";
        }
        write!(out, "{before}[")?;
        out.write_all(&self.items)?;
        writeln!(out, "]{after}")
    }
}
