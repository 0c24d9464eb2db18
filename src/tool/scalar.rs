//! Converts text to a value of a schema's type.
//!
//! | type | text |
//! |---|---|
//! | string | verbatim; blanks around one of several fixed words are ignored |
//! | boolean | `true` or `false` |
//! | integer, number | decimal digits with sign, fraction and exponent; an integer is whole in value, so `1e3` is 1000 |
//! | array, object | JSON text; blank text in an element is the empty one |
//! | union, any | JSON text when it is valid and fits, else the text itself where text fits |
//!
//! Blanks around all but strings are ignored.

use serde_json::{Map, Number, Value};

use crate::tool::json_text;
use crate::tool::mismatch::Mismatch;
use crate::tool::schema;
use crate::tool::validate;

/// Converts the text of an attribute.
///
/// # Errors
/// The text does not fit.
pub fn attribute(text: &str, schema: &Value, path: &str) -> Result<Value, Mismatch<'static>> {
    if schema::is_union(schema) {
        return union(text, schema, path);
    }
    let is = |name| schema::has_type(schema, name);
    let trimmed = text.trim();
    let mismatch = || Mismatch::text(path, schema::expected_in_xml(schema), text);
    let mut value = if is("boolean") {
        boolean(trimmed).ok_or_else(|| mismatch().with_hint("write true or false"))?
    } else if is("integer") || is("number") {
        number(trimmed).ok_or_else(mismatch)?
    } else if is("array") || is("object") {
        return json(trimmed, schema, path);
    } else if is("null") {
        return match trimmed {
            "" | "null" => Ok(Value::Null),
            _ => Err(mismatch()),
        };
    } else {
        return word(text, schema, path);
    };
    // The source text is more precise than the parsed number.
    validate::check(&mut value, schema, path).map_err(|_| mismatch())?;
    Ok(value)
}

/// Converts the text of an element.
///
/// # Errors
/// The text does not fit.
pub fn element(text: &str, schema: &Value, path: &str) -> Result<Value, Mismatch<'static>> {
    if text.trim().is_empty() && !schema::is_union(schema) {
        if schema::has_type(schema, "array") {
            return Ok(Value::Array(Vec::new()));
        }
        if schema::has_type(schema, "object") {
            return Ok(Value::Object(Map::new()));
        }
    }
    attribute(text, schema, path)
}

fn word(text: &str, schema: &Value, path: &str) -> Result<Value, Mismatch<'static>> {
    let mut value = Value::String(text.to_owned());
    let fits = validate::check(&mut value, schema, path);
    if fits.is_ok() {
        return Ok(value);
    }
    // No fixed word has blanks around it, so trimming is safe.
    let mut trimmed = Value::String(text.trim().to_owned());
    validate::check(&mut trimmed, schema, path)
        .map_err(|_| Mismatch::text(path, schema::expected_in_xml(schema), text))?;
    Ok(trimmed)
}

fn union(text: &str, schema: &Value, path: &str) -> Result<Value, Mismatch<'static>> {
    let parsed = json_text::parse(text.trim());
    let in_json = parsed.ok().map(|mut value| {
        let fits = validate::check(&mut value, schema, path);
        fits.map(|()| value)
    });
    if let Some(Ok(value)) = in_json {
        return Ok(value);
    }
    word(text, schema, path).map_err(|mismatch| match in_json {
        Some(Err(inner)) if inner.path != path => inner.in_json(),
        _ => mismatch,
    })
}

fn json(text: &str, schema: &Value, path: &str) -> Result<Value, Mismatch<'static>> {
    let mut value = json_text::parse(text).map_err(|error| {
        let mismatch = Mismatch::text(path, schema::expected_in_xml(schema), text).in_json();
        mismatch.with_hint(format!("write child elements or correct JSON ({error})"))
    })?;
    validate::check(&mut value, schema, path).map_err(Mismatch::in_json)?;
    Ok(value)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// Parses a finite decimal number; whole numbers stay integers.
fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let has_two_signs = digits.len() < text.len() && digits.starts_with('-');
    if has_two_signs || !is_decimal(digits) {
        return None;
    }
    if let Ok(whole) = digits.parse::<i64>() {
        return Some(Value::from(whole));
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return Some(Value::from(whole));
    }
    let value: f64 = digits.parse().ok()?;
    Number::from_f64(value).map(Value::Number)
}

/// Returns true for digits with at most one fraction and one exponent, and not for words such as `inf`,
/// hexadecimal numbers or underscores.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}
