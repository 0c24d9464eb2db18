//! Borrowed fields of an object for serialization.
//!
//! Results may exceed a megabyte, so they are not copied to be written.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// A list of words.
    Words(&'a [&'static str]),
    /// Any other value.
    Value(&'a Value),
}

impl<'a> From<&'a Value> for Field<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => Self::Value(value),
        }
    }
}

/// Named fields in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BorrowedFields<'a>(Vec<(&'a str, Field<'a>)>);

impl<'a> BorrowedFields<'a> {
    /// Returns the fields of an object.
    #[must_use]
    pub fn of(map: &'a Map<String, Value>) -> Self {
        Self(
            map.iter()
                .map(|(name, value)| (&**name, value.into()))
                .collect(),
        )
    }

    /// Replaces the field of that name, or appends it.
    pub fn set(&mut self, name: &'a str, field: Field<'a>) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = field,
            None => self.0.push((name, field)),
        }
    }

    /// Returns the field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Field<'a>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, field)| *field)
    }

    /// Removes the fields that do not fulfil a condition.
    pub fn retain(&mut self, keep: impl Fn(&str, &Field<'a>) -> bool) {
        self.0.retain(|(name, field)| keep(name, field));
    }

    /// Returns the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        self.0.iter().copied()
    }

    /// Returns an owned object.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        let value = |field| match field {
            Field::Text(text) => text.into(),
            Field::Number(number) => number.into(),
            Field::Words(words) => words.to_vec().into(),
            Field::Value(value) => value.clone(),
        };
        let own = |(name, field): (&str, _)| (name.to_owned(), value(field));
        self.iter().map(own).collect()
    }
}

impl Serialize for BorrowedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_written_as_the_object_they_make() {
        let own = json!({"t": "a\"b", "n": null, "l": [1, {"x": "y"}], "tool": 2.5});
        let mut fields = BorrowedFields::default();
        fields.set("tool", Field::Text("read"));
        fields.set("ms", Field::Number(7));
        for (name, field) in BorrowedFields::of(own.as_object().unwrap()).iter() {
            fields.set(name, field);
        }
        fields.set("repairs", Field::Words(&["R1", "R4"]));
        let text =
            r#"{"tool":2.5,"ms":7,"t":"a\"b","n":null,"l":[1,{"x":"y"}],"repairs":["R1","R4"]}"#;
        assert_eq!(serde_json::to_string(&fields).unwrap(), text);
        let map = Value::Object(fields.to_map());
        assert_eq!(map.to_string(), text);
        assert_eq!(
            BorrowedFields::of(map.as_object().unwrap()).to_map(),
            fields.to_map()
        );
    }
}
