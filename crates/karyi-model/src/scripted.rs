//! Model that plays events from a list, for tests of what works with models.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_core::Stream;
use tokio::sync::Semaphore;

use crate::answer::{Answer, ModelEvent, Stop, StopReason};
use crate::config::{ModelConfig, Provider};
use crate::error::{ModelError, ModelErrorKind};
use crate::request::ModelRequest;
use crate::{Model, ModelFuture, ServerFacts};

/// Step of a scripted answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// Gives an event.
    Event(ModelEvent),
    /// Gives an error, which ends the answer.
    Fail(ModelError),
    /// Waits for a permit of the semaphore, and takes it.
    Wait(Arc<Semaphore>),
}

impl Step {
    /// A piece of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Event(ModelEvent::Text(text.to_owned()))
    }

    /// A piece of reasoning.
    #[must_use]
    pub fn reasoning(text: &str) -> Self {
        Self::Event(ModelEvent::Reasoning(text.to_owned()))
    }

    /// The end of an answer.
    #[must_use]
    pub fn stop(reason: StopReason) -> Self {
        let raw = "scripted".to_owned();
        Self::Event(ModelEvent::Stop(Stop { reason, raw }))
    }
}

/// Model that plays answers from a list, and keeps the requests it got.
pub struct ScriptedModel {
    config: ModelConfig,
    /// Facts that the model tells of its server.
    pub facts: ServerFacts,
    answers: Mutex<VecDeque<Vec<Step>>>,
    requests: Mutex<Vec<ModelRequest>>,
    open: Arc<AtomicUsize>,
}

impl ScriptedModel {
    /// Makes a model that gives these answers, one for each request.
    #[must_use]
    pub fn new(answers: Vec<Vec<Step>>) -> Self {
        Self {
            config: ModelConfig::new(Provider::OpenAiChat, "scripted"),
            facts: ServerFacts::default(),
            answers: Mutex::new(answers.into()),
            requests: Mutex::default(),
            open: Arc::default(),
        }
    }

    /// Makes a model that writes these texts, each as one piece and a complete answer.
    #[must_use]
    pub fn texts(texts: &[&str]) -> Self {
        let answer = |text: &&str| vec![Step::text(text), Step::stop(StopReason::End)];
        Self::new(texts.iter().map(answer).collect())
    }

    /// Replaces the settings.
    #[must_use]
    pub fn with_config(mut self, config: ModelConfig) -> Self {
        self.config = config;
        self
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    /// Returns the number of answers that were neither played to their end nor dropped.
    #[must_use]
    pub fn open_answers(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Model for ScriptedModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn answer(&self, request: &ModelRequest) -> Answer {
        lock(&self.requests).push(request.clone());
        let used_up = || {
            let message = "the script has no more answers";
            vec![Step::Fail(ModelError::new(
                ModelErrorKind::Protocol,
                message,
            ))]
        };
        let steps = lock(&self.answers).pop_front().unwrap_or_else(used_up);
        Answer::new(ScriptedAnswer::new(steps, &self.open))
    }

    fn facts(&self) -> ModelFuture<'_, ServerFacts> {
        Box::pin(async { Ok(self.facts.clone()) })
    }
}

struct ScriptedAnswer {
    steps: VecDeque<Step>,
    waiting: Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    open: Option<OpenCount>,
}

impl ScriptedAnswer {
    fn new(steps: Vec<Step>, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self {
            steps: steps.into(),
            waiting: None,
            open: Some(OpenCount(Arc::clone(open))),
        }
    }
}

impl Stream for ScriptedAnswer {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.as_mut().poll(context));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(Step::Event(event)) => return Poll::Ready(Some(Ok(event))),
                Some(Step::Fail(error)) => {
                    self.steps.clear();
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Step::Wait(signal)) => {
                    self.waiting = Some(Box::pin(async move {
                        if let Ok(permit) = signal.acquire().await {
                            permit.forget();
                        }
                    }));
                }
                None => {
                    self.open = None;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

struct OpenCount(Arc<AtomicUsize>);

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_script_is_played_in_order_and_waits_for_its_signal() {
        let signal = Arc::new(Semaphore::new(0));
        let model = ScriptedModel::new(vec![vec![
            Step::text("a"),
            Step::Wait(Arc::clone(&signal)),
            Step::stop(StopReason::End),
        ]]);
        let request = ModelRequest::default();
        let mut answer = model.answer(&request);
        let text = answer.next().await.unwrap().unwrap();
        assert_eq!(text, ModelEvent::Text("a".to_owned()));
        tokio::select! {
            biased;
            event = answer.next() => unreachable!("{event:?} before the signal"),
            () = tokio::task::yield_now() => signal.add_permits(1),
        }
        let end = answer.next().await.unwrap().unwrap();
        assert!(matches!(end, ModelEvent::Stop(_)), "{end:?}");
        assert_eq!(model.open_answers(), 1);
        assert!(answer.next().await.is_none());
        assert_eq!(model.open_answers(), 0);
        assert_eq!(model.requests(), std::slice::from_ref(&request));
        let error = model.answer(&request).next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), "model_protocol");
    }
}
