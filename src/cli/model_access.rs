//! The models of the settings, for tools that ask one.
//!
//! A model is opened when it is asked: a run that asks none needs no key.

use std::sync::Arc;

use crate::cli::config::{ChosenModel, NoModel, Settings, chosen_model};
use crate::cli::model;
use crate::tool::context::Context;
use crate::tool::model_access::{ModelAccess, ModelAnswer, ModelLack, ModelQuestion};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_model::{
    Message, Model, ModelConfig, ModelError, ModelEvent, ModelRequest, OutputForm, Provider,
};
use karyi_net::ServerUrl;
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Models of the settings.
pub(super) struct ConfiguredModels {
    /// Model of the conversation; that of the environment or the settings without it.
    usual: Option<String>,
    /// Values of their keys.
    secrets: Secrets,
    redactor: Redactor,
}

impl ConfiguredModels {
    /// Makes the models of a run whose secrets hold the keys.
    pub(super) fn of_settings(secrets: &Secrets) -> Option<Arc<dyn ModelAccess>> {
        Some(Self::with_usual(None, secrets))
    }

    fn with_usual(usual: Option<String>, secrets: &Secrets) -> Arc<dyn ModelAccess> {
        Arc::new(Self {
            usual,
            secrets: secrets.clone(),
            redactor: Redactor::new(secrets),
        })
    }

    /// Lets the calls of a context ask the model of its conversation.
    pub(super) fn add_to(context: &mut Context, usual: &ChosenModel) {
        context.models = Some(Self::with_usual(Some(usual.name.clone()), &context.secrets));
    }

    /// Finds a model of the settings by its name, else the usual one.
    fn choose(&self, name: Option<&str>) -> Result<ChosenModel, ModelLack> {
        let broken = |error: &anyhow::Error| ModelLack::BadSettings(format!("{error:#}"));
        let settings = Settings::load().map_err(|error| broken(&error.into()))?;
        if let Some(name) = name
            && !settings.models().contains(&name)
        {
            let names = settings.models().into_iter().map(str::to_owned);
            return Err(ModelLack::UnknownName(names.collect()));
        }
        let chosen = chosen_model(&settings, name.or(self.usual.as_deref()));
        chosen.map_err(|error| match error.is::<NoModel>() {
            true => ModelLack::NoModel,
            false => broken(&error),
        })
    }

    async fn answer(&self, question: &ModelQuestion) -> Result<String, ToolError> {
        let failed = |message: String| {
            ToolError::new(ErrorCode::ModelFailed, self.redactor.redact_again(&message))
        };
        let chosen = self.choose(question.model.as_deref());
        let chosen = chosen.map_err(|lack| lack.into_error("the model is"))?;
        let model = model::open(&chosen, &self.secrets);
        let model = model.map_err(|error| failed(format!("{}: {error:#}", chosen.name)))?;
        let request = ModelRequest {
            system: question.system.clone(),
            messages: vec![Message::user(question.message.clone())],
            max_output: Some(question.max_output),
            temperature: Some(0.0),
            output: OutputForm::Json {
                schema: takes_schema(model.config()).then(|| question.schema.clone()),
            },
            ..ModelRequest::default()
        };
        let text = tokio::time::timeout(limits::MODEL_QUESTION_TIMEOUT, text_of(&*model, &request));
        match text.await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => {
                let error = error.masked(&self.redactor);
                let message = format!("{}: {}: {}", chosen.name, error.code(), error.message);
                Err(ToolError::new(ErrorCode::ModelFailed, message).with_hint(error.hint))
            }
            Err(_) => {
                let seconds = limits::MODEL_QUESTION_TIMEOUT.as_secs();
                Err(failed(format!(
                    "{}: no whole answer within {seconds} s",
                    chosen.name
                )))
            }
        }
    }
}

impl ModelAccess for ConfiguredModels {
    fn check(&self, name: Option<&str>) -> Result<(), ModelLack> {
        self.choose(name).map(|_| ())
    }

    fn ask<'a>(&'a self, question: &'a ModelQuestion) -> ModelAnswer<'a> {
        Box::pin(self.answer(question))
    }
}

/// Returns true for servers that hold a model to a schema; other servers may refuse one.
fn takes_schema(config: &ModelConfig) -> bool {
    let is_local = || ServerUrl::parse(&config.base_url).is_ok_and(|url| url.is_loopback());
    matches!(config.provider, Provider::Ollama | Provider::Gemini) || is_local()
}

/// Returns the text of an answer, as much of it as a conversation would keep.
async fn text_of(model: &dyn Model, request: &ModelRequest) -> Result<String, ModelError> {
    let (mut answer, mut text) = (model.answer(request), String::new());
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::Text(piece) if text.len() < limits::MAX_CHAT_ANSWER_BYTES => {
                text.push_str(&piece);
            }
            ModelEvent::Text(_)
            | ModelEvent::Retry(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Stop(_) => {}
        }
    }
    Ok(text)
}
