//! The calls of a message as JSON, for programs: what `karyi parse --json` prints.
//!
//! A call of a core tool is `{"type", "id"?, ...}` with its arguments under their own names; a call
//! of any other tool is `{"type", "id"?, "arguments"}`. An id is there when the model gave one. Texts
//! are to the letter: nothing is trimmed, dedented or resolved. A file of which only `src` is given
//! is that path alone.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::tool::decode::{self, Texts};
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
    let arguments = decode::arguments(raw, &entry.spec, &entry.schema, Texts::Verbatim)?;
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

/// Puts paths in the place of files of which nothing else is given.
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

/// The calls of a message on their way to one JSON value.
///
/// Whether that is a list, or an object that says why the message is refused, is known at its end
/// only; until then the calls are held as the JSON they will be printed as.
#[derive(Debug, Default)]
pub struct CallList {
    /// The items, with commas between them.
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

    /// Writes the list, or what stands in its place when the message is refused: the diagnostic and
    /// the calls that were complete before.
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
