//! The last message of a Planner: a text, and at most one JSON object that says how the session ended.

use karyi_tasks::task_result::PlannerQuestion;
use serde::Deserialize;

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
        let Some((before, object, after)) = object(message) else {
            return Ok(Self::Done(message.trim().to_owned()));
        };
        let has_status = object.contains("\"status\"");
        let read: EndObject = match serde_json::from_str(object) {
            Ok(read) => read,
            Err(_) if !has_status => return Ok(Self::Done(message.trim().to_owned())),
            Err(error) => return Err(UnreadableEnd(error.to_string())),
        };
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

/// Finds the JSON object, fenced or bare: the texts before and after it are without its fence.
fn object(message: &str) -> Option<(&str, &str, &str)> {
    let (start, end) = (message.find('{')?, message.rfind('}')?);
    let object = message.get(start..=end)?;
    let before = message.get(..start)?.trim_end();
    let before = before.strip_suffix("json").unwrap_or(before);
    let before = before.strip_suffix("```").unwrap_or(before);
    let after = message.get(end + 1..)?.trim_start();
    let after = after.strip_prefix("```").unwrap_or(after);
    Some((before, object, after))
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
        ] {
            assert!(PlannerEnd::read(message).is_err(), "{message}");
        }
    }
}
