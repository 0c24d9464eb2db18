//! Reads JSON from an answer of a model, which may have fences and prose around it.
//!
//! The longest object or array counts, because prose has small ones such as `[1]`. JSON that is not valid is not
//! mended: its values would be guesses.

use serde_json::{Deserializer, Value};

use crate::error::{ModelError, ModelErrorKind};

/// Returns the JSON value of an answer.
///
/// # Errors
/// The answer contains no complete JSON value.
pub fn read(text: &str) -> Result<Value, ModelError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let found = longest(text).or_else(|| fenced_scalar(text));
    found.ok_or_else(|| {
        let message = match text.contains(['{', '[']) {
            true => "expected JSON as the answer, found JSON that is not complete or not valid",
            false => "expected JSON as the answer, found text without it",
        };
        ModelError::new(ModelErrorKind::Protocol, message)
            .with_hint("ask again, with a shorter task or a model that has a JSON mode")
    })
}

/// Most brackets that may begin no JSON, so that hostile text ends soon.
const MAX_FALSE_STARTS: usize = 2_000;

/// Returns the longest object or array, the first of equal ones.
fn longest(text: &str) -> Option<Value> {
    let mut best: Option<(usize, Value)> = None;
    let (mut from, mut false_starts) = (0, 0);
    while let Some(found) = text.get(from..)?.find(['{', '[']) {
        let start = from + found;
        // Its limit of nesting ends the search in hostile text soon; skipping a value has none.
        let mut values = Deserializer::from_str(text.get(start..)?).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            false_starts += 1;
            if false_starts == MAX_FALSE_STARTS {
                break;
            }
            from = start + 1;
            continue;
        };
        let length = values.byte_offset();
        from = start + length;
        if best.as_ref().is_none_or(|(most, _)| length > *most) {
            best = Some((length, value));
        }
    }
    best.map(|(_, value)| value)
}

/// Returns a number, text or other single value inside a fence.
fn fenced_scalar(text: &str) -> Option<Value> {
    let (_, after) = text.split_once("```")?;
    let (_language, body) = after.split_once('\n')?;
    let (body, _) = body.split_once("```")?;
    serde_json::from_str(body.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Option<Value>) {
        assert_eq!(read(text).ok(), expected, "{text}");
    }

    #[test]
    fn fences_and_prose_around_json_are_left_out() {
        let value = || Some(json!({"a": [1]}));
        check("{\"a\":[1]}", value());
        check("\u{feff} {\"a\":[1]}\n", value());
        check("```json\n{\"a\": [1]}\n```", value());
        check("```\n{\"a\":[1]}```", value());
        check(
            "Here it is:\n```json\n{\"a\":[1]}\n```\nI hope that helps!",
            value(),
        );
        check("As in [1], {\"a\":[1]} and {}", value());
        check("{\"a\":[1]} {", value());
        check("{not json} {\"a\":[1]}", value());
        check(
            "The text is {\"a\": \"``` {\"}",
            Some(json!({"a": "``` {"})),
        );
        check("```json\n42\n```", Some(json!(42)));
        check("\"word\"", Some(json!("word")));
    }

    #[test]
    fn broken_json_is_not_mended() {
        for text in [
            "",
            "no",
            "{\"a\": 1",
            "{'a': 1}",
            "{\"a\": 1,}",
            "``` ",
            "```json\nno```",
        ] {
            check(text, None);
        }
        let told = read("{\"a\": 1").unwrap_err().message;
        assert!(told.contains("not complete"), "{told}");
    }

    #[test]
    fn hostile_nesting_ends_soon() {
        check(&"[".repeat(200_000), None);
        check(&"[0,".repeat(100_000), None);
        check(&"{\"\":".repeat(50_000), None);
        check(&"[\"\\".repeat(100_000), None);
    }
}
