//! Compaction: the model sums the conversation up, and the summary takes the place of the messages.
//!
//! The plan, the open jobs and the last text of the user follow the summary word for word; the system text with the
//! project's notes stays as it is. Nothing in a summary runs.

use crate::chat::history::History;
use crate::chat::observer::{ChatEvent, Observer, show_reasoning};
use crate::exec::cancel::Cancel;
use crate::tool::plan_board::PlanStep;
use karyi_core::limits;
use karyi_core::outcome::JobNews;
use karyi_model::{
    Answer, Message, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, OutputForm,
    Retry, StopReason, Usage,
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
    /// The summary broke off before its end; nothing has changed.
    Cut,
    /// The model could not be used; nothing has changed.
    Failed(Box<ModelError>),
}

/// Message for [`CompactionEnd::Cut`].
pub const CUT: &str = "the summary broke off before its end";

/// Summary of a conversation, or the reason why there is none, with the tokens that it took.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) text: Result<Redacted, CompactionEnd>,
    pub(super) usage: Usage,
}

/// Asks the model for a summary; `focus` says what matters most, and may be empty.
pub(super) async fn summarize(
    model: &dyn Model,
    asked: (&History, &str),
    redactor: &Redactor,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Summary {
    let mut usage = Usage::default();
    let text = receive(
        model.answer(&request(asked, redactor)),
        (redactor, cancel),
        observer,
        &mut usage,
    );
    let text = text.await;
    Summary { text, usage }
}

fn request((history, focus): (&History, &str), redactor: &Redactor) -> ModelRequest {
    let mut request = history.request().clone();
    let mut text = String::from(REQUEST);
    if !focus.trim().is_empty() {
        text.push_str(&format!("\nWhat matters most: {}", focus.trim()));
    }
    request.messages.push(Message::user(redactor.redact(&text)));
    request.output = OutputForm::Text;
    request
}

/// Receives a summary, and adds up its tokens.
async fn receive(
    mut answer: Answer,
    (redactor, cancel): (&Redactor, &Cancel),
    observer: &mut dyn Observer,
    usage: &mut Usage,
) -> Result<Redacted, CompactionEnd> {
    let failed = |error| CompactionEnd::Failed(Box::new(error));
    let mut text = String::new();
    let mut reasoning = redactor.stream();
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.interrupted() => return Err(CompactionEnd::Cancelled),
            event = answer.next() => event,
        };
        match event {
            Some(Ok(ModelEvent::Text(piece))) => {
                show_reasoning(|event| observer.event(event), |out| reasoning.flush(out));
                text.push_str(&piece);
                if text.len() > limits::MAX_CHAT_ANSWER_BYTES {
                    return Err(CompactionEnd::Cut);
                }
            }
            Some(Ok(ModelEvent::Reasoning(piece))) => {
                show_reasoning(
                    |event| observer.event(event),
                    |out| reasoning.push(&piece, out),
                );
            }
            Some(Ok(ModelEvent::Usage(later))) => *usage = usage.updated_by(later),
            Some(Ok(ModelEvent::Retry(Retry { error, delay }))) => {
                let error = error.masked(redactor);
                observer.event(&ChatEvent::Retry(&Retry { error, delay }));
            }
            Some(Ok(ModelEvent::Stop(stop))) => match stop.reason {
                StopReason::End | StopReason::Other => break,
                StopReason::Length => return Err(CompactionEnd::Cut),
                StopReason::Context | StopReason::Content => {
                    let message = format!("the provider stopped the summary: {}", stop.raw);
                    return Err(failed(ModelError::new(ModelErrorKind::Content, message)));
                }
            },
            Some(Err(error)) => return Err(failed(error.masked(redactor))),
            None => return Err(CompactionEnd::Cut),
        }
    }
    if text.trim().is_empty() {
        let message = "the model gave an empty summary";
        return Err(failed(ModelError::new(ModelErrorKind::NoAnswer, message)));
    }
    Ok(redactor.redact_whole_again(text.trim()))
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
