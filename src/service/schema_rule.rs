//! JSON Schema compiled for validation, so that no call looks up keywords again.

use regex::Regex;
use serde_json::Value;

use crate::tool::schema;
use crate::tool::validate;

/// Rule for a value.
#[derive(Debug)]
pub(super) struct SchemaRule {
    /// Expectation in words, for messages.
    pub(super) expected: String,
    /// One of these rules must match.
    pub(super) choices: Option<Vec<SchemaRule>>,
    /// Allowed values.
    pub(super) allowed: Option<Vec<Value>>,
    /// Allowed types.
    pub(super) types: ValueTypes,
    /// Minimum and maximum number of characters of a text.
    pub(super) length: (u64, u64),
    /// Pattern of a text.
    pub(super) pattern: Option<Regex>,
    /// Minimum and maximum number of items of a list.
    pub(super) item_count: (u64, u64),
    /// Smallest number.
    pub(super) minimum: Option<f64>,
    /// Largest number.
    pub(super) maximum: Option<f64>,
    /// Rules for the first items of a list; `items_rule` is for the rest.
    prefix_items: Vec<SchemaRule>,
    items_rule: Option<Box<SchemaRule>>,
    /// Properties of an object, in declared order.
    pub(super) properties: Vec<PropertyRule>,
    /// Rule for other properties.
    pub(super) additional: AdditionalProperties,
}

/// Rule for properties that an object does not declare.
#[derive(Debug)]
pub(super) enum AdditionalProperties {
    /// None are allowed.
    None,
    /// Any value.
    Any,
    /// Values that match this rule.
    Matching(Box<SchemaRule>),
}

impl AdditionalProperties {
    fn of(schema: &Value) -> Self {
        match schema::others(schema) {
            None => Self::None,
            Some(Value::Null) => Self::Any,
            Some(others) => Self::Matching(Box::new(SchemaRule::of(others))),
        }
    }
}

/// Declared property of an object.
#[derive(Debug)]
pub(super) struct PropertyRule {
    /// Name.
    pub(super) name: String,
    /// True if the property is required.
    pub(super) is_required: bool,
    /// Rule for its value.
    pub(super) rule: SchemaRule,
}

/// JSON type of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueType {
    Null,
    Boolean,
    String,
    Array,
    Object,
    Number,
    Integer,
}

impl ValueType {
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

/// Set of types; none means any type.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueTypes(Option<u8>);

impl ValueTypes {
    fn of(schema: &Value) -> Self {
        let named = ValueType::ALL
            .iter()
            .filter(|(_, name)| schema::has_type(schema, name));
        let bits = named.map(|(kind, _)| kind.bit()).sum();
        Self(schema.get("type").map(|_| bits))
    }

    /// Tells whether the set names a type.
    pub(super) fn has(self, kind: ValueType) -> bool {
        self.0.is_some_and(|bits| bits & kind.bit() != 0)
    }

    /// Tells whether a value has one of the types.
    pub(super) fn matches(self, value: &Value) -> bool {
        self.0.is_none()
            || match value {
                Value::Null => self.has(ValueType::Null),
                Value::Bool(_) => self.has(ValueType::Boolean),
                Value::String(_) => self.has(ValueType::String),
                Value::Array(_) => self.has(ValueType::Array),
                Value::Object(_) => self.has(ValueType::Object),
                Value::Number(number) => {
                    self.has(ValueType::Number)
                        || (self.has(ValueType::Integer) && validate::is_whole(number))
                }
            }
    }
}

impl SchemaRule {
    /// Compiles a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let choices = schema::alternatives(schema);
        let allowed = match (schema.get("enum"), schema.get("const")) {
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
            allowed,
            types: ValueTypes::of(schema),
            length: range(schema, "minLength", "maxLength"),
            pattern: pattern.and_then(|pattern| Regex::new(pattern).ok()),
            item_count: range(schema, "minItems", "maxItems"),
            minimum: schema.get("minimum").and_then(Value::as_f64),
            maximum: schema.get("maximum").and_then(Value::as_f64),
            prefix_items: first.map_or_else(Vec::new, |items| items.iter().map(Self::of).collect()),
            items_rule: schema.get("items").map(|items| Box::new(Self::of(items))),
            properties: properties
                .map(|property| PropertyRule {
                    name: property.name.to_owned(),
                    is_required: property.is_required,
                    rule: Self::of(property.schema),
                })
                .collect(),
            additional: AdditionalProperties::of(schema),
        }
    }

    /// Returns the rule for an item of a list.
    pub(super) fn item(&self, index: usize) -> Option<&Self> {
        self.prefix_items.get(index).or(self.items_rule.as_deref())
    }

    /// Tells whether the object declares this property.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.properties.iter().any(|property| property.name == name)
    }
}

fn range(schema: &Value, minimum: &str, maximum: &str) -> (u64, u64) {
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    (
        bound(minimum).unwrap_or(0),
        bound(maximum).unwrap_or(u64::MAX),
    )
}
