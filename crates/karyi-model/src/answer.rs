//! Answer of a model: a stream of events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use crate::config::Price;
use crate::error::ModelError;

/// Answer as it arrives. Its last event is [`ModelEvent::Stop`], or an error; then it ends. Dropping it closes the
/// connection.
pub struct Answer(Option<Events>);

/// Events of an answer.
type Events = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

impl Answer {
    /// Makes an answer of a stream of events.
    #[must_use]
    pub fn new(
        events: impl Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static,
    ) -> Self {
        Self(Some(Box::pin(events)))
    }

    /// Returns the next event; nothing after the last one. A call that is dropped before it returns loses nothing.
    ///
    /// # Errors
    /// The model cannot be used, or its answer broke off.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Polls the events; after the last one they are dropped, and polled no more.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        let Some(events) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let next = ready!(events.as_mut().poll_next(context));
        if next.is_none() {
            self.0 = None;
        }
        Poll::Ready(next)
    }
}

impl Stream for Answer {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// Event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// An attempt failed, and the same request is sent again. Comes only before all other events.
    Retry(Retry),
    /// Piece of the answer.
    Text(String),
    /// Piece of the reasoning: shown, never executed, not sent back.
    Reasoning(String),
    /// Usage so far; a later one replaces it.
    Usage(Usage),
    /// The model has ended its answer.
    Stop(Stop),
}

/// Next attempt after a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Failure of the last attempt.
    pub error: ModelError,
    /// Delay before the next attempt.
    pub delay: Duration,
}

/// End of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Reason.
    pub reason: StopReason,
    /// The provider's word for it, such as `end_turn`.
    pub raw: String,
}

/// Reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model was done, or wrote one of the stop texts: most servers do not distinguish them.
    End,
    /// The answer reached the most tokens it may have.
    Length,
    /// The context window is full.
    Context,
    /// The provider stopped it for safety.
    Content,
    /// Another reason, such as a call of a native tool.
    Other,
}

/// Tokens of a request and its answer; each is absent where the server does not tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the whole prompt, cached ones among them.
    pub input: Option<u64>,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: Option<u64>,
    /// Tokens of the answer, reasoning among them.
    pub output: Option<u64>,
    /// Tokens of the reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Adds what another count of the same answer tells.
    #[must_use]
    pub fn updated_by(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            cached: later.cached.or(self.cached),
            output: later.output.or(self.output),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }

    /// Returns the cost; nothing if the price or a count is unknown.
    #[must_use]
    pub fn cost(&self, price: Price) -> Option<f64> {
        let tokens = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
        let (input, output) = (self.input?, self.output?);
        let cached = self.cached.unwrap_or_default().min(input);
        let fresh = tokens(input - cached) * price.input;
        let known = tokens(cached) * price.cached.unwrap_or(price.input);
        Some((fresh + known + tokens(output) * price.output) / TOKENS_OF_A_PRICE)
    }
}

/// Prices are per million tokens.
const TOKENS_OF_A_PRICE: f64 = 1_000_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_needs_price_and_counts() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cached: Some(0.3),
        };
        let usage = Usage {
            input: Some(1_500_000),
            cached: Some(1_000_000),
            output: Some(100_000),
            reasoning: None,
        };
        assert_eq!(usage.cost(price), Some(1.5 + 0.3 + 1.5));
        let without_cache = Price {
            cached: None,
            ..price
        };
        assert_eq!(usage.cost(without_cache), Some(4.5 + 1.5));
        let unknown = Usage {
            output: None,
            ..usage
        };
        assert_eq!(unknown.cost(price), None);
    }

    #[test]
    fn a_later_count_replaces_an_earlier_one() {
        let first = Usage {
            input: Some(7),
            output: Some(1),
            ..Usage::default()
        };
        let last = Usage {
            output: Some(9),
            ..Usage::default()
        };
        let expected = Usage {
            input: Some(7),
            output: Some(9),
            ..Usage::default()
        };
        assert_eq!(first.updated_by(last), expected);
    }
}
