//! Writes news into the log of the state directory and passes them on; what repeats at every look is said once.

use std::sync::Arc;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_tasks::argument::shortened;
use karyi_tasks::event::{AnswerSource, Event, EventContent};
use karyi_tasks::history::{self, Speaker};
use karyi_tasks::lifecycle::Finish;
use karyi_tasks::question;
use karyi_tasks::settle::Settlement;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Task, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_log;
use karyi_tasks::teller_input;
use karyi_vault::redact::Redactor;
use serde_json::{Map, json};

use crate::supervisor::notice::Notice;

/// Takes news.
pub type TakeNotice = Box<dyn FnMut(&Notice) + Send>;

/// Announces what happens.
pub(super) struct Announcer {
    state: Arc<StateDirectory>,
    redactor: Redactor,
    take: TakeNotice,
    /// Last problem that was said.
    problem: Option<String>,
    has_said_tokens: bool,
    /// Question that was shown last.
    question: Option<TaskId>,
    /// Time of the last message that was shown.
    shown_until: Timestamp,
}

impl Announcer {
    /// Makes it for a start. Replies of a session that was cut are told, also when they were told before.
    pub(super) fn new(
        state: Arc<StateDirectory>,
        redactor: Redactor,
        take: TakeNotice,
    ) -> Result<Self, ToolError> {
        let cut = teller_input::cut_session(&state)?;
        Ok(Self {
            state,
            redactor,
            take,
            problem: None,
            has_said_tokens: false,
            question: None,
            shown_until: cut.unwrap_or_else(Timestamp::now),
        })
    }

    /// Returns a text with the values of secrets masked.
    pub(super) fn masked(&self, text: &str) -> String {
        self.redactor.redact_again(text).into_owned()
    }

    /// Logs a notice and passes it on.
    pub(super) fn announce(&mut self, notice: Notice) {
        let notice = notice.masked(&self.redactor);
        // The log is no reason to stop the work.
        let fields = match notice.is_for_user {
            // The history has the text.
            true => Map::new(),
            false => notice.fields.clone(),
        };
        let _ = task_log::log(&self.state, notice.time, notice.event, fields);
        (self.take)(&notice);
    }

    /// Announces a failure of the system, once until another one happens.
    pub(super) fn problem(&mut self, error: &ToolError) {
        let text = format!("{}: {}", error.code.as_str(), error.message);
        if self.problem.as_ref() != Some(&text) {
            self.problem = Some(text.clone());
            let fields = json!({"code": error.code.as_str(), "message": error.message});
            self.announce(Notice::progress("problem", text, fields));
        }
    }

    /// Announces what was found at the start.
    pub(super) fn settled(&mut self, settled: &Settlement) {
        if let Some(answer) = &settled.answer {
            self.question_ended(answer);
        }
        for broken in &settled.broken {
            let path = format!("{}/{}", broken.folder, broken.name);
            let text = format!("{path} is in `corrupt` now: {}", broken.reason);
            let fields = json!({"file": path, "reason": broken.reason});
            self.announce(Notice::progress("broken_file", text, fields));
        }
        for id in &settled.interrupted {
            let text = format!("task {id} was interrupted when the last supervisor ended");
            self.announce(Notice::progress(
                "task_interrupted",
                text,
                json!({"id": id}),
            ));
        }
    }

    /// Announces that a question has ended without a person.
    pub(super) fn question_ended(&mut self, event: &Event) {
        let EventContent::Answer { answer, source, .. } = &event.content else {
            return;
        };
        let text = match source {
            AnswerSource::Default => format!("no answer in time; the default is taken: {answer}"),
            AnswerSource::Timeout | AnswerSource::User => "no answer in time".to_owned(),
        };
        let fields = json!({"question_id": event.id, "answer": answer, "source": source});
        self.announce(Notice::progress("question_ended", text, fields));
    }

    /// Announces tasks that triggers made.
    pub(super) fn queued(&mut self, ids: &[TaskId]) {
        for id in ids {
            let text = format!("a trigger made task {id}");
            self.announce(Notice::progress("task_queued", text, json!({"id": id})));
        }
    }

    /// Announces the start of a task.
    pub(super) fn started(&mut self, role: TaskRole, task: &Task) {
        let prompt = shortened(&task.prompt, limits::MAX_TASK_SUMMARY_CHARS);
        let text = format!("{} {} began: {prompt}", role.as_str(), task.id);
        let fields = json!({
            "id": task.id, "role": role.as_str(), "attempt": task.attempts, "prompt": prompt,
        });
        self.announce(Notice::progress("task_started", text, fields));
    }

    /// Announces the end of a run of a task: `status` and the start of its text.
    pub(super) fn finished(
        &mut self,
        role: TaskRole,
        id: &TaskId,
        end: Finish,
        said: (&str, &str),
    ) {
        let (status, said) = said;
        let said = shortened(said.trim(), limits::MAX_TASK_SUMMARY_CHARS);
        let (event, again) = match end {
            Finish::Final => ("task_ended", None),
            Finish::Again(time) => ("task_again", Some(time)),
        };
        let later = again.map_or("", |_| ", and it runs once more");
        let text = format!("{} {id} {status}{later}: {said}", role.as_str());
        let mut fields = json!({"id": id, "role": role.as_str(), "status": status, "text": said});
        if let Some(time) = again {
            fields["again_at"] = json!(time);
        }
        self.announce(Notice::progress(event, text, fields));
    }

    /// Announces, once, that no token of the day is left.
    pub(super) fn tokens(&mut self, is_left: bool, most: u64) {
        if !is_left && !self.has_said_tokens {
            let text = format!(
                "the {most} tokens of this day (UTC) are used up; the work goes on tomorrow"
            );
            let fields = json!({"max_tokens_per_day": most});
            self.announce(Notice::progress("tokens_used_up", text, fields));
        }
        self.has_said_tokens = !is_left;
    }

    /// Passes on what the Teller has said since the last time.
    ///
    /// # Errors
    /// The system fails.
    pub(super) fn tell_user(&mut self) -> Result<(), ToolError> {
        let open = question::pending(&self.state)?;
        let most = i64::try_from(limits::MAX_TOLD_MESSAGES).unwrap_or(i64::MAX);
        for message in history::recent(&self.state, most, 0)? {
            let is_question =
                |open: &question::PendingQuestion| open.created_at == message.created_at;
            if message.created_at <= self.shown_until || message.role == Speaker::User {
                continue;
            }
            self.shown_until = message.created_at;
            if !open.as_ref().is_some_and(is_question) {
                let fields = json!({"text": message.text});
                self.announce(Notice::to_user("reply", &message.text, fields));
            }
        }
        if let Some(open) = open.filter(|open| self.question.as_ref() != Some(&open.question_id)) {
            let mut text = open.question.clone();
            for (number, option) in (1..).zip(&open.options) {
                text.push_str(&format!("\n{number}. {option}"));
            }
            if let Some(default) = &open.default {
                text.push_str(&format!(
                    "\nwithout an answer until {}: {default}",
                    open.expires_at
                ));
            }
            self.question = Some(open.question_id.clone());
            let fields = json!({
                "question_id": open.question_id, "question": open.question, "options": open.options,
                "default": open.default, "expires_at": open.expires_at,
            });
            self.announce(Notice::to_user("question", &text, fields));
        }
        Ok(())
    }
}
