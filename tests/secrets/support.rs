//! Runs messages with secrets through the library: real shells, no questions on a terminal.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use karyi::exec::Event;
use karyi::exec::cancel::Cancel;
use karyi::exec::decoder::MessageDecoder;
use karyi::exec::message_runner::{MessageRunner, Pace};
use karyi::exec::policy_gate::PolicyGate;
use karyi::exec::run_context::RunContext;
use karyi::outcome::Outcome;
use karyi::secret::{SecretName, SecretValue};
use karyi::syntax::Mode;
use karyi::tool::context::{ApprovalRequest, Boxed, Consent, Context, Prompter, Question, Reply};
use karyi::tool::sessions::Sessions;
use karyi::tools;
use karyi::vault::policy::Policy;
use karyi::vault::redact::{Redacted, Redactor};
use karyi::vault::session::{Origin, Secrets};
use tokio::sync::mpsc;

use crate::harness::context;

/// A user who answers every question of agreement alike, and has no values.
pub struct Answers {
    /// What they answer.
    pub consent: Consent,
    /// What they were asked.
    pub asked: Mutex<Vec<ApprovalRequest>>,
}

impl Prompter for Answers {
    fn ask<'a>(&'a self, _: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async { Reply::Unavailable })
    }

    fn approve<'a>(&'a self, request: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(async { self.consent })
    }
}

/// A session with secrets.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub shell: PathBuf,
    pub secrets: Secrets,
    pub policy_gate: PolicyGate,
    pub user: Arc<Answers>,
    pub pace: Pace,
    runtime: tokio::runtime::Runtime,
    sessions: Option<Arc<Sessions>>,
    redactor: Option<Redactor>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_shell("/bin/bash")
    }

    pub fn with_shell(shell: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let consent = Consent::Unavailable;
        Self {
            dir: tempfile::tempdir().unwrap(),
            shell: shell.into(),
            secrets: Secrets::default(),
            policy_gate: PolicyGate::default(),
            user: Arc::new(Answers {
                consent,
                asked: Mutex::default(),
            }),
            pace: Pace::Whole,
            runtime: runtime.unwrap(),
            sessions: None,
            redactor: None,
        }
    }

    /// Adds a value that was given for the run.
    pub fn given(self, name: &str, value: &str) -> Self {
        self.secret(name, value, Policy::unrestricted(), Origin::Given)
    }

    pub fn secret(self, key: &str, value: &str, policy: Policy, origin: Origin) -> Self {
        let value = SecretValue::new(value.into());
        self.secrets
            .insert_with(name(key), value, policy, origin)
            .unwrap();
        self
    }

    pub fn policy_gate(mut self, policy_gate: PolicyGate) -> Self {
        self.policy_gate = policy_gate;
        self
    }

    pub fn consent(mut self, consent: Consent) -> Self {
        self.user = Arc::new(Answers {
            consent,
            asked: Mutex::default(),
        });
        self
    }

    pub fn work(&self) -> &Path {
        self.dir.path()
    }

    fn run_context(&mut self, events: mpsc::Sender<Redacted<Event>>) -> RunContext {
        let make = || context::sessions(&self.shell, self.dir.path(), &self.secrets);
        let sessions = Arc::clone(self.sessions.get_or_insert_with(make));
        let user = Arc::clone(&self.user) as Arc<dyn Prompter>;
        let make = || Redactor::new(&self.secrets);
        let redactor = self.redactor.get_or_insert_with(make).clone();
        let context = Context {
            redactor,
            ..context::context(sessions, &self.secrets, user)
        };
        let way = (events, Cancel::default());
        RunContext {
            policy_gate: self.policy_gate.clone(),
            ..context::run_context(context, self.dir.path(), way)
        }
    }

    /// Runs a message in the session; returns the outcomes in document order.
    pub fn run(&mut self, message: &str) -> Vec<Outcome> {
        let (events, mut received) = mpsc::channel(64);
        let run_context = self.run_context(events);
        let registry = Arc::new(tools::registry());
        let grammar = Arc::new(registry.grammar());
        let decoder = MessageDecoder::new(registry, grammar, Mode::Repair);
        let (pace, mut outcomes) = (self.pace, Vec::new());
        self.runtime.block_on(async {
            let (sender, chunks) = mpsc::channel(1);
            sender.send(Ok(message.as_bytes().to_vec())).await.unwrap();
            drop(sender);
            let runner = MessageRunner::new(run_context);
            let work = async {
                runner.run_message(decoder, chunks, pace).await;
                let (is_interrupted, shell, note) = (false, None, None);
                #[rustfmt::skip]
                let ended = Event::MessageEnded { is_interrupted, shell, note };
                runner.emit(ended).await;
            };
            let collect = async {
                while let Some(event) = received.recv().await {
                    match event.into_inner() {
                        Event::Finished { index, outcome } => {
                            outcomes.push((index, *outcome.into_inner()))
                        }
                        Event::Refused(diagnostic) => panic!("{diagnostic:?}"),
                        Event::MessageEnded { .. } => break,
                        _ => {}
                    }
                }
            };
            tokio::join!(work, collect);
        });
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Runs one script as a command.
    pub fn command(&mut self, script: &str) -> Outcome {
        let script = script.replace("]]>", "]]]]><![CDATA[>");
        let message = format!("<tools><command><![CDATA[{script}]]></command></tools>");
        self.run(&message).pop().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.take() {
            for terminal in sessions.all() {
                self.runtime.block_on(terminal.session.close());
            }
        }
    }
}

pub fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

/// Returns the code of what went wrong, else the status.
pub fn code(outcome: &Outcome) -> &'static str {
    let error = outcome.error.as_ref();
    error.map_or(outcome.status.as_str(), |error| error.code.as_str())
}
