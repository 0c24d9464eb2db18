//! An answer that has ended: the part that counts, and what went wrong.

use crate::chat::call_results::AnswerResults;
use crate::exec::decoder::MessageProgress;
use karyi_model::{ModelError, ModelErrorKind, Stop, StopReason, Usage};

/// An answer that has ended, with its calls.
#[derive(Debug)]
pub struct AnswerEnd {
    /// Text of the answer, blocks included.
    pub text: String,
    /// Reason for its end.
    pub ending: Ending,
    /// Tokens.
    pub usage: Usage,
    /// How far its calls were read.
    pub progress: MessageProgress,
    /// Results of its calls.
    pub results: AnswerResults,
}

/// Reason for the end of an answer.
#[derive(Debug)]
pub enum Ending {
    /// The model ended it.
    Stopped(Stop),
    /// The rest does not count: a block was refused, or the model made results up.
    Halted,
    /// The model failed, or its answer broke off.
    Failed(ModelError),
    /// The user interrupted it.
    Cancelled,
}

impl Ending {
    /// Returns true when text may be missing at the end.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Stopped(stop) => !matches!(stop.reason, StopReason::End | StopReason::Other),
            Self::Halted => false,
            Self::Failed(_) | Self::Cancelled => true,
        }
    }
}

impl AnswerEnd {
    /// Returns true when the model made results up.
    pub(super) fn is_invented(&self) -> bool {
        self.results.invented_at.is_some()
    }

    /// Returns true when the answer reached the most tokens that one may have.
    pub(super) fn is_too_long(&self) -> bool {
        matches!(&self.ending, Ending::Stopped(stop) if stop.reason == StopReason::Length)
    }

    /// Returns the report for the model; empty when there is none.
    pub(super) fn report(&self) -> &str {
        let report = self.results.report.as_ref();
        report.map_or("", |report| report.as_str())
    }

    /// Returns the part that counts: what the model made up does not.
    pub(super) fn counting(&self) -> &str {
        let end = self.results.invented_at.unwrap_or(u64::MAX);
        self.until(end)
    }

    /// Returns the text up to its last whole call, and closes the block of that.
    pub(super) fn closed(&self) -> String {
        let whole = self.until(self.progress.calls_end);
        format!("{whole}\n</tools>")
    }

    /// Returns the text of an answer that the user interrupted, with its block closed.
    pub(super) fn interrupted(&self) -> String {
        match (self.progress.is_in_block, self.progress.calls) {
            (false, _) => self.text.clone(),
            (true, 0) => format!("{}\n</tools>", self.text),
            (true, _) => self.closed(),
        }
    }

    fn until(&self, end: u64) -> &str {
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        self.text.get(..end).unwrap_or(&self.text)
    }

    /// Returns the error of an answer that broke off.
    pub(super) fn error(&self) -> Option<ModelError> {
        let error = |kind, message: String| Some(ModelError::new(kind, message));
        match &self.ending {
            Ending::Failed(error) => Some(error.clone()),
            Ending::Stopped(Stop { reason, raw }) => match reason {
                StopReason::Content => error(
                    ModelErrorKind::Content,
                    format!("the provider stopped the answer: {raw}"),
                ),
                StopReason::Context => error(
                    ModelErrorKind::Context,
                    format!("the context window is full: {raw}"),
                ),
                StopReason::Length if self.progress.is_in_block => error(
                    ModelErrorKind::Request,
                    format!("the answer reached its most tokens inside a block: {raw}"),
                ),
                StopReason::Length | StopReason::End | StopReason::Other => None,
            },
            Ending::Halted | Ending::Cancelled => None,
        }
    }
}
