//! JSON arguments as XML, in one of several ways.

use serde_json::Value;

/// How a value is written where there is a choice.
#[derive(Clone, Copy)]
struct Style {
    /// Scalars as attributes.
    has_attributes: bool,
    /// Lists and objects as JSON text.
    is_json: bool,
    /// Keys that are XML names as elements of that name.
    has_names: bool,
}

/// Writes a call; nothing when XML cannot say it.
pub fn call(name: &str, arguments: &Value, style: u8) -> Option<String> {
    let style = Style {
        has_attributes: style & 1 != 0,
        is_json: style & 2 != 0,
        has_names: style & 4 != 0,
    };
    let (mut attributes, mut children) = (String::new(), String::new());
    for (key, value) in arguments.as_object()? {
        match value {
            Value::Null => {}
            Value::Array(_) | Value::Object(_) => {
                children.push_str(&element(key, value, style)?);
            }
            Value::String(_) | Value::Bool(_) | Value::Number(_) if style.has_attributes => {
                attributes.push_str(&format!(" {key}=\"{}\"", escaped(&scalar(value))?));
            }
            Value::String(_) | Value::Bool(_) | Value::Number(_) => {
                children.push_str(&element(key, value, style)?);
            }
        }
    }
    Some(format!("<{name}{attributes}>{children}</{name}>"))
}

fn element(name: &str, value: &Value, style: Style) -> Option<String> {
    Some(format!("<{name}>{}</{name}>", inside(value, style)?))
}

fn inside(value: &Value, style: Style) -> Option<String> {
    let is_empty = value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty);
    match value {
        Value::Array(_) | Value::Object(_) if style.is_json || is_empty => {
            escaped(&value.to_string())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| element("item", item, style))
            .collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| match style.has_names && is_plain_name(key) {
                true => element(key, value, style),
                false => {
                    let (key, inside) = (escaped(key)?, inside(value, style)?);
                    Some(format!("<entry key=\"{key}\">{inside}</entry>"))
                }
            })
            .collect(),
        Value::Null | Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            escaped(&scalar(value))
        }
    }
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn is_plain_name(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric())
        // Such an element has another meaning.
        && key != "entry"
        && key != "item"
}

/// Escapes text for element and attribute; nothing when XML does not allow one of its characters.
fn escaped(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", u32::from(c))),
            '\u{FFFE}' | '\u{FFFF}' | '\0'..' ' => return None,
            c => escaped.push(c),
        }
    }
    Some(escaped)
}
