//! Writes news into the log of the state directory and passes them on; what repeats at every look is said once.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_tasks::BrokenFile;
use karyi_tasks::argument::shortened;
use karyi_tasks::event::{AnswerSource, Event, EventContent};
use karyi_tasks::history::{self, Speaker};
use karyi_tasks::lifecycle::Finish;
use karyi_tasks::question::{self, PendingQuestion};
use karyi_tasks::settle::Settlement;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Task, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_log;
use karyi_tasks::teller_input;
use karyi_vault::redact::Redactor;
use serde_json::{Map, Value, json};

use crate::supervisor::notice::{Audience, Notice};

/// Takes news, or says why it cannot be passed on.
pub type TakeNotice = Box<dyn FnMut(&Notice) -> io::Result<()> + Send>;

/// Announces what happens.
pub(super) struct Announcer {
    state: Arc<StateDirectory>,
    redactor: Redactor,
    take: TakeNotice,
    /// Problems of this look, and of the one before.
    problems: [BTreeSet<String>; 2],
    has_said_tokens: bool,
    /// Question that was shown last.
    question: Option<TaskId>,
    /// Place in the history behind the last message that was shown.
    shown: u64,
}

impl Announcer {
    /// Makes it for a start. Replies of a session that was cut are told, also when they were told before.
    pub(super) fn new(
        state: Arc<StateDirectory>,
        redactor: Redactor,
        take: TakeNotice,
    ) -> Result<Self, ToolError> {
        let shown = match teller_input::cut_session(&state)? {
            Some(place) => place,
            None => history::since(&state, u64::MAX)?.1,
        };
        Ok(Self {
            state,
            redactor,
            take,
            problems: Default::default(),
            has_said_tokens: false,
            question: None,
            shown,
        })
    }

    /// Returns a text with the values of secrets masked.
    pub(super) fn masked(&self, text: &str) -> String {
        self.redactor.redact_again(text).into_owned()
    }

    /// Logs a notice and passes it on; failing to do so is a problem.
    pub(super) fn announce(&mut self, notice: Notice) {
        if let Err(error) = self.pass_on(notice) {
            self.problem(&error);
        }
    }

    /// Logs a notice and passes it on.
    fn pass_on(&mut self, notice: Notice) -> Result<(), ToolError> {
        let notice = notice.masked(&self.redactor);
        // The log is no reason to stop the work.
        let fields = match notice.audience {
            // The history has the text.
            Audience::User => Map::new(),
            Audience::Operator | Audience::Watcher => notice.fields.clone(),
        };
        let _ = task_log::log(&self.state, notice.time, notice.event, fields);
        (self.take)(&notice).map_err(|error| {
            let message = format!("standard output cannot be written: {error}");
            ToolError::new(ErrorCode::Io, message)
        })
    }

    /// Announces a failure of the system, once until a look goes without it.
    pub(super) fn problem(&mut self, error: &ToolError) {
        let text = format!("{}: {}", error.code.as_str(), error.message);
        let was_known = self.problems[1].contains(&text);
        if self.problems[0].insert(text.clone()) && !was_known {
            let fields = json!({"code": error.code.as_str(), "message": error.message});
            self.announce(Notice::problem("problem", text, fields));
        }
    }

    /// Begins a look.
    pub(super) fn next_look(&mut self) {
        self.problems.rotate_right(1);
        self.problems[0].clear();
    }

    /// Announces what was found at the start.
    pub(super) fn settled(&mut self, settled: &Settlement) {
        if let Some(answer) = &settled.answer {
            self.question_ended(answer);
        }
        self.broken(&settled.broken);
        for id in &settled.interrupted {
            let text = format!("task {id} was interrupted when the last supervisor ended");
            self.announce(Notice::progress(
                "task_interrupted",
                text,
                json!({"id": id}),
            ));
        }
    }

    /// Announces files that were set aside.
    pub(super) fn broken(&mut self, files: &[BrokenFile]) {
        for BrokenFile { path, reason } in files {
            let text = format!("{path} is in `corrupt` now: {reason}");
            let fields = json!({"file": path, "reason": reason});
            self.announce(Notice::problem("broken_file", text, fields));
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
            self.announce(Notice::problem("tokens_used_up", text, fields));
        }
        self.has_said_tokens = !is_left;
    }

    /// Passes on what the Teller has said since the last time.
    ///
    /// # Errors
    /// The system fails, or the output; all that is new is said again then.
    pub(super) fn tell_user(&mut self) -> Result<(), ToolError> {
        let (said, place) = history::since(&self.state, self.shown)?;
        // Later: a question is written before its entry in the history.
        let open = question::pending(&self.state)?;
        for (id, message) in said {
            let mut questions = open.iter().map(|open| &open.question_id);
            let is_question = questions.any(|open| *open == id) || self.question == Some(id);
            if message.role == Speaker::Assistant && !is_question {
                let fields = json!({"text": message.text});
                self.pass_on(Notice::to_user("reply", &message.text, fields))?;
            }
        }
        self.shown = place;
        if let Some(open) = open.filter(|open| self.question.as_ref() != Some(&open.question_id)) {
            let (text, time) = (open.text(), open.expires_at);
            let text = format!("{text}\nAnswer it with `karyi answer TEXT` until {time}.");
            self.pass_on(Notice::to_user("question", &text, question_fields(&open)))?;
            self.question = Some(open.question_id);
        }
        Ok(())
    }
}

/// Returns the facts of a question for programs.
#[must_use]
pub fn question_fields(open: &PendingQuestion) -> Value {
    json!({
        "question_id": open.question_id, "question": open.question, "options": open.options,
        "default": open.default, "expires_at": open.expires_at,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use jiff::{SignedDuration, Timestamp};
    use karyi_core::error::ErrorCode;
    use karyi_tasks::question::QuestionRequest;
    use karyi_vault::session::Secrets;

    use super::*;

    /// An announcer, and the texts that it passed on.
    fn announcer(state: &Arc<StateDirectory>) -> (Announcer, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let take = Box::new(move |notice: &Notice| {
            kept.lock().unwrap().push(notice.text.clone());
            Ok(())
        });
        let redactor = Redactor::new(&Secrets::default());
        let announcer = Announcer::new(Arc::clone(state), redactor, take).unwrap();
        (announcer, told)
    }

    fn taken(told: &Mutex<Vec<String>>) -> Vec<String> {
        std::mem::take(&mut *told.lock().unwrap())
    }

    #[test]
    fn each_reply_is_told_once_whatever_the_clock_says() {
        let temp = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDirectory::open(temp.path()).unwrap());
        let now = Timestamp::now();
        history::reply(&state, "before", now).unwrap();
        let (mut announcer, told) = announcer(&state);
        for days in [0, 1, -1, 0] {
            let time = now + SignedDuration::from_hours(24 * days);
            history::add(&state, Speaker::User, "hello", time).unwrap();
            history::reply(&state, &format!("{days}"), time).unwrap();
            announcer.tell_user().unwrap();
            announcer.tell_user().unwrap();
            assert_eq!(taken(&told), [days.to_string()]);
        }
        let request = QuestionRequest::new("where?", &[], Some(60), Some("here")).unwrap();
        let open = question::ask(&state, TaskId::derived("q", 1), request, now).unwrap();
        announcer.tell_user().unwrap();
        announcer.tell_user().unwrap();
        let time = open.expires_at;
        let text =
            format!("where?\nDefault: here\nAnswer it with `karyi answer TEXT` until {time}.");
        assert_eq!(taken(&told), [text]);
    }

    #[test]
    fn replies_of_a_session_that_was_cut_are_told_again() {
        let temp = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDirectory::open(temp.path()).unwrap());
        let now = Timestamp::now();
        history::reply(&state, "before", now).unwrap();
        karyi_tasks::inbox::add(&state, "hello", now).unwrap();
        let input = teller_input::waiting(&state).unwrap();
        teller_input::begin(&state, &input).unwrap();
        // The clock is set back in the session.
        history::reply(&state, "cut", now - SignedDuration::from_hours(24)).unwrap();
        let (mut announcer, told) = announcer(&state);
        announcer.tell_user().unwrap();
        assert_eq!(taken(&told), ["cut"]);
    }

    #[test]
    fn a_problem_is_told_again_only_when_it_was_gone() {
        let temp = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDirectory::open(temp.path()).unwrap());
        let (mut announcer, told) = announcer(&state);
        let mut look = |problems: &[&str]| {
            announcer.next_look();
            for text in problems {
                announcer.problem(&ToolError::new(ErrorCode::Io, *text));
            }
            taken(&told)
        };
        assert_eq!(look(&["a", "b"]), ["io_error: a", "io_error: b"]);
        assert_eq!(look(&["a", "b", "a"]), [""; 0]);
        assert_eq!(look(&["b"]), [""; 0]);
        assert_eq!(look(&["a", "b"]), ["io_error: a"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_look_reads_what_is_new_and_not_the_whole_history() {
        let temp = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDirectory::open(temp.path()).unwrap());
        history::reply(&state, &"x".repeat(1000), Timestamp::now()).unwrap();
        let file = temp.path().join("history.jsonl");
        let line = fs::read_to_string(&file).unwrap();
        fs::write(&file, line.repeat(50_000)).unwrap();
        let (mut announcer, told) = announcer(&state);
        history::reply(&state, "new", Timestamp::now()).unwrap();
        let read = || {
            let text = fs::read_to_string("/proc/thread-self/io").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
            line.unwrap().parse::<u64>().unwrap()
        };
        let before = read();
        announcer.tell_user().unwrap();
        let bytes = read() - before;
        assert_eq!(taken(&told), ["new"]);
        assert!(bytes < 64 << 10, "{bytes} bytes");
    }
}
