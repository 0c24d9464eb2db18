//! A conversation of a test, and what its observer saw.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use karyi::approval::Mode;
use karyi::chat::answer_run::AnswerRunner;
use karyi::chat::conversation::Conversation;
use karyi::chat::history::History;
use karyi::chat::observer::{ChatEvent, Observer};
use karyi::chat::transcript::state::ChatState;
use karyi::chat::transcript::store::ChatStore;
use karyi::chat::turn::{TurnLimits, TurnReport};
use karyi::exec::Event;
use karyi::exec::approval::{ApprovalOptions, Approvals};
use karyi::exec::cancel::Cancel;
use karyi::exec::policy_gate::PolicyGate;
use karyi::exec::run_context::RunContext;
use karyi::model::scripted::ScriptedModel;
use karyi::model::{Model, ModelRequest, Role};
use karyi::tool::context::Nobody;
use karyi::tools;
use karyi::vault::redact::Redactor;
use karyi::vault::session::Secrets;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::harness::context;

/// Sees the events of a conversation.
#[derive(Default)]
pub struct Seen {
    /// Text outside blocks.
    pub text: String,
    pub reasoning: String,
    /// `started ID`, `finished ID STATUS`, `warning CODE`, `refused CODE`.
    pub calls: Vec<String>,
    /// Gets a permit when a call starts.
    pub started: Option<Arc<Semaphore>>,
    /// Cancelled when a call starts.
    pub cancelled_at_start: Option<Cancel>,
    /// Cancelled when the call with this id starts, or `output ID` prints.
    pub cancelled_at: Option<(&'static str, Cancel)>,
    /// Time of that.
    pub cancelled_time: Option<Instant>,
    /// `plan STATE TEXT` of each step, `compacted TEXT`, `note TEXT`.
    pub notes: Vec<String>,
}

impl Observer for Seen {
    fn event(&mut self, event: &ChatEvent<'_>) {
        match event {
            ChatEvent::Text(text) => self.text.push_str(text),
            ChatEvent::Reasoning(text) => self.reasoning.push_str(text),
            ChatEvent::Call(Event::Started { id, .. }) => {
                self.calls.push(format!("started {id}"));
                if let Some(started) = &self.started {
                    started.add_permits(1);
                }
                if let Some(cancel) = &self.cancelled_at_start {
                    cancel.cancel();
                }
                self.cancel_at(id);
            }
            ChatEvent::Call(Event::Output { id, .. }) => self.cancel_at(&format!("output {id}")),
            ChatEvent::Call(Event::Finished { outcome, .. }) => {
                let outcome = outcome.get();
                let status = outcome.status.as_str();
                self.calls.push(format!("finished {} {status}", outcome.id));
            }
            ChatEvent::Call(Event::Warning(warning)) => {
                self.calls
                    .push(format!("warning {}", warning.code.as_str()));
            }
            ChatEvent::Call(Event::Refused(error)) => {
                self.calls.push(format!("refused {}", error.code.as_str()));
            }
            ChatEvent::Plan(steps) => {
                for step in *steps {
                    let state = step.state.as_str();
                    self.notes.push(format!("plan {state} {}", step.text));
                }
            }
            ChatEvent::Compacted(text) => self.notes.push(format!("compacted {text}")),
            ChatEvent::Joined(text) => self.notes.push(format!("joined {text}")),
            ChatEvent::Note(text) => self.notes.push(format!("note {text}")),
            _ => {}
        }
    }
}

impl Seen {
    fn cancel_at(&mut self, place: &str) {
        let cancelled = self.cancelled_at.as_ref().filter(|(at, _)| *at == place);
        if let Some((_, cancel)) = cancelled {
            cancel.cancel();
            self.cancelled_time = Some(Instant::now());
        }
    }
}

/// Conversation of a test, in a directory of its own.
pub struct Chat {
    pub dir: TempDir,
    pub secrets: Secrets,
    pub cancel: Cancel,
    pub mode: Mode,
    pub limits: TurnLimits,
}

impl Chat {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            secrets: Secrets::default(),
            cancel: Cancel::default(),
            mode: Mode::Full,
            limits: TurnLimits {
                steps: 20,
                tokens: None,
                time: None,
            },
        }
    }

    pub fn work(&self) -> &Path {
        self.dir.path()
    }

    pub fn runner(&self) -> AnswerRunner {
        let bash = Path::new("/bin/bash");
        let sessions = context::sessions(bash, self.work(), &self.secrets);
        let context = context::context(sessions, &self.secrets, Arc::new(Nobody));
        let options = ApprovalOptions::new(self.mode, self.work().to_owned());
        let approvals = Approvals::new(options);
        AnswerRunner::new(Arc::new(tools::registry()), |events| RunContext {
            policy_gate: PolicyGate::default().with_approvals(approvals),
            is_live: true,
            ..context::run_context(context, self.work(), (events, self.cancel.clone()))
        })
    }

    /// Makes a conversation with a model, in a shell of its own.
    pub fn conversation(&self, model: &Arc<ScriptedModel>) -> Conversation {
        let history = History::new(request());
        let (limits, cancel) = (self.limits, self.cancel.clone());
        let model = Arc::clone(model) as Arc<dyn Model>;
        Conversation::new(model, self.runner(), history, limits, cancel)
    }

    /// Returns the store of the chats, beside the directory that the calls work in.
    pub fn store(&self) -> ChatStore {
        let redactor = Redactor::new(&self.secrets);
        ChatStore::new(self.work().join("chats"), redactor)
    }

    /// Makes a conversation that is saved as a new chat.
    pub fn saved(&self, model: &Arc<ScriptedModel>) -> Conversation {
        let mut chat = self.conversation(model);
        let writer = self.store().create(self.work(), "scripted").unwrap();
        chat.enter_chat(ChatState::new(History::new(request())), Some(writer));
        chat
    }

    /// Works on one text; returns the report and the requests that the model got.
    pub fn turn(&self, model: ScriptedModel, seen: &mut Seen) -> (TurnReport, Vec<ModelRequest>) {
        run(async {
            let model = Arc::new(model);
            let history = History::new(ModelRequest::default());
            let (limits, cancel) = (self.limits, self.cancel.clone());
            let asked = Arc::clone(&model);
            let mut chat = Conversation::new(asked, self.runner(), history, limits, cancel);
            let report = chat.turn("Do it.", seen).await;
            chat.close().await;
            assert_eq!(model.open_answers(), 0, "an answer is still open");
            (report, model.requests())
        })
    }
}

/// Returns the start of every request.
pub fn request() -> ModelRequest {
    ModelRequest {
        system: Redactor::new(&Secrets::default()).redact("You act."),
        ..ModelRequest::default()
    }
}

/// Runs a conversation.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// Returns the messages of a request: `user: TEXT` or `model: TEXT`.
pub fn messages(request: &ModelRequest) -> Vec<String> {
    let shown = |message: &karyi::model::Message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        format!("{role}: {}", message.text)
    };
    request.messages.iter().map(shown).collect()
}
