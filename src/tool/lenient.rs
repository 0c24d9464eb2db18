//! Takes arguments in forms that models write by mistake, when only one reading fits the schema.
//!
//! Clients that speak JSON send a list as JSON text, a number or a boolean as text, one object where a list
//! is expected, or a comment on the call beside its arguments. The slips that the repair mode of ToolsXML takes
//! are taken here too: a time with a unit, a key written as `Ctrl+C`, `path` for `src`, `taskId` for `task_id`.
//! Whatever does not fit is left as it is; the check that follows reports it.

use serde_json::{Map, Value};

use crate::tool::{json_text, schema, validate};
use karyi_syntax::slips;

/// Converts arguments to the types of `schema` where that is unambiguous.
pub fn convert(arguments: &mut Value, schema: &Value) {
    drop_comments(arguments, schema);
    convert_value(arguments, schema);
}

fn drop_comments(arguments: &mut Value, schema: &Value) {
    let Value::Object(map) = arguments else {
        return;
    };
    let Some(known) = schema.get("properties") else {
        return;
    };
    map.retain(|name, _| known.get(name).is_some() || !slips::is_explanation(name));
}

fn convert_value(value: &mut Value, schema: &Value) {
    if let Some(read) = fitting(value, schema) {
        *value = read;
    }
    match value {
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                convert_value(item, schema::item(schema, index));
            }
        }
        Value::Object(map) => convert_members(map, schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn convert_members(map: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema.get("properties") else {
        return;
    };
    rename(map, properties);
    for (name, value) in map {
        let Some(schema) = properties.get(name) else {
            continue;
        };
        // What its tool has words against is not made to fit.
        if schema::annotation(schema, "misfit").is_some() && !value.is_string() {
            continue;
        }
        if name == "timeout"
            && !schema::has_type(schema, "string")
            && let Some(seconds) = value.as_str().and_then(slips::seconds)
        {
            *value = seconds.into();
        }
        convert_value(value, schema);
    }
}

/// Gives arguments the names that the schema has for them: `src` for `path`, `task_id` for `taskId`.
fn rename(map: &mut Map<String, Value>, known: &Value) {
    let names = || known.as_object().into_iter().flat_map(Map::keys);
    let other = |written: &String| {
        let name = slips::other_name(written, names().map(String::as_str))?;
        Some((written.clone(), name.to_owned()))
    };
    let unknown = map.keys().filter(|name| known.get(name.as_str()).is_none());
    let renamed: Vec<(String, String)> = unknown.filter_map(other).collect();
    for (written, name) in renamed {
        if !map.contains_key(&name)
            && let Some(value) = map.shift_remove(&written)
        {
            map.insert(name, value);
        }
    }
}

/// Returns the word of a list of words that a text means, such as the key of `Ctrl+C`.
fn word(text: &str, schema: &Value) -> Option<Value> {
    let words = schema.get("enum")?.as_array()?;
    let is_word = |word: &str| words.iter().any(|known| known == word);
    let plain = text.trim().to_lowercase();
    let meant = || slips::control_key(text).filter(|key| is_word(key));
    let word = match is_word(&plain) {
        true => Some(plain),
        false => meant(),
    };
    word.filter(|_| !is_word(text)).map(Value::from)
}

/// Returns the value in a type of the schema, when it has another type and can be read as one.
fn fitting(value: &Value, schema: &Value) -> Option<Value> {
    let is = |name| schema::has_type(schema, name);
    match value {
        Value::String(text) if is("string") => word(text, schema),
        Value::String(text) => {
            let read = json_text::parse(text.trim()).ok();
            let fits = |read: &Value| match read {
                Value::Array(_) => is("array"),
                Value::Object(_) => is("object") || is("array"),
                Value::Bool(_) => is("boolean"),
                Value::Number(_) => is("number") || is("integer"),
                Value::Null | Value::String(_) => false,
            };
            match read.filter(fits) {
                Some(object @ Value::Object(_)) if !is("object") => Some(vec![object].into()),
                Some(read) => Some(read),
                // A list of paths also takes one path.
                None if is("array") && validate::takes_texts(schema::items(schema)) => {
                    Some(vec![value.clone()].into())
                }
                None => None,
            }
        }
        Value::Object(_) if is("array") && !is("object") => Some(vec![value.clone()].into()),
        Value::Number(_) if is("string") && !is("number") && !is("integer") => {
            Some(value.to_string().into())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(mut arguments: Value) -> Value {
        let schema = json!({"type": "object", "properties": {
            "files": {"type": "array", "items": {"type": "object", "required": ["src"], "properties": {
                "src": {"type": "string"}, "all": {"type": "boolean"}, "depth": {"type": ["integer", "null"]}}}},
            "names": {"type": "array", "items": {"type": "string"}},
            "run_at": {"type": "string"}, "key": {"type": "string", "enum": ["c", "enter"]}, "text": {"type": "string"}, "timeout": {"type": "number"}, "headers": {"type": "object"}}});
        convert(&mut arguments, &schema);
        arguments
    }

    #[test]
    fn values_of_another_type_are_read_when_they_fit() {
        for (given, expected) in [
            (json!({"files": "[\"a\"]"}), json!({"files": ["a"]})),
            (json!({"files": "a.txt"}), json!({"files": ["a.txt"]})),
            (
                json!({"files": "[{\"src\":\"a\",\"all\":\"true\",\"depth\":\"3\"}]"}),
                json!({"files": [{"src": "a", "all": true, "depth": 3}]}),
            ),
            (
                json!({"files": {"src": "a"}}),
                json!({"files": [{"src": "a"}]}),
            ),
            (
                json!({"files": "{\"src\":\"a\"}"}),
                json!({"files": [{"src": "a"}]}),
            ),
            (json!({"timeout": "5"}), json!({"timeout": 5})),
            (json!({"timeout": " 1.5 "}), json!({"timeout": 1.5})),
            (
                json!({"headers": "{\"a\":\"1\"}"}),
                json!({"headers": {"a": "1"}}),
            ),
            (json!({"text": 7}), json!({"text": "7"})),
            (json!({"timeout": "1.5 min"}), json!({"timeout": 90})),
            (json!({"key": "Ctrl+C"}), json!({"key": "c"})),
            (json!({"key": " Enter"}), json!({"key": "enter"})),
            (
                json!({"files": [{"path": "a"}]}),
                json!({"files": [{"src": "a"}]}),
            ),
            (json!({"runAt": "x"}), json!({"run_at": "x"})),
            (json!({"description": "why", "reason": "so"}), json!({})),
        ] {
            assert_eq!(read(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn what_fits_or_does_not_is_left_as_it_is() {
        for given in [
            json!({"text": "[1]"}),
            json!({"text": "true"}),
            json!({"timeout": "soon"}),
            json!({"timeout": "true"}),
            json!({"key": "Ctrl+D"}),
            json!({"files": [{"src": "a", "path": "b"}]}),
            json!({"runAt": "x", "run_at": "y"}),
            json!({"timeout": true}),
            json!({"names": "[1, 2"}),
            json!({"names": "one"}),
            json!({"headers": "[]"}),
            json!({"headers": "{\"a\":1,\"a\":2}"}),
            json!({"files": [{"src": "a", "description": "kept, and refused"}]}),
            json!(["a"]),
            json!(null),
        ] {
            assert_eq!(read(given.clone()), given);
        }
    }
}
