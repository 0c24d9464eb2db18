//! Limits and result of one turn: the work on one text of the user.

use std::time::Duration;

use karyi_model::{ModelError, Usage};

/// Text of the user for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt<'a> {
    /// Text that the user typed.
    pub text: &'a str,
    /// Files and the like that follow it, already redacted; may be empty.
    pub attached: &'a str,
}

impl<'a> Prompt<'a> {
    /// Returns the prompt of a text alone.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let attached = "";
        Self { text, attached }
    }
}

/// Limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Most requests to the model.
    pub steps: u64,
    /// Most tokens of all requests and answers.
    pub tokens: Option<u64>,
    /// Longest time.
    pub time: Option<Duration>,
}

/// Reason for the end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model was done.
    Done,
    /// It used up its steps.
    Steps,
    /// It used up its tokens.
    Tokens,
    /// Its last answer reached the most tokens that one may have.
    AnswerLength,
    /// It used up its time.
    Time,
    /// It did not get on; the reason.
    Refused(String),
    /// The model could not be used.
    ModelFailed(Box<ModelError>),
    /// The user interrupted it.
    Cancelled,
}

impl TurnEnd {
    /// Returns the word in reports.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Steps => "steps",
            Self::Tokens | Self::AnswerLength => "tokens",
            Self::Time => "time",
            Self::Refused(_) => "refused",
            Self::ModelFailed(_) => "model_failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// Reason for its end.
    pub end: TurnEnd,
    /// Redacted text of the last answer, without its blocks.
    pub answer: String,
    /// Number of requests.
    pub steps: u64,
    /// Tokens of all of them.
    pub usage: Usage,
    /// Tokens of all requests and answers together, estimated where the server counted none.
    pub tokens: u64,
    /// Cost; nothing when a price or a count is unknown.
    pub cost: Option<f64>,
    /// True when the last calls before the end were not permitted.
    pub needs_approval: bool,
}

/// Adds up the tokens of several answers. A count that one of them lacks stays the sum of the others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsageSum {
    pub(super) total: Usage,
    cost: Option<f64>,
    is_cost_unknown: bool,
}

impl UsageSum {
    pub(super) fn add(&mut self, usage: Usage, cost: Option<f64>) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, other) => one.or(other),
        };
        self.total = Usage {
            input: sum(self.total.input, usage.input),
            cached: sum(self.total.cached, usage.cached),
            output: sum(self.total.output, usage.output),
            reasoning: sum(self.total.reasoning, usage.reasoning),
        };
        match cost {
            Some(cost) => self.cost = Some(self.cost.unwrap_or_default() + cost),
            None => self.is_cost_unknown = true,
        }
    }

    /// Returns the cost, unless that of an answer is unknown.
    pub(super) fn cost(&self) -> Option<f64> {
        self.cost.filter(|_| !self.is_cost_unknown)
    }

    /// Returns the tokens so far.
    pub(super) fn tokens(&self) -> u64 {
        let Usage { input, output, .. } = self.total;
        input
            .unwrap_or_default()
            .saturating_add(output.unwrap_or_default())
    }
}
