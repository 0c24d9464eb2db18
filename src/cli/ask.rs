//! `karyi ask`: works on one request with a model that acts, without a conversation on the screen.

pub(super) mod args;
mod output;
mod request;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::approval::Mode;
use crate::chat::conversation::Conversation;
use crate::chat::history::History;
use crate::chat::turn::{Prompt, TurnEnd, TurnLimits, TurnReport};
use crate::cli::ask::args::{ApproveMode, AskArgs};
use crate::cli::chat_setup::{self, ChatSetup, Questions, Watcher};
use crate::cli::config::ChosenModel;
use crate::cli::model::{self, NO_MODEL};
use crate::cli::signals::Signals;
use crate::cli::{control_socket, fail, policy, say};
use crate::exec::policy_gate::PolicyGate;
use crate::render::paint::safe_line;
use crate::tool::Registry;
use crate::tools::Call;
use karyi_model::{Model, ModelRequest, Usage};
use karyi_pty::lacks_output;

use output::AskOutput;
use request::{RequestInput, RequestText};

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
    let mut ask = match ask {
        Ok(ask) => ask,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let model = match ask.setup.open_model(&ask.args.session) {
        Ok(model) => model,
        Err(code) => return code,
    };
    let kept = (ask.setup.logs.clone(), ask.setup.context.secrets.clone());
    chat_setup::run_to_end(kept, ask.run(model))
}

/// A request that is being worked on.
struct Ask {
    args: AskArgs,
    setup: ChatSetup,
    input: RequestInput,
}

impl Ask {
    fn new(args: AskArgs, model: ChosenModel, input: RequestInput) -> anyhow::Result<Self> {
        let questions = match args.no_interactive {
            true => Questions::Never,
            false => Questions::Asked,
        };
        let mut setup = ChatSetup::new(&args.session, model, questions, |terminal| {
            Arc::new(terminal)
        })?;
        let mode = match args.approve {
            ApproveMode::None => Mode::Nothing,
            ApproveMode::Read => Mode::Ask,
            ApproveMode::Full => Mode::Full,
        };
        let cwd = setup.context.sessions.cwd();
        let approvals = policy::approvals(&cwd, Some(mode), None)?;
        setup.policy_gate = setup.policy_gate.with_approvals(approvals);
        Ok(Self { args, setup, input })
    }

    async fn run(self, model: Arc<dyn Model>) -> anyhow::Result<u8> {
        let signals = Signals::catch().context("catching signals")?;
        let context = &self.setup.context;
        let sessions = Arc::clone(&context.sessions);
        let watch = tokio::spawn(signals.watch(sessions, self.setup.stop_source.clone()));
        let model_name = &self.setup.model.name;
        let _control_socket = control_socket::open_for("ask", model_name, context);
        let registry = Arc::new(self.args.session.offer.offer()?.registry());
        let started = Instant::now();
        let opening = self.request(&registry, model.as_ref());
        let (prompt, request) = match self.until_stopped(opening).await {
            Ok(opening) => opening?,
            Err(end) => return self.end_early(end),
        };
        let policy_gate = self.setup.policy_gate.clone();
        let runner = self.setup.runner(registry, policy_gate, self.watcher());
        let limits = TurnLimits {
            steps: self.args.max_steps,
            tokens: self.args.max_tokens,
            time: self
                .max_time()
                .map(|time| time.saturating_sub(started.elapsed())),
        };
        let cancel = self.setup.stop_source.cancel.clone();
        let history = History::new(request);
        let mut chat =
            Conversation::new(Arc::clone(&model), runner, history, limits, cancel.clone());
        let mut output = AskOutput::new(&self.args, &self.setup.model.name, cancel);
        let text = Prompt {
            text: &prompt.text,
            attached: &prompt.attached,
        };
        let until = self.setup.stop_source.cancel.clone();
        let report = chat.turn_until(text, &until, &mut output).await;
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
    ) -> anyhow::Result<(RequestText, ModelRequest)> {
        let system = request::system(&self.args, &self.input, registry)?;
        let (registry_of_reader, open) = (Arc::clone(registry), PolicyGate::default());
        let reader = self.setup.runner(registry_of_reader, open, Watcher::Nobody);
        let cwd = self.setup.context.sessions.cwd();
        let text = request::text(&self.args, &cwd, &self.input, reader).await?;
        let redactor = &self.setup.redactor;
        let (request, _) = chat_setup::request(&system, redactor, registry, model).await;
        Ok((text, request))
    }

    fn max_time(&self) -> Option<Duration> {
        self.args.max_time.map(|time| time.duration())
    }

    /// Waits for the preparation of the request, until the user interrupts it or the time is up.
    async fn until_stopped<T>(&self, preparation: impl Future<Output = T>) -> Result<T, TurnEnd> {
        let cancel = &self.setup.stop_source.cancel;
        let time_is_up = async {
            match self.max_time() {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.interrupted() => Err(TurnEnd::Cancelled),
            () = time_is_up => Err(TurnEnd::Time),
            prepared = preparation => Ok(prepared),
        }
    }

    /// Ends before the first request.
    fn end_early(&self, end: TurnEnd) -> anyhow::Result<u8> {
        let report = TurnReport {
            end,
            answer: String::new(),
            steps: 0,
            usage: Usage::default(),
            tokens: 0,
            cost: None,
            needs_approval: false,
        };
        let cancel = self.setup.stop_source.cancel.clone();
        AskOutput::new(&self.args, &self.setup.model.name, cancel).end(&report)?;
        Ok(self.exit_code(&report))
    }

    fn watcher(&self) -> Watcher {
        match self.args.jsonl {
            true => Watcher::Program,
            false => Watcher::Nobody,
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
                    "its last calls needed an approval: `--approve full` permits more, and so does a rule (`karyi policy add`)",
                );
                NEEDS_USER
            }
            TurnEnd::Done => 0,
            TurnEnd::Steps => stopped("its steps are", "--max-steps"),
            TurnEnd::Tokens => stopped("its tokens are", "--max-tokens"),
            TurnEnd::AnswerLength => {
                stopped("the tokens of an answer are", "`max_output` of the model")
            }
            TurnEnd::Time => stopped("its time is", "--max-time"),
            TurnEnd::Refused(reason) => {
                say(&format!("stopped: {reason}"));
                1
            }
            TurnEnd::ModelFailed(error) => {
                say(&format!("{}: {}", error.code(), safe_line(&error.message)));
                say(&format!("hint: {}", safe_line(&error.hint)));
                NO_MODEL
            }
            TurnEnd::Cancelled => {
                let received = &self.setup.stop_source.received;
                received.exit_code().unwrap_or(INTERRUPTED)
            }
        }
    }
}
