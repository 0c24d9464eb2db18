//! The plan that the model keeps: a list of steps, replaced as a whole.

use std::sync::{Arc, Mutex, PoisonError};

use karyi_vault::redact::Redacted;

/// Step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// Its state.
    pub state: StepState,
    /// Its text.
    pub text: Redacted,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// Not begun.
    Open,
    /// Being worked on.
    Active,
    /// Finished.
    Done,
}

impl StepState {
    /// Every state, in the order of a step's life.
    pub const ALL: [Self; 3] = [Self::Open, Self::Active, Self::Done];

    /// Returns the word in calls and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Done => "done",
        }
    }

    /// Returns the state of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Returns the mark before a step in lists for people.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Open => "[ ]",
            Self::Active => "[>]",
            Self::Done => "[x]",
        }
    }
}

/// The plan of a session. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PlanBoard(Arc<Mutex<Vec<PlanStep>>>);

impl PlanBoard {
    /// Replaces the steps.
    pub fn replace(&self, steps: Vec<PlanStep>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = steps;
    }

    /// Returns the steps.
    #[must_use]
    pub fn steps(&self) -> Vec<PlanStep> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.clone()
    }
}
