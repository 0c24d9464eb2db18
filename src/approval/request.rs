//! The question about calls that goes to a person, and the answer.

use crate::approval::rule::Rules;
use crate::tool::context::Boxed;
use karyi_core::error::ToolError;

/// Asks a person about calls.
pub trait Approver: Send + Sync {
    /// Returns true when a person may answer.
    fn is_available(&self) -> bool {
        true
    }

    /// Asks about the calls of a block together; returns an answer for each, in their order, or `None` when nobody
    /// answers. Requests are shown one at a time; others queue.
    fn approve<'a>(&'a self, calls: &'a [CallQuestion]) -> Boxed<'a, Option<Vec<CallAnswer>>>;
}

/// Keeps rules beyond the run.
pub trait RuleStore: Send + Sync {
    /// Returns the rules as they are now, if they may change during the run.
    ///
    /// # Errors
    /// A file cannot be read, or has a mistake.
    fn rules(&self) -> Option<Result<Rules, ToolError>> {
        None
    }

    /// Adds rules that allow, for the project of the run.
    ///
    /// # Errors
    /// They cannot be stored.
    fn allow(&self, rules: &[String]) -> Result<(), ToolError>;
}

/// Question about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallQuestion {
    /// Id of the call.
    pub id: String,
    /// Name of its tool.
    pub tool: &'static str,
    /// Title of the call for people; not yet safe to show.
    pub title: String,
    /// The whole text that would run or be typed, or the files that would change; not yet safe to show. It has
    /// placeholders and no values.
    pub text: String,
    /// The parts that need consent. None when the call is only held because of another one before it.
    pub parts: Vec<AskedPart>,
    /// True when the person may change the text.
    pub is_editable: bool,
}

impl CallQuestion {
    /// Returns facts to show beside the text, one per line.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let fact = |part: &AskedPart| format!("{}: {}", part.what, part.reason);
        match self.parts.is_empty() {
            true => vec!["it waits for the answer to a call before it".to_owned()],
            false => self.parts.iter().map(fact).collect(),
        }
    }

    /// Returns the rules that the answer "always" stores; `None` when it is not offered.
    #[must_use]
    pub fn rules(&self) -> Option<Vec<String>> {
        let rules: Option<Vec<String>> = self.parts.iter().map(|part| part.rule.clone()).collect();
        rules.filter(|rules| (1..=karyi_core::limits::MAX_STORED_RULES).contains(&rules.len()))
    }

    /// Returns a wider rule that can be stored in place of the only exact one.
    #[must_use]
    pub fn wider_rule(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => part.wider_rule.as_deref(),
            _ => None,
        }
    }
}

/// Part of a call that needs consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedPart {
    /// The simple command, redirection or file; not yet safe to show.
    pub what: String,
    /// The reason in plain words.
    pub reason: String,
    /// Rule that would allow exactly this part, when one can.
    pub rule: Option<String>,
    /// Wider rule that would allow it, too.
    pub wider_rule: Option<String>,
}

impl AskedPart {
    /// Returns a part that no rule can allow.
    #[must_use]
    pub fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
            rule: None,
            wider_rule: None,
        }
    }
}

/// Answer about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAnswer {
    /// It runs.
    Yes,
    /// It does not run; the reason, which may be empty, goes to the model.
    No(String),
    /// It runs, and these rules are stored for the project.
    Always(Vec<String>),
    /// It runs with this text in place of its own.
    Edited(String),
}
