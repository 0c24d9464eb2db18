//! Text to a value of a schema's type.
//!
//! | type | text |
//! |---|---|
//! | string | to the letter; one of a list of words may have blanks around it |
//! | boolean | `true` or `false` |
//! | integer, number | decimal digits with sign, fraction and exponent; an integer is whole in value, so `1e3` is 1000 |
//! | array, object | JSON text; blank text in an element is the empty one |
//! | union, any | JSON text when it is JSON and fits, else the text itself where text fits |
//!
//! Blanks around everything but strings do not count.

use serde_json::{Map, Number, Value};

use crate::tool::fit;
use crate::tool::json_text;
use crate::tool::misfit::Misfit;
use crate::tool::schema;

/// Reads the text of an attribute.
///
/// # Errors
/// The text does not fit.
pub fn attribute(text: &str, schema: &Value, path: &str) -> Result<Value, Misfit<'static>> {
    if schema::is_union(schema) {
        return union(text, schema, path);
    }
    let is = |name| schema::has_type(schema, name);
    let trimmed = text.trim();
    let misfit = || Misfit::text(path, schema::expected(schema), text);
    let mut value = if is("boolean") {
        boolean(trimmed).ok_or_else(|| misfit().with_hint("write true or false"))?
    } else if is("integer") || is("number") {
        number(trimmed).ok_or_else(misfit)?
    } else if is("array") || is("object") {
        return json(trimmed, schema, path);
    } else if is("null") {
        return match trimmed {
            "" | "null" => Ok(Value::Null),
            _ => Err(misfit()),
        };
    } else {
        return word(text, schema, path);
    };
    // What was written says more than the number it was read as.
    fit::check(&mut value, schema, path).map_err(|_| misfit())?;
    Ok(value)
}

/// Reads the text of an element.
///
/// # Errors
/// The text does not fit.
pub fn element(text: &str, schema: &Value, path: &str) -> Result<Value, Misfit<'static>> {
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

fn word(text: &str, schema: &Value, path: &str) -> Result<Value, Misfit<'static>> {
    let mut value = Value::String(text.to_owned());
    let fits = fit::check(&mut value, schema, path);
    if fits.is_ok() {
        return Ok(value);
    }
    // No word of a list has blanks around it, so this changes nothing that was meant.
    let mut trimmed = Value::String(text.trim().to_owned());
    fit::check(&mut trimmed, schema, path)
        .map_err(|_| Misfit::text(path, schema::expected(schema), text))?;
    Ok(trimmed)
}

fn union(text: &str, schema: &Value, path: &str) -> Result<Value, Misfit<'static>> {
    let parsed = json_text::parse(text.trim());
    let in_json = parsed.ok().map(|mut value| {
        let fits = fit::check(&mut value, schema, path);
        fits.map(|()| value)
    });
    if let Some(Ok(value)) = in_json {
        return Ok(value);
    }
    word(text, schema, path).map_err(|misfit| match in_json {
        Some(Err(inner)) if inner.path != path => inner.in_json(),
        _ => misfit,
    })
}

fn json(text: &str, schema: &Value, path: &str) -> Result<Value, Misfit<'static>> {
    let mut value = json_text::parse(text).map_err(|error| {
        let misfit = Misfit::text(path, schema::expected(schema), text).in_json();
        misfit.with_hint(format!("write child elements or correct JSON ({error})"))
    })?;
    fit::check(&mut value, schema, path).map_err(Misfit::in_json)?;
    Ok(value)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// A finite decimal number; whole ones stay whole.
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

/// Whether text is made of digits, with at most one fraction and one exponent: no words such as
/// `inf`, no hexadecimal, no underscores.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}
