//! Validates a JSON value against a schema and reports the path of an error.
//!
//! It covers the part of JSON Schema that argument types use and accepts the rest, which the argument
//! type checks itself. Unknown keys are refused, since an argument must never be ignored silently. Two
//! forms are normalised: a whole number with a zero fraction becomes an integer, and `null` for an
//! optional key is removed.

use serde_json::{Map, Number, Value, json};

use crate::tool::mismatch::{Mismatch, join};
use crate::tool::schema::{self, Property};

/// The largest whole number up to which a floating point number represents all of them.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Validates and normalises a value.
///
/// # Errors
/// The first value that does not fit.
pub fn check(value: &mut Value, schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    if let Some(choices) = schema::alternatives(schema) {
        check_union(value, choices, schema, path)?;
    }
    check_kind(value, schema, path)?;
    check_choice(value, schema, path)?;
    match value {
        Value::Array(list) => check_list(list, schema, path),
        Value::Object(map) => check_object(map, schema, path),
        Value::Number(number) => check_range(number, schema, path),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Replaces path texts by objects: a list of objects that need only `src` also accepts plain texts, as
/// `karyi parse --json` prints them.
pub fn spread_paths(value: &mut Value, schema: &Value) {
    let Value::Object(map) = value else { return };
    let properties = schema::properties(schema);
    for property in properties.iter().filter(|property| takes_path(property)) {
        let Some(Value::Array(items)) = map.get_mut(property.name) else {
            continue;
        };
        for item in items.iter_mut().filter(|item| item.is_string()) {
            *item = json!({"src": item.take()});
        }
    }
}

/// Returns true when [`spread_paths`] applies to a schema.
#[must_use]
pub fn takes_paths(schema: &Value) -> bool {
    schema::properties(schema).iter().any(takes_path)
}

fn takes_path(property: &Property<'_>) -> bool {
    takes_texts(schema::items(property.schema))
}

/// Returns true when an object of this schema may be written as the text of its `src`.
#[must_use]
pub fn takes_texts(item: &Value) -> bool {
    let own = schema::properties(item);
    own.iter().any(|own| own.name == "src")
        && own.iter().all(|own| own.name == "src" || !own.is_required)
}

/// Checks that one of several schemas fits. When only one accepts the value's kind, its error is reported,
/// since it is more helpful.
fn check_union(
    value: &mut Value,
    choices: &[Value],
    schema: &Value,
    path: &str,
) -> Result<(), Mismatch<'static>> {
    let mut inner: Vec<Mismatch<'static>> = Vec::new();
    for choice in choices
        .iter()
        .filter(|choice| !is_other_form(value, choice))
    {
        let mut changed = value.clone();
        match check(&mut changed, choice, path) {
            Ok(()) => {
                *value = changed;
                return Ok(());
            }
            Err(mismatch) if mismatch.path != path => inner.push(mismatch),
            Err(_) => {}
        }
    }
    match inner.pop() {
        Some(only) if inner.is_empty() => Err(only),
        _ => Err(Mismatch::value(path, schema::expected(schema), value)),
    }
}

/// Returns true when a literal in an object, such as its `type`, selects another choice.
fn is_other_form(value: &Value, choice: &Value) -> bool {
    schema::properties(choice).iter().any(|property| {
        let only = property.schema.get("const");
        let found = value.get(property.name);
        only.zip(found).is_some_and(|(only, found)| only != found)
    })
}

fn check_kind(value: &mut Value, schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    if schema.get("type").is_none() {
        return Ok(());
    }
    let is = |name| schema::has_type(schema, name);
    let fits = match value {
        Value::Null => is("null"),
        Value::Bool(_) => is("boolean"),
        Value::String(_) => is("string"),
        Value::Array(_) => is("array"),
        Value::Object(_) => is("object"),
        Value::Number(number) if is("integer") => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
            is("number") || !number.is_f64()
        }
        Value::Number(_) => is("number"),
    };
    match fits {
        true => Ok(()),
        false => Err(Mismatch::value(path, schema::expected(schema), value)),
    }
}

/// Returns true when a number is whole, in any notation, and fits an integer.
#[must_use]
pub fn is_whole(number: &Number) -> bool {
    !number.is_f64() || whole(number).is_some()
}

/// Returns a floating point number without a fraction as an integer, when that is exact.
fn whole(number: &Number) -> Option<Number> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = value.fract() == 0.0 && value.abs() <= MAX_EXACT;
    // Exact up to the limit just checked; `{:.0}` prints neither fraction nor exponent.
    is_whole
        .then(|| format!("{value:.0}").parse::<i64>().ok())?
        .map(Number::from)
}

fn check_choice(value: &Value, schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    let is_listed = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(choices)), _) => choices.contains(value),
        (_, Some(only)) => only == value,
        _ => true,
    };
    match is_listed {
        true => Ok(()),
        false => Err(Mismatch::value(path, schema::expected(schema), value)),
    }
}

fn check_range(number: &Number, schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_number);
    let is_less = |a: &Number, b: &Number| match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        (_, _) => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a < b),
    };
    let is_out = bound("minimum").is_some_and(|least| is_less(number, least))
        || bound("maximum").is_some_and(|most| is_less(most, number));
    match is_out {
        false => Ok(()),
        true => Err(Mismatch::new(
            path,
            schema::expected(schema),
            number.to_string(),
        )),
    }
}

fn check_list(list: &mut [Value], schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let length = list.len() as u64;
    let is_out = count("minItems").is_some_and(|least| length < least)
        || count("maxItems").is_some_and(|most| length > most);
    if is_out {
        let expected = match (count("minItems"), count("maxItems")) {
            (Some(least), Some(most)) if least == most => format!("a list of {least}"),
            (Some(least), Some(most)) => format!("a list of {least} to {most}"),
            (Some(least), None) => format!("a list of at least {least}"),
            (None, most) => format!("a list of at most {}", most.unwrap_or(0)),
        };
        return Err(Mismatch::new(path, expected, format!("a list of {length}")));
    }
    for (index, item) in list.iter_mut().enumerate() {
        let item_schema = schema::item(schema, index);
        check(item, item_schema, &format!("{path}[{index}]"))?;
    }
    Ok(())
}

fn check_object(
    map: &mut Map<String, Value>,
    schema: &Value,
    path: &str,
) -> Result<(), Mismatch<'static>> {
    let properties = schema::properties(schema);
    for property in &properties {
        let is_null = map.get(property.name).is_some_and(Value::is_null);
        let may_be_null =
            schema::has_type(property.schema, "null") || schema::is_any(property.schema);
        if is_null && !property.is_required && !may_be_null {
            map.shift_remove(property.name);
        }
    }
    let is_missing = |p: &&Property<'_>| p.is_required && !map.contains_key(p.name);
    let missing = properties.iter().find(is_missing);
    for (key, value) in map.iter_mut() {
        let inside = join(path, key);
        match (schema::key(schema, key), missing) {
            (Some(known), _) => check(value, known, &inside)?,
            (None, Some(missing)) => {
                let unknown = unknown_key(&inside, value, schema);
                let found = format!("`{}` instead", join("", key));
                return Err(Mismatch {
                    found,
                    hint: unknown.hint,
                    ..missing_key(path, missing)
                });
            }
            (None, None) => return Err(unknown_key(&inside, value, schema)),
        }
    }
    match missing {
        None => Ok(()),
        Some(missing) => Err(missing_key(path, missing)),
    }
}

fn missing_key(path: &str, missing: &Property<'_>) -> Mismatch<'static> {
    let path = join(path, missing.name);
    let expected = format!("given: {}", schema::expected(missing.schema));
    Mismatch::new(&path, expected, "nothing").with_hint(format!("add `{path}`"))
}

/// Returns the error of a key that an object does not have.
#[must_use]
pub fn unknown_key(path: &str, found: &Value, schema: &Value) -> Mismatch<'static> {
    let keys: Vec<&str> = schema::properties(schema).iter().map(|p| p.name).collect();
    let hint = match keys.is_empty() {
        true => "leave it out: there are no arguments here".to_owned(),
        false => format!("the keys here are {}", keys.join(", ")),
    };
    Mismatch::value(path, "left out, since there is no such key", found).with_hint(hint)
}
