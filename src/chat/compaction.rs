//! Compaction: the model sums the conversation up, and the summary takes the place of the messages.
//!
//! The plan, the open jobs and the last text of the user follow the summary word for word; the system text with the
//! project's notes stays as it is. Nothing in a summary runs.

use crate::chat::history::History;
use crate::chat::observer::{ChatEvent, Observer};
use crate::exec::cancel::Cancel;
use crate::tool::plan_board::PlanStep;
use karyi_core::limits;
use karyi_core::outcome::JobNews;
use karyi_model::{
    Message, Model, ModelError, ModelErrorKind, ModelEvent, OutputForm, Retry, StopReason, Usage,
};
use karyi_vault::redact::{Redacted, Redactor};

/// Request for a summary.
const REQUEST: &str = "\
Sum up this conversation, so that you can go on with the work from your summary alone: everything before it will be
gone. Write no <tools> block. Say briefly, in this order:
1. What the user wants, with every condition and every decision they took, in their words where the words matter.
2. What was done: files changed and why, commands that matter and their results.
3. What was found out: facts about the code, causes of errors, what was tried and did not work.
4. What is left to do, and the very next step.
Keep names, paths, numbers and error messages exact.";

/// End of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum CompactionEnd {
    /// The summary has taken the place of the messages.
    Done,
    /// There is nothing to sum up.
    Nothing,
    /// The user interrupted it; nothing has changed.
    Cancelled,
    /// The model could not be used; nothing has changed.
    Failed(Box<ModelError>),
}

/// Summary of a conversation, with the tokens that it took.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) text: Redacted,
    pub(super) usage: Usage,
}

/// Asks the model for a summary; `focus` says what matters most, and may be empty.
///
/// # Errors
/// [`CompactionEnd`] says why there is none.
pub(super) async fn summarize(
    model: &dyn Model,
    (history, focus): (&History, &str),
    redactor: &Redactor,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Result<Summary, CompactionEnd> {
    let failed = |error| CompactionEnd::Failed(Box::new(error));
    let mut request = history.request().clone();
    let mut text = String::from(REQUEST);
    if !focus.trim().is_empty() {
        text.push_str(&format!("\nWhat matters most: {}", focus.trim()));
    }
    request.messages.push(Message::user(redactor.redact(&text)));
    request.output = OutputForm::Text;
    let mut answer = model.answer(&request);
    let (mut text, mut usage) = (String::new(), Usage::default());
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.interrupted() => return Err(CompactionEnd::Cancelled),
            event = answer.next() => event,
        };
        match event {
            Some(Ok(ModelEvent::Text(piece))) => {
                let room = limits::MAX_CHAT_ANSWER_BYTES.saturating_sub(text.len());
                let end = piece.floor_char_boundary(room);
                text.push_str(piece.get(..end).unwrap_or_default());
            }
            Some(Ok(ModelEvent::Reasoning(piece))) => {
                observer.event(&ChatEvent::Reasoning(&redactor.redact_str(&piece)));
            }
            Some(Ok(ModelEvent::Usage(later))) => usage = usage.updated_by(later),
            Some(Ok(ModelEvent::Retry(Retry { error, delay }))) => {
                let error = error.masked(redactor);
                observer.event(&ChatEvent::Retry(&Retry { error, delay }));
            }
            Some(Ok(ModelEvent::Stop(stop))) => match stop.reason {
                StopReason::End | StopReason::Length | StopReason::Other => break,
                StopReason::Context | StopReason::Content => {
                    let message = format!("the provider stopped the summary: {}", stop.raw);
                    return Err(failed(ModelError::new(ModelErrorKind::Content, message)));
                }
            },
            Some(Err(error)) => return Err(failed(error.masked(redactor))),
            None => break,
        }
    }
    if text.trim().is_empty() {
        let message = "the model gave an empty summary";
        return Err(failed(ModelError::new(ModelErrorKind::Protocol, message)));
    }
    let text = redactor.redact_whole_again(text.trim());
    Ok(Summary { text, usage })
}

/// Returns the message that takes the place of a conversation.
pub(super) fn message(
    summary: &Redacted,
    plan: &[PlanStep],
    jobs: &[JobNews],
    history: &History,
) -> String {
    let mut text = format!("The conversation so far was summed up, by you:\n\n{summary}\n");
    if !plan.is_empty() {
        text.push_str("\nYour plan:\n");
        for step in plan {
            text.push_str(&format!("{} {}\n", step.state.mark(), step.text));
        }
    }
    if !jobs.is_empty() {
        text.push_str("\nJobs that go on:\n");
        for job in jobs {
            let (id, state) = (&job.id, job.state.as_str());
            text.push_str(&format!("- {id}: {} ({state})\n", job.command));
        }
    }
    if let Some((_, last)) = history.user_texts().last() {
        text.push_str(&format!("\nThe last text of the user was:\n\n{last}\n"));
    }
    text.push_str("\nGo on from here. If nothing is left to do, say so.");
    text
}
