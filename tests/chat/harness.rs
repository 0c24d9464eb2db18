//! A conversation of a test, and what its observer saw.

use std::path::Path;
use std::sync::Arc;

use karyi::chat::answer_run::AnswerRunner;
use karyi::chat::conversation::Conversation;
use karyi::chat::history::History;
use karyi::chat::observer::{ChatEvent, Observer};
use karyi::chat::turn::{TurnLimits, TurnReport};
use karyi::exec::Event;
use karyi::exec::approval::ApprovedCalls;
use karyi::exec::cancel::Cancel;
use karyi::exec::policy_gate::PolicyGate;
use karyi::exec::run_context::RunContext;
use karyi::model::scripted::ScriptedModel;
use karyi::model::{ModelRequest, Role};
use karyi::tool::context::Nobody;
use karyi::tools;
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
            }
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
            _ => {}
        }
    }
}

/// Conversation of a test, in a directory of its own.
pub struct Chat {
    pub dir: TempDir,
    pub secrets: Secrets,
    pub cancel: Cancel,
    pub approved: ApprovedCalls,
    pub limits: TurnLimits,
}

impl Chat {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            secrets: Secrets::default(),
            cancel: Cancel::default(),
            approved: ApprovedCalls::All,
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
        AnswerRunner::new(Arc::new(tools::registry()), |events| RunContext {
            policy_gate: PolicyGate::default().with_approved_calls(self.approved),
            ..context::run_context(context, self.work(), (events, self.cancel.clone()))
        })
    }

    /// Works on one text; returns the report and the requests that the model got.
    pub fn turn(&self, model: ScriptedModel, seen: &mut Seen) -> (TurnReport, Vec<ModelRequest>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
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
