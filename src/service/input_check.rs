//! Validates inputs against the schema of their tool.
//!
//! Scripts get one problem at a time; callers over the network get all of them at once, by the same
//! schema.

use std::collections::HashMap;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::schema::{self, ArgumentSchema};
use crate::tool::validate;
use karyi_vault::redact::Redactor;

/// Most problems in a response.
const MAX_PROBLEMS: usize = 50;

/// Most characters of a field name in a problem.
const MAX_NAME_CHARS: usize = 100;

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

/// Regular expressions of a schema.
type Patterns = HashMap<String, Regex>;

/// Validates inputs of one tool.
#[derive(Debug)]
pub struct InputCheck {
    schema: Value,
    patterns: Patterns,
}

impl InputCheck {
    /// Creates the check for a schema.
    #[must_use]
    pub fn of(schema: &ArgumentSchema) -> Self {
        let (schema, mut patterns) = (schema.published(), Patterns::new());
        add_patterns(&schema, &mut patterns);
        Self { schema, patterns }
    }

    /// Returns all problems. In a valid input, whole numbers are normalised where the schema asks
    /// for integers: `5.0` becomes 5.
    #[must_use]
    pub fn problems(&self, input: &mut Value) -> Vec<FieldProblem> {
        let mut found = ProblemCollector::new(&self.patterns);
        found.value(input, &self.schema);
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

/// Compiles the patterns of a schema and of all schemas in it.
fn add_patterns(schema: &Value, patterns: &mut Patterns) {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Ok(compiled) = Regex::new(pattern)
    {
        patterns.insert(pattern.to_owned(), compiled);
    }
    match schema {
        Value::Object(map) => map.values().for_each(|inner| add_patterns(inner, patterns)),
        Value::Array(list) => list.iter().for_each(|inner| add_patterns(inner, patterns)),
        _ => {}
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

struct ProblemCollector<'c> {
    patterns: &'c Patterns,
    path: Vec<PathStep<'c>>,
    problems: Vec<FieldProblem>,
    /// True if an integer is written with a point or an exponent.
    has_point: bool,
}

impl<'c> ProblemCollector<'c> {
    fn new(patterns: &'c Patterns) -> Self {
        Self {
            patterns,
            path: Vec::new(),
            problems: Vec::new(),
            has_point: false,
        }
    }

    fn report(&mut self, msg: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            let loc = self.path.iter().map(PathStep::text).collect();
            self.problems.push(FieldProblem {
                loc,
                msg: msg.into(),
            });
        }
    }

    fn report_at(&mut self, name: &'c str, msg: &str) {
        self.path.push(PathStep::Name(name));
        self.report(msg);
        self.path.pop();
    }

    fn value(&mut self, value: &'c Value, schema: &'c Value) {
        let is_out = match value {
            Value::Number(number) => is_out_of_range(number.as_f64().unwrap_or(f64::NAN), schema),
            _ => false,
        };
        if is_out || !self.has_type(value, schema) {
            return self.report(format!("expected {}", schema::expected(schema)));
        }
        match value {
            Value::String(text) => self.text(text, schema),
            Value::Array(list) => self.list(list, schema),
            Value::Object(map) => self.object(map, schema),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn has_type(&mut self, value: &'c Value, schema: &'c Value) -> bool {
        if let Some(choices) = schema::alternatives(schema) {
            return choices.iter().any(|choice| {
                let mut inner = ProblemCollector::new(self.patterns);
                inner.value(value, choice);
                self.has_point |= inner.has_point;
                inner.problems.is_empty()
            });
        }
        let is_allowed = match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(allowed)), _) => allowed.contains(value),
            (_, Some(only)) => only == value,
            _ => true,
        };
        if schema.get("type").is_none() {
            return is_allowed;
        }
        let is = |name| schema::has_type(schema, name);
        let fits = match value {
            Value::Null => is("null"),
            Value::Bool(_) => is("boolean"),
            Value::String(_) => is("string"),
            Value::Array(_) => is("array"),
            Value::Object(_) => is("object"),
            Value::Number(number) => {
                let is_integer = is("integer");
                self.has_point |= is_integer && number.is_f64();
                is("number") || (is_integer && validate::is_whole(number))
            }
        };
        is_allowed && fits
    }

    fn text(&mut self, text: &str, schema: &'c Value) {
        let length = text.chars().count() as u64;
        self.size(length, schema, ["minLength", "maxLength"], "characters");
        let pattern = schema.get("pattern").and_then(Value::as_str);
        if let Some(pattern) = pattern.and_then(|pattern| self.patterns.get(pattern))
            && !pattern.is_match(text)
        {
            self.report(format!("expected text that matches {}", pattern.as_str()));
        }
    }

    fn size(&mut self, size: u64, schema: &Value, [least, most]: [&str; 2], unit: &str) {
        let bound = |key| schema.get(key).and_then(Value::as_u64);
        if let Some(least) = bound(least).filter(|least| size < *least) {
            self.report(format!("expected at least {least} {unit}, found {size}"));
        } else if let Some(most) = bound(most).filter(|most| size > *most) {
            self.report(format!("expected at most {most} {unit}, found {size}"));
        }
    }

    fn list(&mut self, list: &'c [Value], schema: &'c Value) {
        let length = list.len() as u64;
        self.size(length, schema, ["minItems", "maxItems"], "items");
        for (index, item) in list.iter().enumerate().take(MAX_PROBLEMS) {
            self.inside(PathStep::Index(index), item, schema::item(schema, index));
        }
    }

    fn object(&mut self, map: &'c Map<String, Value>, schema: &'c Value) {
        let properties = schema::properties(schema);
        for property in &properties {
            let name = property.name;
            match map.get(name) {
                None if property.is_required => self.report_at(name, "field required"),
                // An optional field may be null.
                Some(Value::Null) if !property.is_required => {}
                None => {}
                Some(value) => self.inside(PathStep::Name(name), value, property.schema),
            }
        }
        let others = schema::others(schema);
        let is_known = |key: &str| properties.iter().any(|property| property.name == key);
        for (key, value) in map.iter().filter(|(key, _)| !is_known(key)) {
            match others {
                Some(others) => self.inside(PathStep::Name(key), value, others),
                None => self.report_at(key, "unknown field"),
            }
        }
    }

    fn inside(&mut self, step: PathStep<'c>, value: &'c Value, schema: &'c Value) {
        // Without a schema a value may be anything.
        if !schema.is_null() && self.problems.len() < MAX_PROBLEMS {
            self.path.push(step);
            self.value(value, schema);
            self.path.pop();
        }
    }
}

/// Tells whether a number is below the least or above the greatest of a schema.
fn is_out_of_range(number: f64, schema: &Value) -> bool {
    let bound = |key| schema.get(key).and_then(Value::as_f64);
    bound("minimum").is_some_and(|minimum| number < minimum)
        || bound("maximum").is_some_and(|maximum| number > maximum)
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
