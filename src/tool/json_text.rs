//! Parses the JSON text of an argument; a duplicate key is refused.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Parses one JSON text.
///
/// # Errors
/// The error and its position.
pub fn parse(text: &str) -> Result<Value, String> {
    let Unique(value) = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(value)
}

/// A value without duplicate keys.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("the number is too large"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match map.entry(key) {
                Entry::Occupied(old) => {
                    let key = old.key();
                    return Err(A::Error::custom(format!("the key {key:?} is there twice")));
                }
                Entry::Vacant(place) => {
                    let Unique(value) = entries.next_value()?;
                    place.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once() {
        let check = parse;
        assert_eq!(
            check(r#"{"a":[1,-2,1.5,"x",null,true]}"#)
                .unwrap()
                .to_string(),
            r#"{"a":[1,-2,1.5,"x",null,true]}"#
        );
        assert_eq!(
            check(r#"{"a":1,"a":2}"#).unwrap_err(),
            "the key \"a\" is there twice at line 1 column 10"
        );
        assert!(
            check(r#"[{"b":{"a":1,"a":2}}]"#)
                .unwrap_err()
                .starts_with("the key \"a\"")
        );
        assert!(check("[1,").is_err() && check("1 2").is_err() && check("").is_err());
    }

    #[test]
    fn nesting_has_a_limit() {
        assert!(
            parse(&"[".repeat(100_000))
                .unwrap_err()
                .starts_with("recursion limit")
        );
    }
}
