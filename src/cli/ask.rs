//! `karyi ask`: works on one request with a model that acts, without a conversation on the screen.

pub(super) mod args;
mod output;
mod request;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::chat::answer_run::AnswerRunner;
use crate::chat::conversation::Conversation;
use crate::chat::example;
use crate::chat::history::History;
use crate::chat::turn::{TurnEnd, TurnLimits, TurnReport};
use crate::cli::ask::args::{ApproveMode, AskArgs};
use crate::cli::config::ChosenModel;
use crate::cli::model::{self, NO_MODEL};
use crate::cli::prompt::{Asker, Asking, StopSource, Terminal};
use crate::cli::run;
use crate::cli::shell::SessionUse;
use crate::cli::signals::Signals;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::{
    control_socket, fail, fail_as_given, fail_with, runtime, say, undo_journal, vault,
};
use crate::exec::Event;
use crate::exec::approval::ApprovedCalls;
use crate::exec::jobs::Jobs;
use crate::exec::output_log::OutputLogs;
use crate::exec::policy_gate::PolicyGate;
use crate::exec::run_context::RunContext;
use crate::reference::grammar::{self, Notation};
use crate::tool::Registry;
use crate::tool::context::{Boxed, Context};
use crate::tools::{self, Call};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_model::{Model, ModelRequest, OutputForm, Provider};
use karyi_pty::{guard, lacks_output};
use karyi_vault::redact::{Redacted, Redactor};

use output::AskOutput;

/// Exit status when a person is needed.
const NEEDS_USER: u8 = 3;
/// Exit status of an interrupted run.
const INTERRUPTED: u8 = 130;

/// Runs `karyi ask`.
pub(super) fn ask(args: AskArgs) -> ExitCode {
    if lacks_output() {
        return fail("no answer can be written: standard output is closed");
    }
    let model = match model::choose(args.model.as_deref()) {
        Ok(model) => model,
        Err(error) => return model::fail_choice(&error),
    };
    let ask = request::input(&args).and_then(|input| Ask::new(args, model, input));
    let ask = match ask {
        Ok(ask) => ask,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let opened = match ask.open_vault() {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    let model = match model::open(&opened.model, &opened.context.secrets) {
        Ok(model) => model,
        Err(error) => {
            say(&format!("{error:#}"));
            return ExitCode::from(NO_MODEL);
        }
    };
    let runtime = match runtime::runtime(false) {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let (logs, secrets) = (opened.logs.clone(), opened.context.secrets.clone());
    let ended = runtime.block_on(opened.run(model));
    logs.remove();
    vault::record_use(&secrets);
    runtime.shutdown_background();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) if run::is_broken_pipe(&error) => ExitCode::from(super::BROKEN_PIPE),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// A request that is being worked on.
struct Ask {
    args: AskArgs,
    context: Context,
    policy_gate: PolicyGate,
    logs: OutputLogs,
    redactor: Redactor,
    stop_source: StopSource,
    model: ChosenModel,
    /// Text of standard input.
    input: Option<String>,
}

impl Ask {
    fn new(args: AskArgs, model: ChosenModel, input: Option<String>) -> anyhow::Result<Self> {
        let stop_source = StopSource::default();
        let is_asking = !run::is_ci() && !args.no_interactive;
        let terminal = Terminal {
            asking: match is_asking {
                true => Asking::OnTerminal,
                false => Asking::Never,
            },
            asker: Asker {
                stop_source: stop_source.clone(),
                terminal_lock: TerminalLock::default(),
            },
            origin: format!("an answer of {}", model.name),
        };
        let session = &args.session;
        let (purpose, cancel) = (SessionUse::Conversation, &stop_source.cancel);
        let mut context = run::context(session, purpose, cancel, Arc::new(terminal))?;
        let limit = &mut context.command_timeout;
        limit.get_or_insert(limits::COMMAND_TIMEOUT);
        context.secrets.protect_memory_with(guard::protect);
        let approved = match args.approve {
            ApproveMode::None => ApprovedCalls::None,
            ApproveMode::Read => ApprovedCalls::Looking,
            ApproveMode::Full => ApprovedCalls::All,
        };
        Ok(Self {
            policy_gate: run::policy_gate(session, &context)?.with_approved_calls(approved),
            logs: run::logs(session, purpose, &context),
            redactor: Redactor::new(&context.secrets),
            args,
            context,
            stop_source,
            model,
            input,
        })
    }

    /// Loads the vault before anything is sent: a value that is not known cannot be masked.
    fn open_vault(mut self) -> Result<Self, ExitCode> {
        let asker = Asker {
            terminal_lock: TerminalLock::default(),
            stop_source: self.stop_source.clone(),
        };
        let asker = asker.found(!run::is_ci() && !self.args.no_interactive);
        let session = &self.args.session;
        let opened = vault::prepare(&self.context.secrets, &session.vault, asker, &session.given);
        let opened = opened.map_err(|error| fail_as_given(&error))?;
        self.context.saver = opened.saver;
        if let Some(key) = &opened.journal_key {
            undo_journal::encrypt(&mut self.context.recorder, key);
        }
        let known = vault::known_names(&self.context.secrets);
        let compared = self.policy_gate.compare_names(&known);
        compared.map_err(|error| fail_with(&error))?;
        Ok(self)
    }

    async fn run(self, model: Arc<dyn Model>) -> anyhow::Result<u8> {
        let signals = Signals::catch().context("catching signals")?;
        let sessions = Arc::clone(&self.context.sessions);
        let watch = tokio::spawn(signals.watch(sessions, self.stop_source.clone()));
        let secrets = self.context.secrets.clone();
        let get = move || Box::pin(std::future::ready(Ok(secrets.clone()))) as Boxed<'_, _>;
        let cwd = self.context.sessions.cwd();
        let of = ("ask", self.model.name.clone());
        let _control_socket = control_socket::open(of, &cwd, Arc::new(get));
        let registry = Arc::new(tools::registry());
        let (text, request) = self.request(&registry, model.as_ref()).await?;
        let runner = self.runner(registry, self.policy_gate.clone());
        let limits = TurnLimits {
            steps: self.args.max_steps,
            tokens: self.args.max_tokens,
            time: self.args.max_time.map(|time| time.duration()),
        };
        let cancel = self.stop_source.cancel.clone();
        let history = History::new(request);
        let mut chat = Conversation::new(Arc::clone(&model), runner, history, limits, cancel);
        let mut output = AskOutput::new(
            &self.args,
            &self.model.name,
            self.stop_source.cancel.clone(),
        );
        let report = chat.turn(&text, &mut output).await;
        chat.close().await;
        watch.abort();
        output.end(&report)?;
        Ok(self.exit_code(&report))
    }

    /// Returns the text for the model, and the start of the conversation.
    async fn request(
        &self,
        registry: &Arc<Registry<Call>>,
        model: &dyn Model,
    ) -> anyhow::Result<(String, ModelRequest)> {
        let system = request::system(&self.args, registry)?;
        let reader = self.runner(Arc::clone(registry), PolicyGate::default());
        let (cwd, input) = (self.context.sessions.cwd(), self.input.as_deref());
        let text = request::text(&self.args, &cwd, input, reader).await?;
        let facts = model::facts(model).await;
        let mut request = ModelRequest {
            system: self.redactor.redact_whole_again(&system),
            ..ModelRequest::default()
        };
        if facts.is_llama_cpp || model.config().provider == Provider::Ollama {
            request.stop = vec!["\n<results"];
        }
        if model::is_small(model, &facts) {
            request.messages = example::messages(&self.redactor);
            request.temperature = Some(0.0);
            if facts.is_llama_cpp {
                let grammar = grammar::grammar(registry, Notation::GbnfAnswer);
                request.output = OutputForm::Grammar(self.redactor.redact_whole_again(&grammar));
            }
        }
        Ok((text, request))
    }

    fn runner(&self, registry: Arc<Registry<Call>>, policy_gate: PolicyGate) -> AnswerRunner {
        AnswerRunner::new(registry, |events| self.run_context(events, policy_gate))
    }

    fn run_context(
        &self,
        events: mpsc::Sender<Redacted<Event>>,
        policy_gate: PolicyGate,
    ) -> RunContext {
        let sessions = Arc::clone(&self.context.sessions);
        RunContext {
            context: self.context.clone(),
            cap: Cap::total(self.context.shown.output_bytes),
            is_live: self.args.jsonl,
            is_watched: false,
            has_colour: false,
            is_dry_run: false,
            has_keyboard: false,
            events,
            cancel: self.stop_source.cancel.clone(),
            jobs: Jobs::new(sessions, self.logs.clone(), self.redactor.clone()),
            policy_gate,
        }
    }

    /// Says on standard error why the turn ended, and returns the exit status.
    fn exit_code(&self, report: &TurnReport) -> u8 {
        let stopped = |limit: &str, flag: &str| {
            say(&format!(
                "stopped: {limit} used up; {flag} raises the limit"
            ));
            1
        };
        match &report.end {
            TurnEnd::Done if report.needs_approval => {
                say(
                    "the model may only read files; `--approve full` lets it run commands and change files",
                );
                NEEDS_USER
            }
            TurnEnd::Done => 0,
            TurnEnd::Steps => stopped("its steps are", "--max-steps"),
            TurnEnd::Tokens => stopped("its tokens are", "--max-tokens"),
            TurnEnd::Time => stopped("its time is", "--max-time"),
            TurnEnd::Refused(reason) => {
                say(&format!("stopped: {reason}"));
                1
            }
            TurnEnd::ModelFailed(error) => {
                let message = self.redactor.redact_str(&error.message);
                say(&format!("{}: {message}", error.code()));
                say(&format!("hint: {}", self.redactor.redact_str(&error.hint)));
                NO_MODEL
            }
            TurnEnd::Cancelled => {
                let received = &self.stop_source.received;
                received.exit_code().unwrap_or(INTERRUPTED)
            }
        }
    }
}
