//! Resources of a conversation before it starts: those of its calls, its model, and the system text.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Zoned;
use tokio::sync::mpsc;

use crate::chat::answer_run::AnswerRunner;
use crate::chat::example;
use crate::cli::config::ChosenModel;
use crate::cli::model::{self, NO_MODEL};
use crate::cli::model_access::ConfiguredModels;
use crate::cli::prompt::{Asker, Asking, StopSource, Terminal};
use crate::cli::session_args::SessionArgs;
use crate::cli::shell::{self, SessionUse, ShellNames};
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::tools::var_names;
use crate::cli::{
    BROKEN_PIPE, fail, fail_as_given, fail_with, run, runtime, say, undo_journal, vault,
};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::output_log::OutputLogs;
use crate::exec::policy_gate::PolicyGate;
use crate::exec::run_context::RunContext;
use crate::reference::grammar::{self, Notation};
use crate::reference::prompt;
use crate::tool::Registry;
use crate::tool::context::{Context, Prompter};
use crate::tool::sessions::JobFiles;
use crate::tool::supervision::SharedSupervision;
use crate::tools::Call;
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_model::{Model, ModelRequest, OutputForm, Provider, ServerFacts};
use karyi_pty::guard;
use karyi_screen::terminal_guard;
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;

/// Permission to ask the user for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// On the terminal.
    Asked,
    /// Never.
    Never,
}

impl Questions {
    /// Returns true when the user may be asked.
    fn may_ask(self) -> bool {
        self == Self::Asked && !run::is_ci()
    }
}

/// Whoever gets the output of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watcher {
    /// Nobody: results are enough.
    Nobody,
    /// A program that takes output while calls run.
    Program,
    /// A person, who sees unfinished lines, too.
    Person,
}

/// Resources of a conversation.
pub(super) struct ChatSetup {
    pub(super) context: Context,
    pub(super) policy_gate: PolicyGate,
    pub(super) logs: OutputLogs,
    pub(super) redactor: Redactor,
    pub(super) stop_source: StopSource,
    pub(super) model: ChosenModel,
    pub(super) jobs: Jobs,
    /// True when the user trusts the project.
    pub(super) is_trusted: bool,
    questions: Questions,
}

impl ChatSetup {
    /// Prepares the resources. `prompter` may put something in front of the questions on the terminal.
    pub(super) fn new(
        session: &SessionArgs,
        model: ChosenModel,
        questions: Questions,
        prompter: impl FnOnce(Terminal) -> Arc<dyn Prompter>,
    ) -> anyhow::Result<Self> {
        let stop_source = StopSource::default();
        let terminal = Terminal {
            asking: match questions.may_ask() {
                true => Asking::OnTerminal,
                false => Asking::Never,
            },
            asker: Asker {
                stop_source: stop_source.clone(),
                terminal_lock: TerminalLock::default(),
            },
            origin: format!("an answer of {}", model.name),
        };
        let (purpose, cancel) = (SessionUse::Conversation, &stop_source.cancel);
        let mut context = run::context(session, purpose, cancel, prompter(terminal))?;
        let limit = &mut context.command_timeout;
        limit.get_or_insert(limits::COMMAND_TIMEOUT);
        ConfiguredModels::add_to(&mut context, &model);
        context.secrets.protect_memory_with(guard::protect);
        let logs = run::logs(session, purpose, &context);
        let redactor = Redactor::new(&context.secrets);
        let sessions = Arc::clone(&context.sessions);
        Ok(Self {
            policy_gate: run::policy_gate(session, &context)?,
            jobs: Jobs::new(sessions, logs.clone(), redactor.clone()),
            logs,
            redactor,
            context,
            stop_source,
            model,
            is_trusted: false,
            questions,
        })
    }

    /// Returns the user to ask before the conversation, if there is one.
    pub(super) fn asker(&self) -> Option<Asker> {
        let asker = Asker {
            terminal_lock: TerminalLock::default(),
            stop_source: self.stop_source.clone(),
        };
        asker.found(self.questions.may_ask())
    }

    /// Loads the vault before anything is sent: a value that is not known cannot be masked.
    fn open_vault(&mut self, session: &SessionArgs) -> Result<(), ExitCode> {
        let asker = self.asker();
        let secrets = &self.context.secrets;
        let opened = vault::prepare(secrets, &session.vault, asker, &session.given);
        let opened = opened.map_err(|error| fail_as_given(&error))?;
        self.context.saver = opened.saver;
        if let Some(key) = &opened.journal_key {
            undo_journal::encrypt(&mut self.context.recorder, key);
        }
        let known = vault::known_names(&self.context.secrets);
        let compared = self.policy_gate.compare_names(&known);
        compared.map_err(|error| fail_with(&error))?;
        Ok(())
    }

    /// Loads the vault, and opens the model with its key.
    pub(super) fn open_model(&mut self, session: &SessionArgs) -> Result<Arc<dyn Model>, ExitCode> {
        self.open_vault(session)?;
        model::open(&self.model, &self.context.secrets).map_err(|error| {
            say(&format!("{error:#}"));
            ExitCode::from(NO_MODEL)
        })
    }

    /// Returns a runner of answers.
    pub(super) fn runner(
        &self,
        registry: Arc<Registry<Call>>,
        policy_gate: PolicyGate,
        watcher: Watcher,
    ) -> AnswerRunner {
        AnswerRunner::new(registry, |events| {
            self.run_context(events, policy_gate, watcher)
        })
    }

    /// Returns a runner of answers with shells, jobs and an end of its own.
    pub(super) fn separate_runner(
        &self,
        registry: Arc<Registry<Call>>,
        policy_gate: PolicyGate,
        (cancel, supervision): (&Cancel, SharedSupervision),
    ) -> AnswerRunner {
        let files = JobFiles::default();
        let sessions = Arc::new(self.context.sessions.separate());
        let logs = self.logs.separate(files.clone());
        AnswerRunner::new(registry, |events| RunContext {
            jobs: Jobs::new(Arc::clone(&sessions), logs, self.redactor.clone()),
            cancel: cancel.clone(),
            context: Context {
                sessions,
                job_files: files,
                plan: Default::default(),
                cancelled: cancel.flag(),
                supervision,
                ..self.context.clone()
            },
            ..self.run_context(events, policy_gate, Watcher::Nobody)
        })
    }

    fn run_context(
        &self,
        events: mpsc::Sender<Redacted<Event>>,
        policy_gate: PolicyGate,
        watcher: Watcher,
    ) -> RunContext {
        RunContext {
            context: self.context.clone(),
            cap: Cap::total(self.context.shown.output_bytes),
            is_live: watcher != Watcher::Nobody,
            is_watched: watcher == Watcher::Person,
            has_colour: false,
            is_dry_run: false,
            has_keyboard: false,
            events,
            cancel: self.stop_source.cancel.clone(),
            jobs: self.jobs.clone(),
            policy_gate,
        }
    }
}

/// Runs a conversation, whose logs and secrets are these, and returns the exit status of the program.
pub(super) fn run_to_end(
    (logs, secrets): (OutputLogs, Secrets),
    conversation: impl Future<Output = anyhow::Result<u8>>,
) -> ExitCode {
    let runtime = match runtime::runtime(false) {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let ended = runtime.block_on(conversation);
    terminal_guard::give_back();
    logs.remove();
    vault::record_use(&secrets);
    runtime.shutdown_background();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) if run::is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Returns the start of a conversation: the system text, and what a small model or its server needs; and facts about the
/// server.
pub(super) async fn request(
    system: &str,
    redactor: &Redactor,
    registry: &Arc<Registry<Call>>,
    model: &dyn Model,
) -> (ModelRequest, ServerFacts) {
    let facts = model::facts(model).await;
    let mut request = ModelRequest {
        system: redactor.redact_whole_again(system),
        ..ModelRequest::default()
    };
    if facts.is_llama_cpp || model.config().provider == Provider::Ollama {
        request.stop = vec!["\n<results"];
    }
    if model::is_small(model, &facts) {
        if example::TOOLS.iter().all(|tool| registry.lists(tool)) {
            request.messages = example::messages(redactor);
        }
        request.temperature = Some(0.0);
        if facts.is_llama_cpp {
            let grammar = grammar::grammar(registry, Notation::GbnfAnswer);
            request.output = OutputForm::Grammar(redactor.redact_whole_again(&grammar));
        }
    }
    (request, facts)
}

/// Returns the system text: the tools, a note about what is permitted, and the names of secrets.
pub(super) fn system(
    session: &SessionArgs,
    registry: &Arc<Registry<Call>>,
    note: &str,
) -> anyhow::Result<String> {
    let search_path = shell::search_path();
    let chosen = session.shell.as_deref();
    let names = ShellNames::find(chosen, SessionUse::Conversation, &search_path)?;
    let shell = match registry.lists("command") {
        true => names.description(&search_path) + note,
        false => note.trim_start_matches("\n- ").to_owned(),
    };
    Ok(prompt::prompt(registry, &shell) + &var_names())
}

/// Returns the start of the first message: directory and date.
pub(super) fn heading(cwd: &Path) -> String {
    let date = Zoned::now().strftime("%Y-%m-%d");
    format!("Directory: {}\nDate: {date}\n\n", cwd.display())
}
