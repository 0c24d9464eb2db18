//! The conversation and the shell of the assistant, and the work that is under way on them.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinHandle;

use crate::chat::answer_run::AnswerRunner;
use crate::chat::compaction::CompactionEnd;
use crate::chat::conversation::Conversation;
use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::turn::{Prompt, TurnReport};
use crate::cli::assistant::parts::{Opening, Parts};
use crate::cli::assistant::start::ModelChange;
use crate::cli::assistant::view::SharedView;
use crate::exec::cancel::Cancel;
use crate::tool::sessions::{JOB_PREFIX, Sessions};
use crate::tools::Call;
use karyi_core::outcome::Status;
use karyi_model::ModelRequest;

/// A text of the user, with the files that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UserText {
    pub(super) text: String,
    pub(super) files: Vec<NamedFile>,
}

/// A file, a directory or the output of a job that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    src: String,
    /// Its lines, as `<read>` takes them.
    lines: Option<String>,
}

/// A command of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserCommand {
    pub(super) script: String,
    /// True when the model learns of it.
    pub(super) is_told: bool,
}

/// End of the work.
pub(super) enum WorkEnd {
    /// The model has ended its turn.
    Turn(Box<TurnReport>),
    /// A command of the user has ended.
    Command,
    /// A command of the user waits for what they type.
    Waiting,
    /// The conversation was summed up, or not.
    Compaction(CompactionEnd),
    /// The conversation is as before a text, which is edited again.
    Rewound(String),
    /// The model was changed: the start of conversations, and the tokens of its context.
    Model(Box<ModelRequest>, Option<u64>),
    /// The start of conversations is known.
    Opened(anyhow::Result<Box<Opening>>),
    /// A bug ended it, and the conversation with it.
    Lost,
}

/// The conversation with its work.
pub(super) struct Talk {
    state: State,
    /// True until the start of conversations is known.
    is_opening: bool,
    /// True while the model works on a turn.
    is_turn: bool,
}

enum State {
    Idle(Box<Parts>),
    Busy(JoinHandle<(Option<Box<Parts>>, WorkEnd)>, Cancel),
    Lost,
}

impl Talk {
    /// Waits for the start of conversations.
    pub(super) fn opening<F>(opening: F) -> Self
    where
        F: Future<Output = anyhow::Result<Opening>> + Send + 'static,
    {
        let work = async { (None, WorkEnd::Opened(opening.await.map(Box::new))) };
        Self {
            state: State::Busy(tokio::spawn(work), Cancel::default()),
            is_opening: true,
            is_turn: false,
        }
    }

    /// Takes a conversation on which nothing works.
    pub(super) fn open(&mut self, parts: Parts) {
        self.state = State::Idle(Box::new(parts));
        self.is_opening = false;
    }

    /// Returns true while the model works on a turn, which a text may join.
    pub(super) fn has_turn(&self) -> bool {
        self.is_busy() && self.is_turn
    }

    /// Returns true while work is under way that the user may interrupt.
    pub(super) fn is_interruptible(&self) -> bool {
        self.is_busy() && !self.is_opening
    }

    /// Returns true while the model or a command works.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(..))
    }

    /// Returns the conversation, unless something works on it.
    pub(super) fn idle(&mut self) -> Option<&mut Parts> {
        match &mut self.state {
            State::Idle(parts) => Some(parts),
            State::Busy(..) | State::Lost => None,
        }
    }

    /// Gives a text to the model.
    pub(super) fn start_turn(&mut self, text: UserText, mut view: SharedView) {
        self.start(move |mut parts, cancel| async move {
            let mut attached = String::new();
            for file in &text.files {
                if let Some(report) = read(&mut parts.own, file, &cancel).await {
                    attached.push_str(&report);
                    attached.push('\n');
                }
            }
            let prompt = Prompt {
                text: &text.text,
                attached: &attached,
            };
            let turn = parts.conversation.turn_until(prompt, &cancel, &mut view);
            let report = Box::new(turn.await);
            (Some(parts), WorkEnd::Turn(report))
        });
        self.is_turn = self.is_busy();
    }

    /// Runs a command of the user.
    pub(super) fn start_command(
        &mut self,
        command: UserCommand,
        mut view: SharedView,
        sessions: Arc<Sessions>,
    ) {
        self.start(move |mut parts, cancel| async move {
            parts.own.replace_cancel(&cancel);
            let arguments = json!({"text": command.script});
            if let Ok(call) = serde_json::from_value(arguments).map(Call::Command) {
                let report = parts.own.run_shown_call(call, &mut view).await;
                if let Some(report) = report.filter(|_| command.is_told) {
                    let text = format!("The user ran a command:\n{}", report.as_str());
                    parts.conversation.tell(&text);
                }
            }
            let end = match waits(&sessions).await {
                true => WorkEnd::Waiting,
                false => WorkEnd::Command,
            };
            (Some(parts), end)
        });
    }

    /// Changes the model.
    pub(super) fn start_model(&mut self, change: ModelChange) {
        self.start(|mut parts, _| async move {
            let (request, window) = change.apply(&mut parts.conversation).await;
            (Some(parts), WorkEnd::Model(Box::new(request), window))
        });
    }

    /// Does work that nothing else may go beside, and then changes the conversation.
    pub(super) fn start_own(
        &mut self,
        work: impl Future<Output = ()> + Send + 'static,
        then: impl FnOnce(&mut Conversation) -> WorkEnd + Send + 'static,
    ) {
        self.start(|mut parts, _| async move {
            work.await;
            let end = then(&mut parts.conversation);
            (Some(parts), end)
        });
    }

    /// Lets the model sum the conversation up; the focus may be empty.
    pub(super) fn start_compaction(&mut self, focus: String, mut view: SharedView) {
        self.start(move |mut parts, cancel| async move {
            let compaction = parts.conversation.compact(&focus, &cancel, &mut view);
            let end = compaction.await;
            (Some(parts), WorkEnd::Compaction(end))
        });
    }

    fn start<F>(&mut self, work: impl FnOnce(Box<Parts>, Cancel) -> F)
    where
        F: Future<Output = (Option<Box<Parts>>, WorkEnd)> + Send + 'static,
    {
        self.state = match std::mem::replace(&mut self.state, State::Lost) {
            State::Idle(parts) => {
                let cancel = parts.conversation.turn_cancel();
                State::Busy(tokio::spawn(work(parts, cancel.clone())), cancel)
            }
            other => other,
        };
    }

    /// Ends the work; the shell lives on.
    pub(super) fn interrupt(&self) {
        if let State::Busy(_, cancel) = &self.state {
            cancel.cancel();
        }
    }

    /// Waits until nothing works.
    pub(super) async fn stopped(&mut self) {
        if self.is_busy() {
            self.ended().await;
        }
    }

    /// Waits for the end of the work; without any it waits forever. Cancel-safe.
    pub(super) async fn ended(&mut self) -> WorkEnd {
        let State::Busy(task, _) = &mut self.state else {
            return pending().await;
        };
        let ended = task.await;
        self.is_turn = false;
        match ended {
            Ok((parts, end)) => {
                self.state = parts.map_or(State::Lost, State::Idle);
                end
            }
            Err(_) => {
                self.state = State::Lost;
                WorkEnd::Lost
            }
        }
    }
}

/// Returns the report of a file.
async fn read(runner: &mut AnswerRunner, file: &NamedFile, cancel: &Cancel) -> Option<String> {
    let arguments = json!({"files": [{"src": file.src, "lines": file.lines}]});
    let call = serde_json::from_value(arguments).map(Call::Read).ok()?;
    runner.replace_cancel(cancel);
    let report = runner.run_shown_call(call, &mut Silence).await?;
    Some(report.into_string())
}

/// Observer that shows nothing.
struct Silence;

impl Observer for Silence {
    fn event(&mut self, _: &ChatEvent<'_>) {}
}

/// Returns what a text names as `@PATH`, `@PATH:LINES` or `@job:ID`: files and directories that exist below a directory,
/// and jobs.
pub(super) fn named_files(text: &str, directory: &Path) -> Vec<NamedFile> {
    let words = text.split_whitespace();
    let names = words.filter_map(|word| word.strip_prefix('@'));
    let names = names.map(|name| name.trim_end_matches([',', '.', ';', ':', ')', '?']));
    let mut found: Vec<NamedFile> = Vec::new();
    for file in names.filter_map(|name| named_file(name, directory)) {
        if !found.contains(&file) {
            found.push(file);
        }
    }
    found
}

fn named_file(name: &str, directory: &Path) -> Option<NamedFile> {
    let exists = |path: &str| !path.is_empty() && directory.join(path).exists();
    let is_range = |lines: &str| {
        lines.contains(|c: char| c.is_ascii_digit())
            && lines.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let is_job = |name: &str| {
        let id = name.strip_prefix(JOB_PREFIX);
        id.is_some_and(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit()))
    };
    let (src, lines) = match name.rsplit_once(':') {
        _ if exists(name) || is_job(name) => (name, None),
        Some((path, lines)) if is_range(lines) && (exists(path) || is_job(path)) => {
            (path, Some(lines.to_owned()))
        }
        _ => return None,
    };
    Some(NamedFile {
        src: src.to_owned(),
        lines,
    })
}

/// Returns true when the program in front of the shell waits for input.
async fn waits(sessions: &Sessions) -> bool {
    match sessions.current() {
        Some(current) => current.session.job_status().await == Some(Status::AwaitingInput),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_files_directories_and_jobs() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.rs"), "").unwrap();
        std::fs::create_dir(directory.path().join("src")).unwrap();
        let check = |text: &str, expected: &[(&str, Option<&str>)]| {
            let found = named_files(text, directory.path());
            let found: Vec<_> = found
                .iter()
                .map(|file| (file.src.as_str(), file.lines.as_deref()))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("see @a.rs, and @a.rs", &[("a.rs", None)]);
        check("mail me@a.rs or @b.rs @", &[]);
        check("@src/ and (@src)", &[("src/", None)]);
        check("see @a.rs:10-20: why?", &[("a.rs", Some("10-20"))]);
        check(
            "@a.rs:7 @a.rs:-5",
            &[("a.rs", Some("7")), ("a.rs", Some("-5"))],
        );
        check("@a.rs:x @b.rs:1 @a.rs:", &[("a.rs", None)]);
        check(
            "why does @job:1 fail? @job:2:-50",
            &[("job:1", None), ("job:2", Some("-50"))],
        );
        check("@job:x @job:", &[]);
    }
}
