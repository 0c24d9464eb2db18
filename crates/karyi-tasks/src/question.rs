//! The one question to the user: asked, then answered or expired.
//!
//! The answer is an event with the identifier of the question. It is written before the question is removed, so a
//! killed process leaves both, and the next look removes the question.

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::argument::{check_text, misfit, seconds, shortened, unknown_word};
use crate::event::{AnswerSource, Event, EventContent};
use crate::folder::{LoadFailure, json, load_json};
use crate::history::{self, HistoryEntry, Speaker};
use crate::state_directory::StateDirectory;
use crate::state_folder::ChangeLock;
use crate::task_id::TaskId;
use crate::trigger::after;

/// Name of the file.
const FILE: &str = "pending_question.json";

/// Checked question that is not asked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRequest {
    question: String,
    options: Vec<String>,
    timeout: u64,
    default: Option<String>,
}

/// Question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PendingQuestion {
    /// Identifier.
    pub question_id: TaskId,
    /// Text.
    pub question: String,
    /// Possible answers, if they are limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Seconds that it waits.
    pub timeout: u64,
    /// Answer after that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Time when it was asked.
    pub created_at: Timestamp,
    /// Time when it ends.
    pub expires_at: Timestamp,
}

impl QuestionRequest {
    /// Checks a question; without `timeout`, in seconds, it waits an hour.
    ///
    /// # Errors
    /// `bad_arguments` naming the argument.
    pub fn new(
        question: &str,
        options: &[String],
        timeout: Option<i64>,
        default: Option<&str>,
    ) -> Result<Self, ToolError> {
        check_text("question", question)?;
        check_options(options)?;
        if let Some(default) = default {
            check_text("default", default)?;
            if !options.is_empty() && !options.iter().any(|option| option == default) {
                return Err(unknown_word("default", "one of the options", default));
            }
        }
        let most = limits::MAX_QUESTION_TIMEOUT;
        let timeout = timeout.map(|value| seconds("timeout", value, 1, most));
        Ok(Self {
            question: question.to_owned(),
            options: options.to_vec(),
            timeout: timeout
                .transpose()?
                .unwrap_or(limits::DEFAULT_QUESTION_TIMEOUT.as_secs()),
            default: default.map(str::to_owned),
        })
    }
}

fn check_options(options: &[String]) -> Result<(), ToolError> {
    if options.len() > limits::MAX_QUESTION_OPTIONS {
        let expected = format!("at most {} options", limits::MAX_QUESTION_OPTIONS);
        return Err(misfit("options", &expected, options.len()));
    }
    for (number, option) in options.iter().enumerate() {
        check_text("options", option)?;
        let mut earlier = options.iter().take(number);
        if earlier.any(|other| other.trim() == option.trim()) {
            let found = shortened(option, limits::MAX_TASK_SUMMARY_CHARS);
            return Err(misfit(
                "options",
                "different texts",
                format!("{found:?} twice"),
            ));
        }
    }
    Ok(())
}

impl PendingQuestion {
    /// Returns the question with its numbered options, as a person reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.question.clone();
        for (number, option) in self.options.iter().enumerate() {
            text += &format!("\n{}. {option}", number + 1);
        }
        if let Some(default) = &self.default {
            text += &format!("\nDefault: {default}");
        }
        text
    }

    /// Tells whether its time is up.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Checks what the type does not say.
    fn check(&self) -> Result<(), String> {
        let timeout = i64::try_from(self.timeout).unwrap_or(i64::MAX);
        let default = self.default.as_deref();
        let checked = QuestionRequest::new(&self.question, &self.options, Some(timeout), default);
        checked.map_err(|error| error.message)?;
        match self.expires_at == after(self.created_at, self.timeout) {
            true => Ok(()),
            false => Err("`expiresAt` is not `timeout` seconds after `createdAt`".into()),
        }
    }

    /// Returns the answer that a text means: an option or its number, or any text where there are no options.
    fn answer(&self, text: &str) -> Result<String, ToolError> {
        let text = text.trim();
        check_text("answer", text)?;
        if self.options.is_empty() {
            return Ok(text.to_owned());
        }
        let named = self.options.iter().find(|option| option.trim() == text);
        let number = text
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let numbered = || self.options.get(number?);
        named.or_else(numbered).cloned().ok_or_else(|| {
            let expected = format!("one of {}, or its number", self.options.join(", "));
            unknown_word("answer", &expected, text)
        })
    }

    /// Makes the event of an answer.
    fn answered(self, answer: String, source: AnswerSource, now: Timestamp) -> Event {
        Event {
            id: self.question_id,
            created_at: now,
            content: EventContent::Answer {
                question: self.question,
                answer,
                source,
            },
        }
    }

    fn history_entry(&self) -> HistoryEntry {
        HistoryEntry::new(
            self.question_id.clone(),
            Speaker::Assistant,
            &self.text(),
            self.created_at,
        )
    }
}

/// Asks the user.
///
/// # Errors
/// `question_pending` while another question waits, or the system fails.
pub fn ask(
    state: &StateDirectory,
    id: TaskId,
    request: QuestionRequest,
    now: Timestamp,
) -> Result<PendingQuestion, ToolError> {
    let lock = state.lock()?;
    if let Some(open) = pending_locked(state, &lock)? {
        if open.question_id == id {
            return Ok(open);
        }
        let message = format!(
            "expected no open question, found {} ({})",
            open.question_id, open.question
        );
        return Err(ToolError::new(ErrorCode::QuestionPending, message));
    }
    let pending = PendingQuestion {
        question_id: id,
        question: request.question,
        options: request.options,
        timeout: request.timeout,
        default: request.default,
        created_at: now,
        expires_at: after(now, request.timeout),
    };
    state.root.write_new(FILE, &json(&pending)?)?;
    history::add_once(state, &lock, &[pending.history_entry()])?;
    Ok(pending)
}

/// Returns the question that waits for an answer.
///
/// # Errors
/// The system fails.
pub fn pending(state: &StateDirectory) -> Result<Option<PendingQuestion>, ToolError> {
    pending_locked(state, &state.lock()?)
}

fn pending_locked(
    state: &StateDirectory,
    lock: &ChangeLock,
) -> Result<Option<PendingQuestion>, ToolError> {
    let Some(pending) = state.read_json(FILE, PendingQuestion::check)? else {
        return Ok(None);
    };
    match state.events.get(&pending.question_id)? {
        None => Ok(Some(pending)),
        Some(event) => {
            complete(state, lock, &event)?;
            Ok(None)
        }
    }
}

/// Returns why the file of the question cannot be used, and leaves it where it is.
#[must_use]
pub fn defect(state: &StateDirectory) -> Option<String> {
    match load_json::<PendingQuestion>(&state.root, FILE) {
        Ok(question) => question?.check().err(),
        Err(LoadFailure::Broken(reason)) => Some(reason),
        Err(LoadFailure::System(error)) => Some(error.message),
    }
}

/// Answers the open question; `id` names it where the caller knows it.
///
/// # Errors
/// `not_found` when no such question waits, `bad_arguments` listing the options, or the system fails.
pub fn answer(
    state: &StateDirectory,
    id: Option<&TaskId>,
    text: &str,
    now: Timestamp,
) -> Result<String, ToolError> {
    let lock = state.lock()?;
    let pending = pending_locked(state, &lock)?;
    let pending =
        pending.filter(|open| id.is_none_or(|id| *id == open.question_id) && !open.is_expired(now));
    let Some(pending) = pending else {
        let message = "expected an open question, found none that waits for this answer";
        return Err(ToolError::new(ErrorCode::NotFound, message)
            .with_hint("say it with `karyi tell`; `karyi tasks` shows an open question"));
    };
    let answer = pending.answer(text)?;
    history::add_once(state, &lock, &[pending.history_entry()])?;
    settle(
        state,
        &lock,
        pending.answered(answer.clone(), AnswerSource::User, now),
    )?;
    Ok(answer)
}

/// Ends a question whose time has passed, and returns its answer.
///
/// # Errors
/// The system fails.
pub fn expire(state: &StateDirectory, now: Timestamp) -> Result<Option<Event>, ToolError> {
    if !state.root.has(FILE)? {
        return Ok(None);
    }
    let lock = state.lock()?;
    let Some(pending) = pending_locked(state, &lock)? else {
        return Ok(None);
    };
    if pending.expires_at > after(now, pending.timeout.saturating_mul(2)) {
        // The clock was set back by more than its time: it waits its time from now on.
        let moved = PendingQuestion {
            created_at: now,
            expires_at: after(now, pending.timeout),
            ..pending
        };
        state.root.write(FILE, &json(&moved)?)?;
        return Ok(None);
    }
    if !pending.is_expired(now) {
        return Ok(None);
    }
    // Whoever asked may have been killed before this.
    history::add_once(state, &lock, &[pending.history_entry()])?;
    let (answer, source) = match pending.default.clone() {
        Some(default) => (default, AnswerSource::Default),
        None => (String::new(), AnswerSource::Timeout),
    };
    settle(state, &lock, pending.answered(answer, source, now)).map(Some)
}

/// Answers the question.
fn settle(state: &StateDirectory, lock: &ChangeLock, event: Event) -> Result<Event, ToolError> {
    state.events.write_new(&event)?;
    complete(state, lock, &event)?;
    Ok(event)
}

/// Does what follows from an answer; steps that were done before are left out.
fn complete(state: &StateDirectory, lock: &ChangeLock, event: &Event) -> Result<(), ToolError> {
    if let EventContent::Answer {
        answer,
        source: AnswerSource::User,
        ..
    } = &event.content
    {
        let id = event.id.run(1);
        let entry = HistoryEntry::new(id, Speaker::User, answer, event.created_at);
        history::add_once(state, lock, &[entry])?;
    }
    state.root.remove(FILE)?;
    Ok(())
}
