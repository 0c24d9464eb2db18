//! Facts that the assistant is started with.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;

use crate::approval::Mode;
use crate::chat::answer_run::AnswerRunner;
use crate::chat::conversation::Conversation;
use crate::chat::history::History;
use crate::chat::steering::Steering;
use crate::chat::transcript::export;
use crate::chat::transcript::state::ChatState;
use crate::chat::turn::TurnLimits;
use crate::cli::assistant::own_options::OwnOptions;
use crate::cli::assistant::parts::{Opening, Parts};
use crate::cli::assistant::project::Project;
use crate::cli::chat_setup::{self, ChatSetup, Watcher};
use crate::cli::chats;
use crate::cli::model;
use crate::cli::session_args::SessionArgs;
use crate::exec::approval::Approvals;
use crate::render::paint::safe;
use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::error::ErrorCode;
use karyi_core::limits;
use karyi_files::transaction::Recorder;
use karyi_files::undo::undone_numbers;
use karyi_model::{Effort, Model, ModelRequest};
use karyi_vault::redact::{Redacted, Redactor};

/// An earlier chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Earlier {
    /// The last one of the directory.
    Last,
    /// The one with this id, or with this start of an id.
    Named(String),
}

/// Facts that the assistant is started with.
pub(super) struct Start {
    pub(super) setup: ChatSetup,
    pub(super) approvals: Approvals,
    registry: Arc<Registry<Call>>,
    model: Arc<dyn Model>,
    opening: Opening,
    pub(super) home: Option<PathBuf>,
    /// The earlier chat to go on with.
    pub(super) earlier: Option<Earlier>,
    /// Texts that join the turn that goes on.
    pub(super) steering: Steering,
    /// Id of the chat.
    chat_id: Option<String>,
    /// Options for the commands that it starts.
    pub(super) own_options: OwnOptions,
    /// True until the first text was sent, which the directory and the date go with.
    has_heading: bool,
    /// Mode that the model knows of.
    told_mode: Mode,
}

impl Start {
    /// Takes the facts.
    pub(super) fn new(
        setup: ChatSetup,
        model: Arc<dyn Model>,
        (approvals, registry): (Approvals, Registry<Call>),
    ) -> Self {
        // What runs without a question is of no concern to it, until it changes.
        let told_mode = match approvals.mode() {
            Mode::ReadOnly => Mode::Ask,
            mode => mode,
        };
        Self {
            setup,
            approvals,
            registry: Arc::new(registry),
            model,
            opening: Opening::default(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            earlier: None,
            steering: Steering::default(),
            chat_id: None,
            own_options: OwnOptions::default(),
            has_heading: true,
            told_mode,
        }
    }

    /// Returns the work that makes the start of conversations: it asks the shell and the server.
    pub(super) fn opening(
        &self,
        session: SessionArgs,
    ) -> impl Future<Output = anyhow::Result<Opening>> + Send + 'static {
        let (registry, model) = (Arc::clone(&self.registry), Arc::clone(&self.model));
        let redactor = self.setup.redactor.clone();
        let (cwd, home) = (self.setup.context.sessions.cwd(), self.home.clone());
        let is_trusted = self.setup.is_trusted;
        async move {
            let known = Arc::clone(&registry);
            let read = tokio::task::spawn_blocking(move || {
                let project = Project::load(&cwd, home.as_deref(), is_trusted);
                let system = chat_setup::system(&session, &known, "")?;
                anyhow::Ok((system + &project.text, project))
            });
            let (system, project) = read.await??;
            let made = chat_setup::request(&system, &redactor, &registry, model.as_ref());
            let (request, facts) = made.await;
            let window = model.config().context.or(facts.context);
            Ok(Opening {
                request,
                window,
                project,
            })
        }
    }

    /// Takes the start of conversations; returns the first one, and the text of an earlier chat that goes on.
    ///
    /// # Errors
    /// There is no such chat, or it cannot be read.
    pub(super) fn open(&mut self, opening: Opening) -> anyhow::Result<(Parts, Option<String>)> {
        self.opening = opening;
        let limits = TurnLimits {
            steps: limits::CHAT_STEPS,
            tokens: None,
            time: None,
        };
        let conversation = Conversation::new(
            Arc::clone(&self.model),
            self.runner(self.approvals.clone()),
            History::new(self.opening.request.clone()),
            limits,
            self.setup.stop_source.cancel.clone(),
        );
        let mut parts = Parts {
            conversation: conversation
                .with_window(self.opening.window)
                .with_steering(self.steering.clone())
                .with_notes(self.opening.project.deeper.clone()),
            // What the user types needs no consent.
            own: self.runner(self.approvals.of_person()),
        };
        let earlier = self.earlier.take();
        let text = match earlier {
            Some(earlier) => Some(self.resume(&mut parts, &earlier)?),
            None => {
                self.begin_again(&mut parts)?;
                None
            }
        };
        Ok((parts, text))
    }

    /// Goes on with an earlier chat; returns its text. Nothing of it runs again.
    ///
    /// # Errors
    /// There is no such chat, or it cannot be read.
    pub(super) fn resume(
        &mut self,
        parts: &mut Parts,
        earlier: &Earlier,
    ) -> anyhow::Result<String> {
        let store = chats::store(self.setup.redactor.clone())?;
        let id = match earlier {
            Earlier::Named(text) => store.find(text)?,
            Earlier::Last => {
                let cwd = self.setup.context.sessions.cwd();
                let last = store.list(Some(&cwd))?.into_iter().next();
                last.map(|chat| chat.id).context(
                    "there is no earlier chat in this directory; `karyi chats list --all` lists those of others",
                )?
            }
        };
        let (transcript, writer) = store.resume(&id)?;
        let mut text = export::text(&id, &transcript);
        if let Some(damage) = transcript.damage.sentence() {
            text.push_str(&format!("the file of this chat was damaged: {damage}\n"));
        }
        self.chat_id = Some(id);
        let state = ChatState::replay(self.opening.request.clone(), &transcript);
        if state.interruption().is_some() {
            text.push_str(
                "karyi ended during the work on the last text; nothing of it runs again\n",
            );
        }
        parts.conversation.enter_chat(state, Some(writer));
        self.has_heading = false;
        Ok(text)
    }

    /// Begins a conversation anew.
    ///
    /// # Errors
    /// It cannot be kept.
    pub(super) fn begin_again(&mut self, parts: &mut Parts) -> anyhow::Result<()> {
        let store = chats::store(self.setup.redactor.clone())?;
        let cwd = self.setup.context.sessions.cwd();
        let writer = store.create(&cwd, &self.setup.model.name)?;
        self.chat_id = Some(writer.id().to_owned());
        let state = ChatState::new(History::new(self.opening.request.clone()));
        parts.conversation.enter_chat(state, Some(writer));
        self.has_heading = true;
        Ok(())
    }

    /// Returns the whole chat as a page, safe to show.
    ///
    /// # Errors
    /// There is no chat yet, or it cannot be read.
    pub(super) fn chat_page(&self) -> anyhow::Result<String> {
        const EMPTY: &str = "there is nothing in this chat yet";
        let id = self.chat_id.as_deref().context(EMPTY)?;
        let read = chats::store(self.setup.redactor.clone())?.read(id);
        let chat = read.map_err(|error| match error.code {
            // Its file begins with the first text.
            ErrorCode::NotFound => anyhow::anyhow!(EMPTY),
            _ => error.into(),
        })?;
        Ok(safe(&export::markdown(id, &chat)).into_owned())
    }

    /// Returns what the project tells.
    pub(super) fn project(&self) -> &Project {
        &self.opening.project
    }

    fn runner(&self, approvals: Approvals) -> AnswerRunner {
        let policy_gate = self.setup.policy_gate.clone().with_approvals(approvals);
        let registry = Arc::clone(&self.registry);
        self.setup.runner(registry, policy_gate, Watcher::Person)
    }

    /// Tells the model directory and date, once in a conversation, before its first text.
    pub(super) fn tell_heading(&mut self, conversation: &mut Conversation) {
        if std::mem::take(&mut self.has_heading) {
            let heading = chat_setup::heading(&self.setup.context.sessions.cwd());
            conversation.tell(heading.trim_end());
        }
    }

    /// Tells the model a mode of approval that it does not know of.
    pub(super) fn tell_mode(&mut self, conversation: &mut Conversation) {
        let mode = self.approvals.mode();
        if std::mem::replace(&mut self.told_mode, mode) != mode {
            conversation.tell(told_of(mode));
        }
    }

    /// Returns the effort that conversations ask for.
    pub(super) fn effort(&self) -> Option<Effort> {
        self.opening.request.effort
    }

    /// Lets later conversations ask for another effort.
    pub(super) fn set_effort(&mut self, effort: Option<Effort>) {
        self.opening.request.effort = effort;
    }

    /// Asks another model from now on. Returns what the conversation needs for it.
    ///
    /// # Errors
    /// There is no such model, or its key has no value.
    pub(super) fn change_model(&mut self, name: &str) -> anyhow::Result<ModelChange> {
        let chosen = model::choose(Some(name))?;
        let model = model::open(&chosen, &self.setup.context.secrets)?;
        self.setup.model = chosen;
        self.model = Arc::clone(&model);
        Ok(ModelChange {
            model,
            name: name.to_owned(),
            system: self.opening.request.system.clone(),
            effort: self.opening.request.effort,
            redactor: self.setup.redactor.clone(),
            registry: Arc::clone(&self.registry),
        })
    }

    /// Returns the numbers of the changes of files that this session made after a change and did not undo, oldest first.
    pub(super) fn changes_since(&self, number: u64) -> Vec<u64> {
        changes_since(&self.setup.context.recorder, number)
    }

    /// Takes the start of conversations with another model, and the tokens of its context.
    pub(super) fn take_request(&mut self, request: ModelRequest, window: Option<u64>) {
        self.opening.request = request;
        self.opening.window = window;
    }

    /// Returns the number of the last change of files.
    pub(super) fn last_change(&self) -> u64 {
        let journal = self.setup.context.recorder.journal.as_ref();
        journal.map_or(0, |journal| journal.last_number())
    }
}

/// A change of the model.
pub(super) struct ModelChange {
    model: Arc<dyn Model>,
    name: String,
    system: Redacted,
    effort: Option<Effort>,
    redactor: Redactor,
    registry: Arc<Registry<Call>>,
}

impl ModelChange {
    /// Changes a conversation. Returns the start of those that follow, and the tokens of the model's context.
    pub(super) async fn apply(
        self,
        conversation: &mut Conversation,
    ) -> (ModelRequest, Option<u64>) {
        let (system, model) = (self.system.as_str(), self.model.as_ref());
        let made = chat_setup::request(system, &self.redactor, &self.registry, model);
        let (mut request, facts) = made.await;
        request.effort = self.effort;
        let window = model.config().context.or(facts.context);
        conversation.replace_model(self.model, &self.name, window);
        conversation.replace_start(request.clone());
        (request, window)
    }
}

/// Returns the numbers of the changes of files that this session made after a change and did not undo, oldest first.
pub(super) fn changes_since(recorder: &Recorder, number: u64) -> Vec<u64> {
    let journal = recorder.journal.as_ref();
    let entries = journal.and_then(|journal| journal.entries().ok());
    let entries = entries.unwrap_or_default();
    let undone = undone_numbers(&entries);
    let own = entries.iter().filter(|entry| {
        let is_own = entry.session == recorder.session && entry.undoes.is_empty();
        is_own && entry.number > number && !undone.contains(&entry.number)
    });
    own.map(|entry| entry.number).collect()
}

/// Returns what the model is told of a mode.
fn told_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Nothing | Mode::ReadOnly => {
            "Only calls that read run now; all others are refused. Look at what matters, then give your plan as steps \
             and stop: the user decides how it goes on."
        }
        Mode::Ask => "Calls that do more than read may run again, once the user agrees.",
        Mode::Edits => "Edits of files in the project run without a question now.",
        Mode::Full => "All calls run without a question now.",
    }
}
