//! Validates inputs against the schema of their tool.
//!
//! Scripts get one problem at a time; callers over the network get all of them at once, by the same
//! schema.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::service::schema_rule::{AdditionalProperties, SchemaRule, ValueType};
use crate::tool::schema::ArgumentSchema;
use crate::tool::validate;
use karyi_vault::redact::Redactor;

/// Most problems in a response.
const MAX_PROBLEMS: usize = 50;

/// Most characters of a field name in a problem.
const MAX_NAME_CHARS: usize = 100;

/// Size up to which a linear search in an object is faster than a hash lookup.
const FEW_MEMBERS: usize = 16;

/// Problem of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProblem {
    /// Path to the field: names and indexes.
    pub loc: Vec<String>,
    /// Expected value.
    pub msg: String,
}

impl FieldProblem {
    /// Creates a problem at a path.
    #[must_use]
    pub fn new(loc: &[&str], msg: impl Into<String>) -> Self {
        Self {
            loc: loc.iter().map(|name| (*name).to_owned()).collect(),
            msg: msg.into(),
        }
    }
}

/// Masks secrets in problems.
pub fn mask(problems: &mut [FieldProblem], redactor: &Redactor) {
    for problem in problems {
        problem
            .loc
            .iter_mut()
            .for_each(|name| redactor.redact_in_again(name));
        redactor.redact_in_again(&mut problem.msg);
    }
}

/// Joins all problems into one line.
#[must_use]
pub fn summary(problems: &[FieldProblem]) -> String {
    let one = |problem: &FieldProblem| match problem.loc.is_empty() {
        true => problem.msg.clone(),
        false => format!("{}: {}", problem.loc.join("."), problem.msg),
    };
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Validates inputs of one tool.
#[derive(Debug)]
pub struct InputCheck {
    schema: Value,
    rule: SchemaRule,
}

impl InputCheck {
    /// Creates the check for a schema.
    #[must_use]
    pub fn of(schema: &ArgumentSchema) -> Self {
        let schema = schema.published();
        let rule = SchemaRule::of(&schema);
        Self { schema, rule }
    }

    /// Returns all problems. In a valid input, whole numbers are normalised where the schema asks
    /// for integers: `5.0` becomes 5.
    #[must_use]
    pub fn problems(&self, input: &mut Value) -> Vec<FieldProblem> {
        let mut found = ProblemCollector::default();
        found.value(input, &self.rule);
        let ProblemCollector {
            problems,
            has_point,
            ..
        } = found;
        if has_point && problems.is_empty() {
            // The input is valid, so the check cannot fail.
            let _ = validate::check(input, &self.schema, "");
        }
        problems
    }
}

/// Step of the path to a value.
enum PathStep<'c> {
    Name(&'c str),
    Index(usize),
}

impl PathStep<'_> {
    fn text(&self) -> String {
        match self {
            Self::Name(name) => name.chars().take(MAX_NAME_CHARS).collect(),
            Self::Index(index) => index.to_string(),
        }
    }
}

#[derive(Default)]
struct ProblemCollector<'c> {
    path: Vec<PathStep<'c>>,
    problems: Vec<FieldProblem>,
    /// True if an integer is written with a point or an exponent.
    has_point: bool,
}

impl<'c> ProblemCollector<'c> {
    fn report(&mut self, msg: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            let loc = self.path.iter().map(PathStep::text).collect();
            self.problems.push(FieldProblem {
                loc,
                msg: msg.into(),
            });
        }
    }

    fn value(&mut self, value: &'c Value, rule: &'c SchemaRule) {
        if !self.has_type(value, rule) {
            return self.report(format!("expected {}", rule.expected));
        }
        match value {
            Value::String(text) => self.text(text, rule),
            Value::Number(number) => self.number(number.as_f64().unwrap_or(f64::NAN), rule),
            Value::Array(list) => self.list(list, rule),
            Value::Object(map) => self.object(map, rule),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn has_type(&mut self, value: &'c Value, rule: &'c SchemaRule) -> bool {
        if let Some(choices) = &rule.choices {
            return choices.iter().any(|choice| {
                let mut inner = ProblemCollector::default();
                inner.value(value, choice);
                self.has_point |= inner.has_point;
                inner.problems.is_empty()
            });
        }
        let is_allowed = rule
            .allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(value));
        self.has_point |= rule.types.has(ValueType::Integer) && value.is_f64();
        is_allowed && rule.types.matches(value)
    }

    fn text(&mut self, text: &str, rule: &SchemaRule) {
        let length = text.chars().count() as u64;
        self.size(length, rule.length, "characters");
        if let Some(pattern) = &rule.pattern
            && !pattern.is_match(text)
        {
            self.report(format!("expected text that matches {}", pattern.as_str()));
        }
    }

    fn size(&mut self, size: u64, (minimum, maximum): (u64, u64), unit: &str) {
        if size < minimum {
            self.report(format!("expected at least {minimum} {unit}, found {size}"));
        } else if size > maximum {
            self.report(format!("expected at most {maximum} {unit}, found {size}"));
        }
    }

    fn number(&mut self, number: f64, rule: &SchemaRule) {
        let is_out = rule.minimum.is_some_and(|minimum| number < minimum)
            || rule.maximum.is_some_and(|maximum| number > maximum);
        if is_out {
            self.report(format!("expected {}", rule.expected));
        }
    }

    fn list(&mut self, list: &'c [Value], rule: &'c SchemaRule) {
        self.size(list.len() as u64, rule.item_count, "items");
        for (index, item) in list.iter().enumerate().take(MAX_PROBLEMS) {
            // Items without a rule may be anything.
            if let Some(rule) = rule.item(index) {
                self.inside(PathStep::Index(index), item, rule);
            }
        }
    }

    fn object(&mut self, map: &'c Map<String, Value>, rule: &'c SchemaRule) {
        for property in &rule.properties {
            match member(map, &property.name) {
                None if property.is_required => {
                    self.path.push(PathStep::Name(&property.name));
                    self.report("field required");
                    self.path.pop();
                }
                // An optional field may be null.
                Some(Value::Null) if !property.is_required => {}
                None => {}
                Some(value) => self.inside(PathStep::Name(&property.name), value, &property.rule),
            }
        }
        for (key, value) in map.iter().filter(|(key, _)| !rule.declares(key)) {
            match &rule.additional {
                AdditionalProperties::Any => {}
                AdditionalProperties::Matching(other) => {
                    self.inside(PathStep::Name(key), value, other)
                }
                AdditionalProperties::None => {
                    self.path.push(PathStep::Name(key));
                    self.report("unknown field");
                    self.path.pop();
                }
            }
        }
    }

    fn inside(&mut self, step: PathStep<'c>, value: &'c Value, rule: &'c SchemaRule) {
        if self.problems.len() < MAX_PROBLEMS {
            self.path.push(step);
            self.value(value, rule);
            self.path.pop();
        }
    }
}

/// Returns a member of an object.
fn member<'m>(map: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    match map.len() <= FEW_MEMBERS {
        true => map
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value),
        false => map.get(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(tool: &str, mut input: Value, expected: &str) {
        let registry = crate::tools::all();
        let entry = registry.get(tool).unwrap();
        let problems = InputCheck::of(&entry.schema).problems(&mut input);
        assert_eq!(summary(&problems), expected);
        if expected.is_empty() {
            assert!((entry.from_json)(input).is_ok());
        }
    }

    #[test]
    fn a_whole_number_may_have_a_point() {
        let search = |limit: &str| -> Value {
            serde_json::from_str(&format!("{{\"query\": \"a\", \"limit\": {limit}}}")).unwrap()
        };
        let range = "limit: expected a whole number from 1 to 50";
        for (limit, expected) in [
            ("5.0", ""),
            ("1e0", ""),
            ("5.5", range),
            ("51.0", range),
            ("1e300", range),
            ("-0.0", range),
        ] {
            check("search_content", search(limit), expected);
        }
        // Values without a schema stay as they were sent.
        let registry = crate::tools::all();
        let entry = registry.get("log_user_event").unwrap();
        let mut input = json!({"event_type": "a", "event_data": {"score": 5.0}});
        let sent = input.clone();
        assert_eq!(InputCheck::of(&entry.schema).problems(&mut input), []);
        assert_eq!(input, sent);
    }

    #[test]
    fn every_problem_is_reported() {
        let draft = "create_draft_content";
        check(
            draft,
            json!({}),
            "content_type: field required; title: field required; body: field required",
        );
        check(
            draft,
            json!({"content_type": "poem", "title": "x".repeat(501), "body": ""}),
            "content_type: expected one of \"knowledge\", \"story\", \"guide\", \"announcement\", \"faq\", \"poi\", \"route\"; \
            title: expected at most 500 characters, found 501; body: expected at least 1 characters, found 0",
        );
        let search = "search_content";
        check(
            search,
            json!({"query": "a", "limit": "5"}),
            "limit: expected a whole number from 1 to 50",
        );
        check(
            search,
            json!({"query": "a", "limit": 51, "tags": [1, ""], "x": 1}),
            "tags.0: expected text; tags.1: expected at least 1 characters, found 0; \
            limit: expected a whole number from 1 to 50; x: unknown field",
        );
        check(
            search,
            json!({"query": "a", "status": null, "limit": null}),
            "",
        );
        check(search, json!({"query": null}), "query: expected text");
        check(
            search,
            json!([]),
            "expected an object (child elements or JSON text)",
        );
        check(
            "get_npc_profile",
            json!({"npc_id": "n", "version": 0}),
            "version: expected a whole number from 1 to 4294967295",
        );
        check(
            "get_npc_profile",
            json!({"npc_id": "n", "version": 1.5}),
            "version: expected a whole number from 1 to 4294967295",
        );
        check(
            "log_user_event",
            json!({"event_type": "A b"}),
            "event_type: expected text that matches ^[a-z][a-z0-9_.]{0,99}$",
        );
        check(
            "log_user_event",
            json!({"event_type": "a", "event_data": {"k": [1]}}),
            "",
        );
        check(
            "get_prompt_active",
            json!({"npc_id": "n", "prompt_type": "zzz"}),
            "prompt_type: expected one of \"system\", \"greeting\", \"fallback\"",
        );
    }
}
