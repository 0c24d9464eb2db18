//! The last message of a Planner: a text, and at most one JSON object that says how the session ended.

use karyi_tasks::task_result::PlannerQuestion;
use serde::Deserialize;
use serde_json::Value;

/// End of a Planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannerEnd {
    /// It ended well; the text for the Teller may be empty.
    Done(String),
    /// It needs an answer.
    NeedsInput(PlannerQuestion),
    /// It failed.
    Failed(String),
}

/// Reason why a last message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEnd(pub String);

/// JSON object of a last message.
#[derive(Deserialize)]
struct EndObject {
    status: String,
    question: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    default: Option<String>,
    error: Option<String>,
}

impl PlannerEnd {
    /// Reads the last message.
    ///
    /// # Errors
    /// It holds a status that cannot be read.
    pub fn read(message: &str) -> Result<Self, UnreadableEnd> {
        let (before, object, after) = match status_object(message) {
            StatusObject::None => return Ok(Self::Done(message.trim().to_owned())),
            StatusObject::Unreadable(reason) => return Err(UnreadableEnd(reason)),
            StatusObject::One(before, object, after) => (before, object, after),
        };
        let read: EndObject =
            serde_json::from_str(object).map_err(|error| UnreadableEnd(error.to_string()))?;
        let is_text = |text: &String| !text.trim().is_empty();
        match read.status.as_str() {
            "done" => {
                let texts = [before.trim(), after.trim()];
                Ok(Self::Done(texts.join("\n").trim().to_owned()))
            }
            "needs_input" => match read.question.filter(is_text) {
                Some(question) => Ok(Self::NeedsInput(PlannerQuestion {
                    question,
                    options: read.options,
                    default: read.default,
                })),
                None => Err(UnreadableEnd("needs_input has no `question`".to_owned())),
            },
            "failed" => {
                let error = read.error.filter(is_text);
                let error = error.unwrap_or_else(|| "the Planner gave no reason".to_owned());
                Ok(Self::Failed(error))
            }
            _ => Err(UnreadableEnd(
                "`status` is none of done, needs_input, failed".to_owned(),
            )),
        }
    }
}

/// JSON object with a status in a message.
enum StatusObject<'a> {
    /// There is none, and nothing that looks like one.
    None,
    /// The texts before and after it, without its fence, and the object.
    One(&'a str, &'a str, &'a str),
    /// There are several, or what looks like one is no JSON.
    Unreadable(String),
}

/// Finds the JSON object that has a status, fenced or bare; other braces are text.
fn status_object(message: &str) -> StatusObject<'_> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = message.get(at..).and_then(|rest| rest.find('{')) {
        let start = at + start;
        let rest = message.get(start..).unwrap_or_default();
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        at = match objects.next() {
            Some(Ok(object)) => {
                let end = start + objects.byte_offset();
                if object.get("status").is_some() {
                    found.push((start, end));
                }
                end
            }
            _ => start + 1,
        };
    }
    let looks_so = || {
        let text = message.to_lowercase();
        let mut parts = text.split("status").skip(1);
        text.contains('{')
            && parts.any(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    match found.as_slice() {
        [(start, end)] => {
            let before = message.get(..*start).unwrap_or_default().trim_end();
            let before = before.strip_suffix("json").unwrap_or(before);
            let before = before.strip_suffix("```").unwrap_or(before);
            let after = message.get(*end..).unwrap_or_default().trim_start();
            let after = after.strip_prefix("```").unwrap_or(after);
            StatusObject::One(before, message.get(*start..*end).unwrap_or_default(), after)
        }
        [] if looks_so() => {
            StatusObject::Unreadable("the object with `status` is no JSON".to_owned())
        }
        [] => StatusObject::None,
        _ => StatusObject::Unreadable("several objects have a `status`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_bare_or_fenced_and_without_one_it_is_done() {
        let check = |message: &str, expected: PlannerEnd| {
            assert_eq!(PlannerEnd::read(message), Ok(expected), "{message}");
        };
        let done = |text: &str| PlannerEnd::Done(text.to_owned());
        check("Two tasks.", done("Two tasks."));
        check("", done(""));
        check("{\"status\":\"done\"}", done(""));
        check(
            "Use ${HOME} here. {\"status\":\"done\"}",
            done("Use ${HOME} here."),
        );
        check(
            "{\"a\":1} and {\"status\":\"done\"} {",
            done("{\"a\":1} and\n{"),
        );
        check("Two.\n```json\n{\"status\": \"done\"}\n```\n", done("Two."));
        check("the set {1, 2}", done("the set {1, 2}"));
        check("{\"other\": 1}", done("{\"other\": 1}"));
        check(
            "{\"status\":\"failed\",\"error\":\"no\"}",
            PlannerEnd::Failed("no".into()),
        );
        check(
            "{\"status\":\"needs_input\",\"question\":\"where?\",\"options\":[\"a\",\"b\"],\"default\":\"a\"}",
            PlannerEnd::NeedsInput(PlannerQuestion {
                question: "where?".into(),
                options: vec!["a".into(), "b".into()],
                default: Some("a".into()),
            }),
        );
    }

    #[test]
    fn a_status_that_cannot_be_read_is_an_error() {
        for message in [
            "{\"status\":\"maybe\"}",
            "{\"status\":\"needs_input\"}",
            "{\"status\":\"done\",}",
            "{\"status\": 1}",
            "{\"status\":\"done\"} {\"status\":\"failed\"}",
            "{'status': 'needs_input', 'question': 'where?'}",
            "{status: \"failed\"}",
            "{\"Status\":\"failed\",\"error\":\"x\"}",
        ] {
            assert!(PlannerEnd::read(message).is_err(), "{message}");
        }
    }
}
