//! `karyi supervise`: three kinds of model sessions over a directory of tasks, until it is stopped.

pub(super) mod args;
mod output;
mod role_conversations;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::chat_setup::{ChatSetup, Questions};
use crate::cli::config::Settings;
use crate::cli::model::{self, NO_MODEL};
use crate::cli::signals::Signals;
use crate::cli::supervise::args::SuperviseArgs;
use crate::cli::supervise::output::NoticeOutput;
use crate::cli::supervise::role_conversations::{RoleConversations, RoleModels};
use crate::cli::{fail, fail_any, fail_with, policy, runtime, say, vault};
use crate::render::paint::safe_line;
use crate::supervisor::settings::SupervisorSettings;
use crate::supervisor::work_loop::{Duty, Supervisor, SupervisorEnd};
use crate::tool::context::Nobody;
use karyi_pty::lacks_output;
use karyi_tasks::state_directory::StateDirectory;

/// Exit status when the state or the output could not be used, or the tokens of the day are used up.
const STOPPED: u8 = 1;
/// Exit status of an interruption.
const INTERRUPTED: u8 = 130;

/// Runs `karyi supervise`.
pub(super) fn supervise(args: SuperviseArgs) -> ExitCode {
    if lacks_output() {
        return fail("nothing can be shown: standard output is closed");
    }
    match Supervision::prepare(args) {
        Ok(supervision) => supervision.run(),
        Err(code) => code,
    }
}

/// Supervisor before it starts.
struct Supervision {
    args: SuperviseArgs,
    settings: SupervisorSettings,
    setup: Arc<ChatSetup>,
    conversations: RoleConversations,
    state: PathBuf,
}

impl Supervision {
    /// Prepares everything that may ask or fail, before any work begins.
    fn prepare(mut args: SuperviseArgs) -> Result<Self, ExitCode> {
        let settings = Settings::load().map_err(|error| fail_any(&error.into()))?;
        let Some(power) = args.worker.or_else(|| settings.worker_power()) else {
            return Err(fail(
                "choose what Workers may do: `--worker full` runs everything that no rule denies or asks about, `--worker \
                 read-only` what only reads; `karyi config set supervise.worker full` saves the choice",
            ));
        };
        if args.session.cwd.is_none() {
            args.session.cwd = settings.supervise_text("work_dir").map(PathBuf::from);
        }
        let chosen = RoleModels::choose(&settings, args.model.as_deref())
            .map_err(|error| model::fail_choice(&error))?;
        let state = args.state_dir.path().map_err(|error| fail_with(&error))?;
        let whole = |error: anyhow::Error| fail_any(&error);
        let (usual, others) = chosen.split();
        let mut setup = ChatSetup::new(&args.session, usual, Questions::Asked, |terminal| {
            Arc::new(terminal)
        })
        .map_err(whole)?;
        let cwd = setup.context.sessions.cwd();
        let approvals = policy::approvals(&cwd, Some(power.mode()), None).map_err(whole)?;
        setup.policy_gate = setup.policy_gate.with_approvals(approvals);
        let usual = setup.open_model(&args.session)?;
        let models = others
            .open(usual, &setup.context.secrets)
            .map_err(|error| {
                say(&format!("{error:#}"));
                ExitCode::from(NO_MODEL)
            })?;
        // From here on nobody is asked: a question would hold up the work.
        setup.context.prompter = Arc::new(Nobody);
        let setup = Arc::new(setup);
        let conversations = RoleConversations::new(&args.session, &setup, models);
        Ok(Self {
            conversations: conversations.map_err(whole)?,
            settings: settings.supervisor(),
            setup,
            args,
            state,
        })
    }

    fn run(self) -> ExitCode {
        let runtime = match runtime::runtime(true) {
            Ok(runtime) => runtime,
            Err(error) => return fail_any(&error),
        };
        let (logs, secrets) = (self.setup.logs.clone(), self.setup.context.secrets.clone());
        let code = runtime.block_on(self.work());
        logs.remove();
        vault::record_use(&secrets);
        runtime.shutdown_background();
        code.unwrap_or_else(|error| fail_any(&error))
    }

    async fn work(self) -> anyhow::Result<ExitCode> {
        let signals = Signals::catch().context("catching signals")?;
        let stop = self.setup.stop_source.clone();
        let sessions = Arc::clone(&self.setup.context.sessions);
        let watch = tokio::spawn(signals.watch(sessions, stop.clone()));
        let output = NoticeOutput::new(self.args.json, stop.cancel.clone());
        let failure = output.failure();
        let supervisor = StateDirectory::open(&self.state).and_then(|state| {
            Supervisor::new(
                state,
                self.setup.context.sessions.cwd(),
                self.settings,
                Arc::new(self.conversations),
                (self.setup.redactor.clone(), output.into_take()),
            )
        });
        let supervisor = match supervisor {
            Ok(supervisor) => supervisor,
            Err(error) => return Ok(fail_with(&error)),
        };
        if std::io::stderr().is_terminal() {
            let (state, work) = (self.state.display(), self.setup.context.sessions.cwd());
            let place = format!("{state}, with Workers in {}", work.display());
            say(&safe_line(&format!("working on {place}; Ctrl+C ends it")));
        }
        let duty = match self.args.once {
            true => Duty::Once,
            false => Duty::Always,
        };
        let end = supervisor.run(duty, stop.cancel.clone()).await;
        watch.abort();
        if failure.get().is_some() {
            return Ok(ExitCode::from(STOPPED));
        }
        Ok(match end {
            SupervisorEnd::Idle => ExitCode::SUCCESS,
            SupervisorEnd::Stopped => {
                ExitCode::from(stop.received.exit_code().unwrap_or(INTERRUPTED))
            }
            SupervisorEnd::ModelFailed => ExitCode::from(NO_MODEL),
            SupervisorEnd::TokensUsedUp => ExitCode::from(STOPPED),
            SupervisorEnd::Failed => ExitCode::from(STOPPED),
        })
    }
}
