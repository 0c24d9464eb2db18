//! Validates inputs against the schema of their tool.
//!
//! Scripts get one problem at a time; callers over the network get all of them at once, by the same
//! schema.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::schema::ArgumentSchema;
use crate::tool::validate::{self, Problem};
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

/// Validates an input and returns all problems.
#[must_use]
pub fn problems(input: &mut Value, schema: &ArgumentSchema) -> Vec<FieldProblem> {
    let shown = |name: Cow<'_, str>| name.chars().take(MAX_NAME_CHARS).collect();
    let field = |problem: &Problem| FieldProblem {
        loc: problem.path().into_iter().map(shown).collect(),
        msg: problem.message(),
    };
    let found = validate::problems(input, schema.annotated(), MAX_PROBLEMS);
    found.iter().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(tool: &str, mut input: Value, expected: &str) {
        let registry = crate::tools::all();
        let entry = registry.get(tool).unwrap();
        let found = problems(&mut input, &entry.schema);
        assert_eq!(summary(&found), expected);
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
        assert_eq!(problems(&mut input, &entry.schema), []);
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
        check(search, json!([]), "expected an object");
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
