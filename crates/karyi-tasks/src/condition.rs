//! Condition of a trigger: what files, tasks or a model say, joined by `and` and `or`.

use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::argument::{check_text, misfit, shortened, unknown_word};
use crate::task_id::TaskId;
use crate::watched_files::check_pattern;

/// Condition as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Names, times or sizes of the files of a path or pattern changed.
    FileChanged(String),
    /// A path or pattern has a file.
    FileExists(String),
    /// A task ended well.
    TaskDone(TaskId),
    /// A task failed for good.
    TaskFailed(TaskId),
    /// A model answers yes to a question.
    LlmEval(String),
    /// All hold.
    And(Vec<Condition>),
    /// One holds.
    Or(Vec<Condition>),
}

/// Words of the types of conditions.
const TYPES: &str = "file_changed, file_exists, task_done, task_failed, llm_eval, and or or";

impl Condition {
    /// Reads a condition: an object with `type`, and `params` or `conditions`.
    ///
    /// The parts of `and` and `or` may stand in `params` as well, and `task_id` may be `taskId`.
    ///
    /// # Errors
    /// `bad_arguments` naming the place.
    pub fn parse(value: &Value) -> Result<Self, ToolError> {
        let mut left = limits::MAX_CONDITION_PARTS;
        Self::part("condition", value, 1, &mut left)
    }

    fn part(at: &str, value: &Value, depth: usize, left: &mut usize) -> Result<Self, ToolError> {
        if depth > limits::MAX_CONDITION_DEPTH {
            let expected = format!("at most {} levels", limits::MAX_CONDITION_DEPTH);
            return Err(misfit("condition", &expected, "more"));
        }
        let Some(rest) = left.checked_sub(1) else {
            let expected = format!("at most {} parts", limits::MAX_CONDITION_PARTS);
            return Err(misfit("condition", &expected, "more"));
        };
        *left = rest;
        let object = object(at, value)?;
        only(at, object, &["type", "params", "conditions"])?;
        let kind = object.get("type").and_then(Value::as_str);
        let kind = kind.ok_or_else(|| misfit(&format!("{at}.type"), TYPES, "nothing"))?;
        let empty = Map::new();
        let params_at = format!("{at}.params");
        let params = object
            .get("params")
            .map(|params| self::object(&params_at, params));
        let params = params.transpose()?.unwrap_or(&empty);
        if let "and" | "or" = kind {
            only(&params_at, params, &["conditions"])?;
            let parts = object
                .get("conditions")
                .or_else(|| params.get("conditions"));
            let parts = Self::parts(at, parts, depth, left)?;
            return Ok(match kind {
                "and" => Self::And(parts),
                _ => Self::Or(parts),
            });
        }
        if object.contains_key("conditions") {
            return Err(misfit(at, "`conditions` in `and` or `or` only", kind));
        }
        let text = |names: &[&str]| text(&params_at, params, names);
        let path = || check_pattern(&params_at, text(&["path"])?);
        let task = || TaskId::parse(text(&["task_id", "taskId"])?);
        match kind {
            "file_changed" => Ok(Self::FileChanged(path()?)),
            "file_exists" => Ok(Self::FileExists(path()?)),
            "task_done" => Ok(Self::TaskDone(task()?)),
            "task_failed" => Ok(Self::TaskFailed(task()?)),
            "llm_eval" => {
                let prompt = text(&["prompt"])?;
                check_text(&format!("{params_at}.prompt"), prompt)?;
                Ok(Self::LlmEval(prompt.to_owned()))
            }
            other => Err(unknown_word(&format!("{at}.type"), TYPES, other)),
        }
    }

    fn parts(
        at: &str,
        parts: Option<&Value>,
        depth: usize,
        left: &mut usize,
    ) -> Result<Vec<Self>, ToolError> {
        let parts = parts
            .and_then(Value::as_array)
            .filter(|parts| !parts.is_empty());
        let place = format!("{at}.conditions");
        let parts = parts.ok_or_else(|| misfit(&place, "a list of conditions", "none"))?;
        let parts = parts.iter().enumerate();
        let part =
            |(number, part)| Self::part(&format!("{place}[{number}]"), part, depth + 1, left);
        parts.map(part).collect()
    }

    /// Passes every part without parts of its own to `found`, with its place such as `0.2`.
    pub(crate) fn each_leaf<'a>(&'a self, found: &mut dyn FnMut(String, &'a Self)) {
        self.each_leaf_below(String::new(), found);
    }

    fn each_leaf_below<'a>(&'a self, place: String, found: &mut dyn FnMut(String, &'a Self)) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                for (number, part) in parts.iter().enumerate() {
                    part.each_leaf_below(leaf_place(&place, number), found);
                }
            }
            leaf => found(place, leaf),
        }
    }

    /// Returns the tasks that it waits for, in order.
    #[must_use]
    pub fn task_ids(&self) -> Vec<&TaskId> {
        let mut ids = Vec::new();
        self.each_leaf(&mut |_, leaf| {
            if let Self::TaskDone(id) | Self::TaskFailed(id) = leaf
                && !ids.contains(&id)
            {
                ids.push(id);
            }
        });
        ids
    }

    /// Tells whether a model is asked.
    pub(crate) fn has_question(&self) -> bool {
        let mut found = false;
        self.each_leaf(&mut |_, leaf| found |= matches!(leaf, Self::LlmEval(_)));
        found
    }

    fn to_value(&self) -> Value {
        let list = |parts: &[Self]| parts.iter().map(Self::to_value).collect::<Vec<_>>();
        match self {
            Self::FileChanged(path) => json!({"type": "file_changed", "params": {"path": path}}),
            Self::FileExists(path) => json!({"type": "file_exists", "params": {"path": path}}),
            Self::TaskDone(id) => json!({"type": "task_done", "params": {"taskId": id}}),
            Self::TaskFailed(id) => json!({"type": "task_failed", "params": {"taskId": id}}),
            Self::LlmEval(prompt) => json!({"type": "llm_eval", "params": {"prompt": prompt}}),
            Self::And(parts) => json!({"type": "and", "conditions": list(parts)}),
            Self::Or(parts) => json!({"type": "or", "conditions": list(parts)}),
        }
    }
}

/// Returns the place of a part.
pub(crate) fn leaf_place(place: &str, number: usize) -> String {
    match place {
        "" => number.to_string(),
        _ => format!("{place}.{number}"),
    }
}

fn object<'a>(at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ToolError> {
    let found = || shortened(&value.to_string(), limits::MAX_TASK_SUMMARY_CHARS);
    value
        .as_object()
        .ok_or_else(|| misfit(at, "an object", found()))
}

fn only(at: &str, object: &Map<String, Value>, names: &[&str]) -> Result<(), ToolError> {
    let other = object.keys().find(|key| !names.contains(&key.as_str()));
    let expected = || format!("only {}", names.join(", "));
    other.map_or(Ok(()), |key| Err(unknown_word(at, &expected(), key)))
}

/// Returns the one parameter of a condition.
fn text<'a>(
    at: &str,
    params: &'a Map<String, Value>,
    names: &[&str],
) -> Result<&'a str, ToolError> {
    only(at, params, names)?;
    let name = names.first().copied().unwrap_or_default();
    let mut given = params.values();
    let value = given.next().and_then(Value::as_str);
    value
        .filter(|_| given.next().is_none())
        .ok_or_else(|| misfit(&format!("{at}.{name}"), "one text", "none, or several"))
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(out)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(input)?;
        Self::parse(&value).map_err(|error| serde::de::Error::custom(error.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_are_read_and_one_is_written() {
        let written = json!({"type": "and", "conditions": [
            {"type": "task_done", "params": {"taskId": "A"}},
            {"type": "or", "conditions": [{"type": "file_exists", "params": {"path": "x"}}]},
        ]});
        let other = json!({"type": "and", "params": {"conditions": [
            {"type": "task_done", "params": {"task_id": "A"}},
            {"type": "or", "params": {"conditions": [{"type": "file_exists", "params": {"path": "x"}}]}},
        ]}});
        let read = Condition::parse(&written).unwrap();
        assert_eq!(Condition::parse(&other).unwrap(), read);
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        let mut places = Vec::new();
        read.each_leaf(&mut |place, _| places.push(place));
        assert_eq!(places, ["0", "1.0"]);
    }

    #[test]
    fn conditions_that_say_nothing_are_refused() {
        let nested = |depth: usize| {
            let leaf = json!({"type": "file_exists", "params": {"path": "x"}});
            (1..depth).fold(
                leaf,
                |inner, _| json!({"type": "and", "conditions": [inner]}),
            )
        };
        assert!(Condition::parse(&nested(16)).is_ok());
        let many = vec![json!({"type": "file_exists", "params": {"path": "x"}}); 100];
        for value in [
            json!({}),
            json!(null),
            json!("file_exists"),
            json!({"type": "never"}),
            json!({"type": "and"}),
            json!({"type": "and", "conditions": []}),
            json!({"type": "or", "conditions": [{}]}),
            json!({"type": "file_exists"}),
            json!({"type": "file_exists", "params": {"path": ""}}),
            json!({"type": "file_exists", "params": {"path": "x", "other": 1}}),
            json!({"type": "file_exists", "params": {"path": "x"}, "conditions": []}),
            json!({"type": "task_done", "params": {"task_id": "../../victim"}}),
            json!({"type": "task_done", "params": {"task_id": "a", "taskId": "b"}}),
            json!({"type": "llm_eval", "params": {"prompt": " "}}),
            json!({"type": "and", "conditions": many}),
            nested(17),
        ] {
            let error = Condition::parse(&value).unwrap_err();
            assert_eq!(error.code.as_str(), "bad_arguments", "{value}");
            assert!(
                error.message.contains("condition") || error.message.contains("task_id"),
                "{error}"
            );
        }
    }
}
