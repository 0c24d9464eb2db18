//! Access of tools to language models.
//!
//! A front end that has models puts an object into the context; a tool asks one question at a time and gets the text of
//! the answer. What goes to a model is masked first.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_model::json_answer;
use karyi_vault::redact::{Redacted, Redactor};

/// Answer on its way.
pub type ModelAnswer<'a> = Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send + 'a>>;

/// Language models that a tool can ask.
pub trait ModelAccess: Send + Sync {
    /// Checks that a model can be asked, before work is put into a question. Nothing is sent.
    ///
    /// # Errors
    /// None is chosen, or the settings have none of this name.
    fn check(&self, model: Option<&str>) -> Result<(), ModelLack>;

    /// Asks a model and returns the text of its answer.
    ///
    /// # Errors
    /// The model cannot be used, or its answer broke off.
    fn ask<'a>(&'a self, question: &'a ModelQuestion) -> ModelAnswer<'a>;
}

/// Reason why no model can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelLack {
    /// None is chosen.
    NoModel,
    /// The settings have no model of this name, but these.
    UnknownName(Vec<String>),
    /// The settings cannot be used.
    BadSettings(String),
}

/// Returns the models of a context, of which one of this name, or the usual one, can be asked by a tool.
///
/// # Errors
/// There are none, or not this one.
pub fn usable(
    models: &Option<Arc<dyn ModelAccess>>,
    tool: &str,
    model: Option<&str>,
) -> Result<Arc<dyn ModelAccess>, ToolError> {
    let models = models
        .as_ref()
        .ok_or_else(|| unavailable(tool, "missing llm client"))?;
    models.check(model).map_err(|lack| lack.into_error(tool))?;
    Ok(Arc::clone(models))
}

fn unavailable(tool: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::NoModel, format!("{tool} unavailable ({why})"))
}

impl ModelLack {
    /// Returns the error of a tool that needs a model.
    #[must_use]
    pub fn into_error(self, tool: &str) -> ToolError {
        match self {
            Self::NoModel => unavailable(tool, "missing llm model"),
            Self::UnknownName(names) => {
                let message = "expected the name of a model in config.toml as `model`";
                let hint = match names.is_empty() {
                    true => "leave `model` out: config.toml names no models".to_owned(),
                    false => format!("use one of {}, or leave `model` out", names.join(", ")),
                };
                ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
            }
            Self::BadSettings(message) => ToolError::new(ErrorCode::NoModel, message)
                .with_hint("correct the settings that the message names"),
        }
    }
}

/// Question to a model whose answer is JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelQuestion {
    /// Name of a model in the settings; the usual model without it.
    pub model: Option<String>,
    /// Task, and form of the answer.
    pub system: Redacted,
    /// Facts, as a JSON object.
    pub message: Redacted,
    /// JSON Schema of the answer, as JSON, for servers that can hold a model to it.
    pub schema: Redacted,
    /// Most tokens of the answer.
    pub max_output: u64,
}

/// Failure to get a usable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReply {
    /// The model could not be asked.
    Failed(ToolError),
    /// Its answers could not be used; with the reason.
    Unusable(String),
}

impl NoReply {
    /// Returns the error of a question without a usable answer.
    #[must_use]
    pub fn into_error(self, question: &str) -> ToolError {
        match self {
            Self::Failed(error) => error,
            Self::Unusable(reason) => {
                let message = format!("invalid {question} response: {reason}");
                ToolError::new(ErrorCode::BadReply, message)
            }
        }
    }
}

/// Task of a model with the facts about it.
#[derive(Debug, Clone)]
pub struct ModelTask<'a> {
    /// Name of a model in the settings; the usual model without it.
    pub model: Option<&'a str>,
    /// Task, and form of the answer.
    pub system: &'a str,
    /// Facts, as a JSON object.
    pub facts: Value,
    /// JSON Schema of the answer.
    pub schema: Value,
    /// Most tokens of the answer.
    pub max_output: u64,
}

impl ModelTask<'_> {
    /// Asks a model and reads its answer. An answer that cannot be used is asked for once more, with the reason.
    ///
    /// # Errors
    /// The model cannot be asked, or both answers cannot be used.
    pub async fn ask<T>(
        &self,
        models: &dyn ModelAccess,
        redactor: &Redactor,
        read: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, NoReply> {
        let mut question = ModelQuestion {
            model: self.model.map(str::to_owned),
            system: redactor.redact(self.system),
            message: redactor.redact(&self.facts.to_string()),
            schema: redactor.redact(&self.schema.to_string()),
            max_output: self.max_output,
        };
        let mut is_second = false;
        loop {
            let answer = models.ask(&question).await.map_err(NoReply::Failed)?;
            let value = json_answer::read(&answer).map_err(|error| error.message);
            let reason = match value.and_then(&read) {
                Ok(reply) => return Ok(reply),
                Err(reason) => reason,
            };
            if is_second {
                return Err(NoReply::Unusable(reason));
            }
            is_second = true;
            let again = format!(
                "{}\nYour last answer could not be used: {reason}. Answer again, with the JSON object alone.",
                self.system
            );
            question.system = redactor.redact(&again);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use karyi_vault::session::Secrets;
    use serde_json::json;

    /// Gives its answers one after the other, and keeps the tasks.
    #[derive(Default)]
    struct Script {
        answers: Mutex<Vec<&'static str>>,
        asked: Mutex<Vec<String>>,
    }

    impl ModelAccess for Script {
        fn check(&self, _: Option<&str>) -> Result<(), ModelLack> {
            Ok(())
        }

        fn ask<'a>(&'a self, question: &'a ModelQuestion) -> ModelAnswer<'a> {
            let system = question.system.as_str().to_owned();
            self.asked.lock().unwrap().push(system);
            let answer = self.answers.lock().unwrap().remove(0).to_owned();
            Box::pin(async move { Ok(answer) })
        }
    }

    async fn check(answers: &[&'static str], expected: Result<u64, NoReply>, questions: usize) {
        let script = Script::default();
        *script.answers.lock().unwrap() = answers.to_vec();
        let task = ModelTask {
            model: None,
            system: "Count.",
            facts: json!({"a": 1}),
            schema: json!({"type": "object"}),
            max_output: 100,
        };
        let redactor = Redactor::new(&Secrets::default());
        let number = |value: Value| value["n"].as_u64().ok_or("`n` is no number".to_owned());
        let found = task.ask(&script, &redactor, number).await;
        assert_eq!(found, expected, "{answers:?}");
        let asked = script.asked.lock().unwrap();
        assert_eq!(asked.len(), questions, "{answers:?}");
        let is_told = |system: &&String| system.contains("could not be used");
        assert_eq!(asked.iter().filter(is_told).count(), questions - 1);
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_used_is_asked_for_once_more() {
        check(&["{\"n\": 3}"], Ok(3), 1).await;
        check(&["Here:\n```json\n{\"n\": 3}\n```\nBye"], Ok(3), 1).await;
        check(&["no", "{\"n\": 4}"], Ok(4), 2).await;
        let unusable = || Err(NoReply::Unusable("`n` is no number".to_owned()));
        check(&["{\"n\": \"x\"}", "{}"], unusable(), 2).await;
    }
}
