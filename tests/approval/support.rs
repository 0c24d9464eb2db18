//! A session whose calls are judged, and a person who answers.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use karyi::approval::{Approver, CallAnswer, CallQuestion, Mode, Rule, RuleStore, Rules};
use karyi::error::{ErrorCode, ToolError};
use karyi::exec::Event;
use karyi::exec::approval::{ApprovalOptions, Approvals};
use karyi::exec::cancel::Cancel;
use karyi::exec::decoder::MessageDecoder;
use karyi::exec::message_runner::{MessageRunner, Pace};
use karyi::exec::policy_gate::PolicyGate;
use karyi::exec::run_context::RunContext;
use karyi::syntax::Mode as Reading;
use karyi::tool::context::{Boxed, Nobody};
use karyi::tools;
use karyi::vault::redact::Redacted;
use karyi::vault::session::Secrets;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::harness::context;

/// A person with prepared answers. Without one they refuse.
#[derive(Default)]
pub struct Person {
    answers: Mutex<VecDeque<Vec<CallAnswer>>>,
    /// Questions: for each call its id, and what is asked with the reasons.
    asked: Mutex<Vec<Vec<String>>>,
    /// Rules that were stored.
    pub stored: Mutex<Vec<String>>,
    /// Whether rules cannot be stored.
    pub is_full: AtomicBool,
}

impl Approver for Person {
    fn approve<'a>(&'a self, calls: &'a [CallQuestion]) -> Boxed<'a, Option<Vec<CallAnswer>>> {
        let shown = calls
            .iter()
            .map(|call| format!("{}: {}", call.id, call.facts().join(" | ")));
        self.asked.lock().unwrap().push(shown.collect());
        let answers = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { Some(answers.unwrap_or_default()) })
    }
}

impl RuleStore for Person {
    fn allow(&self, rules: &[String]) -> Result<(), ToolError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(ToolError::new(ErrorCode::Io, "the disk is full"));
        }
        self.stored.lock().unwrap().extend_from_slice(rules);
        Ok(())
    }
}

impl Person {
    /// Prepares the answers to the next questions.
    pub fn answers(&self, answers: Vec<Vec<CallAnswer>>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// Takes what they were asked.
    pub fn asked(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// A session of a shell.
pub struct Stage {
    pub dir: TempDir,
    pub person: Arc<Person>,
    pub approvals: Approvals,
    pub run: RunContext,
    /// Warnings of the results of the last message.
    pub warnings: Vec<String>,
    runner: MessageRunner,
    events: mpsc::Receiver<Redacted<Event>>,
}

impl Stage {
    /// Starts a session in a mode, with rules that allow.
    pub fn new(shell: &str, mode: Mode, allow: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let project = dir.path().join("project").canonicalize().unwrap();
        let person = Arc::new(Person::default());
        let approvals = Approvals::new(ApprovalOptions {
            rules: Rules {
                allow: allow
                    .iter()
                    .map(|rule| Rule::parse(rule).unwrap())
                    .collect(),
                ..Rules::default()
            },
            approver: Some(person.clone()),
            store: Some(person.clone()),
            ..ApprovalOptions::new(mode, project.clone())
        });
        let secrets = Secrets::default();
        let sessions = context::sessions(Path::new(shell), &project, &secrets);
        let context = context::context(sessions, &secrets, Arc::new(Nobody));
        let (sender, events) = mpsc::channel(1000);
        let run = RunContext {
            policy_gate: PolicyGate::default().with_approvals(approvals.clone()),
            ..context::run_context(context, dir.path(), (sender, Cancel::default()))
        };
        Self {
            runner: MessageRunner::new(run.clone()),
            run,
            dir,
            person,
            approvals,
            warnings: Vec::new(),
            events,
        }
    }

    /// Returns a path in the project.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("project").join(name)
    }

    /// Runs a message, given in pieces; `between` is called before each piece but the first, when the calls in the pieces
    /// before it have ended. Returns `ID STATUS` of the calls, with the code and message of an error, or the output.
    pub async fn pieces(
        &mut self,
        pieces: &[&str],
        mut between: impl FnMut(&[String]),
    ) -> Vec<String> {
        let registry = Arc::new(tools::registry());
        let grammar = Arc::new(registry.grammar());
        let decoder = MessageDecoder::new(registry, grammar, Reading::Strict);
        let (chunks, receiver) = mpsc::channel(1);
        let mut results = Vec::new();
        let send = async {
            for (at, piece) in pieces.iter().enumerate() {
                if at > 0 {
                    // Calls of earlier pieces that may run have ended.
                    let expected = pieces[..at].concat().matches("<!--ran-->").count();
                    while results.len() < expected {
                        let event = self.events.recv().await.unwrap();
                        results.extend(finished(&event));
                    }
                    between(&results);
                }
                chunks.send(Ok(piece.as_bytes().to_vec())).await.unwrap();
            }
            drop(chunks);
        };
        tokio::join!(
            self.runner.run_message(decoder, receiver, Pace::Stream),
            send
        );
        self.warnings.clear();
        while let Ok(event) = self.events.try_recv() {
            results.extend(finished(&event));
            self.warnings.extend(warnings(&event));
        }
        results
    }

    /// Runs a message.
    pub async fn message(&mut self, message: &str) -> Vec<String> {
        self.pieces(&[message], |_| {}).await
    }

    /// Ends the session.
    pub async fn close(self) {
        self.runner.close().await;
    }
}

fn warnings(event: &Redacted<Event>) -> Vec<String> {
    let Event::Finished { outcome, .. } = event.get() else {
        return Vec::new();
    };
    let warnings = outcome.get().fields.get("warnings");
    let texts = warnings.and_then(|warnings| warnings.as_array());
    let texts = texts.into_iter().flatten();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn finished(event: &Redacted<Event>) -> Option<String> {
    let Event::Finished { outcome, .. } = event.get() else {
        return None;
    };
    let outcome = outcome.get();
    let error = outcome
        .error
        .as_ref()
        .map(|error| format!(" {}: {}", error.code.as_str(), error.message));
    let output = outcome
        .output
        .as_ref()
        .map(|output| output.text.trim_end().to_owned());
    let output = output
        .filter(|text| !text.is_empty())
        .map(|text| format!(": {text}"));
    Some(format!(
        "{} {}{}",
        outcome.id,
        outcome.status.as_str(),
        error.or(output).unwrap_or_default()
    ))
}

/// Runs a test with its session.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}
