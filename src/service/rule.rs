//! A schema in the form in which inputs are checked: what it says is looked up once and not for
//! every call.

use regex::Regex;
use serde_json::Value;

use crate::tool::fit;
use crate::tool::schema;

/// What values must be like.
#[derive(Debug)]
pub(super) struct Rule {
    /// The same in words.
    pub(super) expected: String,
    /// One of these must fit.
    pub(super) choices: Option<Vec<Rule>>,
    /// The values there are.
    pub(super) listed: Option<Vec<Value>>,
    /// The kinds of values.
    pub(super) kinds: Kinds,
    /// Least and most characters of a text.
    pub(super) length: (u64, u64),
    /// What a text must match.
    pub(super) pattern: Option<Regex>,
    /// Least and most items of a list.
    pub(super) items: (u64, u64),
    /// The smallest number.
    pub(super) least: Option<f64>,
    /// The largest number.
    pub(super) most: Option<f64>,
    /// The first items of a list, and all others.
    first: Vec<Rule>,
    rest: Option<Box<Rule>>,
    /// The members of an object, in declared order.
    pub(super) properties: Vec<Member>,
    /// Other members.
    pub(super) others: Others,
}

/// What members of an object must be like that it does not name.
#[derive(Debug)]
pub(super) enum Others {
    /// There are none.
    None,
    /// Anything.
    Any,
    /// This.
    Fit(Box<Rule>),
}

impl Others {
    fn of(schema: &Value) -> Self {
        match schema::others(schema) {
            None => Self::None,
            Some(Value::Null) => Self::Any,
            Some(others) => Self::Fit(Box::new(Rule::of(others))),
        }
    }
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Whether it must be there.
    pub(super) is_required: bool,
    /// What it must be like.
    pub(super) rule: Rule,
}

/// A kind of values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Null,
    Boolean,
    String,
    Array,
    Object,
    Number,
    Integer,
}

impl Kind {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
        (Self::Number, "number"),
        (Self::Integer, "integer"),
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Kinds of values; nothing means all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds(Option<u8>);

impl Kinds {
    fn of(schema: &Value) -> Self {
        let named = Kind::ALL
            .iter()
            .filter(|(_, name)| schema::has_type(schema, name));
        let bits = named.map(|(kind, _)| kind.bit()).sum();
        Self(schema.get("type").map(|_| bits))
    }

    /// Whether a kind is named among them.
    pub(super) fn has(self, kind: Kind) -> bool {
        self.0.is_some_and(|bits| bits & kind.bit() != 0)
    }

    /// Whether a value is of one of them.
    pub(super) fn fit(self, value: &Value) -> bool {
        self.0.is_none()
            || match value {
                Value::Null => self.has(Kind::Null),
                Value::Bool(_) => self.has(Kind::Boolean),
                Value::String(_) => self.has(Kind::String),
                Value::Array(_) => self.has(Kind::Array),
                Value::Object(_) => self.has(Kind::Object),
                Value::Number(number) => {
                    self.has(Kind::Number) || (self.has(Kind::Integer) && fit::is_whole(number))
                }
            }
    }
}

impl Rule {
    /// Reads a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let choices = schema::alternatives(schema);
        let listed = match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(choices)), _) => Some(choices.clone()),
            (_, Some(only)) => Some(vec![only.clone()]),
            _ => None,
        };
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let properties = schema::properties(schema).into_iter();
        Self {
            expected: schema::expected(schema),
            choices: choices.map(|choices| choices.iter().map(Self::of).collect()),
            listed,
            kinds: Kinds::of(schema),
            length: range(schema, "minLength", "maxLength"),
            pattern: pattern.and_then(|pattern| Regex::new(pattern).ok()),
            items: range(schema, "minItems", "maxItems"),
            least: schema.get("minimum").and_then(Value::as_f64),
            most: schema.get("maximum").and_then(Value::as_f64),
            first: first.map_or_else(Vec::new, |items| items.iter().map(Self::of).collect()),
            rest: schema.get("items").map(|items| Box::new(Self::of(items))),
            properties: properties
                .map(|property| Member {
                    name: property.name.to_owned(),
                    is_required: property.is_required,
                    rule: Self::of(property.schema),
                })
                .collect(),
            others: Others::of(schema),
        }
    }

    /// Returns what an item of a list must be like.
    pub(super) fn item(&self, place: usize) -> Option<&Self> {
        self.first.get(place).or(self.rest.as_deref())
    }

    /// Whether an object has a member of this name by its own words.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.properties.iter().any(|property| property.name == name)
    }
}

fn range(schema: &Value, least: &str, most: &str) -> (u64, u64) {
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    (bound(least).unwrap_or(0), bound(most).unwrap_or(u64::MAX))
}
